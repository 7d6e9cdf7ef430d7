"""What goes, before anything is proven: the choice of `stashed` and `auto`, by how likely a result is needed again.

The choice is the score's alone; which proof stands behind it is decided afterwards, the strongest that holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from lcc.contract import reasons as why
from lcc.contract.notes import count_lines, excerpt_line
from lcc.contract.reasons import Reason
from lcc.relevance.need import LEAST_SAVED, LIMIT, Need, need_key, needs_of
from lcc.relevance.reading.calls import FileRead, Kind, kind_of
from lcc.transcript import Message, Pair

StashedReason = Literal[
    "old_file_read",
    "old_search",
    "old_command_output",
    "old_edit_output",
    "old_web_page",
    "old_agent_report",
    "old_tool_output",
    "error_overcome",
    "judged_not_needed",
]
"""What completes ``stashed:`` in the record of a result that went to the stash."""

_REASONS: Final[dict[Kind, StashedReason]] = {
    "read": "old_file_read",
    "search": "old_search",
    "command": "old_command_output",
    "poll": "old_command_output",
    "edit": "old_edit_output",
    "write": "old_edit_output",
    "web": "old_web_page",
    "agent": "old_agent_report",
    "report": "old_agent_report",
}
_NOTE_CHARS = 50
_WHOLE_TOOLS = frozenset({"skill"})


class Scored(NamedTuple):
    """A result that may go, and where it stands in the order: the lowest key goes first."""

    need: Need
    key: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Which results go. What is in neither of the two was not asked about."""

    chosen: Mapping[str, StashedReason]
    """By text id, the first to go first: what the record says where the stash takes it."""
    kept: Mapping[str, Reason]
    scored: Mapping[str, Scored]
    """Every result that was long enough to be scored."""


def choose(
    messages: Sequence[Message],
    pairs: Sequence[Pair],
    kept: Collection[str],
    reads: Mapping[str, FileRead],
    failed: Collection[str],
    to_free: int | None = None,
) -> Choice:
    """The choice among ``pairs``, every text of every result in order, each as a pair of its own.

    ``kept`` are the calls and texts that a guard keeps, ``reads`` the calls that read a single file, ``failed`` those
    that failed. With ``to_free`` no more goes than frees so many characters.
    """
    stays: dict[str, Reason] = {}
    candidates: dict[str, Pair] = {}
    for pair in pairs:
        if pair.use.id in kept or pair.text_id in kept:
            continue
        if kind_of(pair.use.tool) == "question" or pair.use.tool.lower() in _WHOLE_TOOLS:
            stays[pair.text_id] = why.NOT_STASH_ELIGIBLE
        elif len(pair.result.text) < LEAST_SAVED + _NOTE_CHARS:
            stays[pair.text_id] = why.SHORT_RESULT_KEPT_WHOLE
        else:
            candidates[pair.text_id] = pair
    total = sum(len(pair.result.text) for pair in pairs)
    saved: dict[str, int] = {}
    scored: dict[str, Scored] = {}
    for text_id, need in needs_of(messages, pairs, candidates, kept, reads, failed).items():
        text = candidates[text_id].result.text
        saved[text_id] = len(text) - _NOTE_CHARS - len(excerpt_line(need.excerpt, count_lines(text)))
        scored[text_id] = Scored(need, need_key(need.points, max(saved[text_id], 0), total))
    chosen: dict[str, StashedReason] = {}
    freed = 0
    for text_id in sorted(scored, key=lambda text_id: scored[text_id].key):
        if saved[text_id] < LEAST_SAVED:
            stays[text_id] = why.SHORT_RESULT_KEPT_WHOLE
        elif scored[text_id].key > LIMIT:
            stays[text_id] = why.LIKELY_NEEDED_AGAIN
        elif to_free is not None and freed >= to_free:
            stays[text_id] = why.TARGET_REACHED
        else:
            freed += saved[text_id]
            kind = kind_of(candidates[text_id].use.tool)
            has_failed = candidates[text_id].use.id in failed
            chosen[text_id] = "error_overcome" if has_failed else _REASONS.get(kind, "old_tool_output")
    return Choice(chosen, stays, scored)
