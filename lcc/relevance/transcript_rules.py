"""`lossy` (experimental): a fixed policy by the transcript's structure, with no claim (the seed's section 5).

It failed two blind audits, because what it trims and drops may still be needed; nothing in lcc chooses it.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from lcc.contract.decision import Decision, Drop, Keep, Trim
from lcc.contract.notes import trim_note
from lcc.contract.reasons import (
    KEPT_DEFAULT,
    LARGE_OLD_OUTPUT_TRIMMED,
    NOT_A_SINGLE_TEXT,
    STALE_READ_FAR_FROM_RECENT_WORK,
    SUPERSEDED_BY_LATER_CALL,
)
from lcc.relevance.evidence.failures import is_no_file
from lcc.relevance.evidence.guards import GuardFacts, Guards
from lcc.relevance.evidence.lossy import LARGE_OUTPUT, paths_of
from lcc.relevance.reading.calls import FileRead, kind_of
from lcc.relevance.reading.headers import comparable
from lcc.relevance.reading.rows import shows_whole_file
from lcc.transcript import Pair

KEPT_ENDS = 1000  # characters of a trimmed output that stay at each end

_Key = tuple[str, bytes, str]


def rules_decisions(candidates: Sequence[Pair], guards: Guards) -> dict[str, Decision]:
    """The decision on every candidate, by call id, with the rule as its reason."""
    later = _LaterFacts(guards.facts)
    decisions: dict[str, Decision] = {}
    for pair in candidates:
        call_id = pair.use.id
        if call_id in guards.kept:
            decisions[call_id] = Keep(guards.kept[call_id])
        elif call_id in later.superseded_by:
            decisions[call_id] = Drop(SUPERSEDED_BY_LATER_CALL(later.superseded_by[call_id]))
        elif call_id in later.stale_reads:
            decisions[call_id] = Drop(STALE_READ_FAR_FROM_RECENT_WORK)
        elif len(pair.result.text) <= LARGE_OUTPUT:
            decisions[call_id] = Keep(KEPT_DEFAULT)
        elif pair.result.text_path is None:
            decisions[call_id] = Keep(NOT_A_SINGLE_TEXT)
        elif call_id in guards.untrimmed:
            decisions[call_id] = Keep(guards.untrimmed[call_id])
        else:
            decisions[call_id] = _trimmed(pair)
    return decisions


class _LaterFacts:
    """What happened after each call: who supersedes it, whether it is an old read that nothing came back to."""

    def __init__(self, facts: GuardFacts) -> None:
        self.superseded_by: dict[str, str] = {}
        self.stale_reads: set[str] = set()
        recent_from = facts.recent_from
        whole: dict[str, str] = {}
        again: dict[_Key, str] = {}
        recently_used: set[str] = set()
        for pair in reversed(facts.pairs):
            call_id = pair.use.id
            superseder = again.setdefault(_call_and_output(pair), call_id)
            if superseder != call_id:
                self.superseded_by[call_id] = superseder
            read = facts.reads.get(call_id)
            paths = paths_of(pair.use, read, facts.written.get(call_id, ()), facts.transcript.cwd)
            if pair.use_message >= recent_from:
                recently_used.update(paths)
            if not paths:
                continue
            succeeded = call_id not in facts.errors and not is_no_file(pair.result.text)
            if read is not None:
                if paths[0] in whole:
                    self.superseded_by.setdefault(call_id, whole[paths[0]])
                if pair.result_message < recent_from and succeeded and paths[0] not in recently_used:
                    self.stale_reads.add(call_id)
            if succeeded and call_id not in facts.standing and _has_all(pair, read):
                whole.setdefault(paths[0], call_id)


def _has_all(pair: Pair, read: FileRead | None) -> bool:
    """Whether a successful call wrote or shows its whole file; a read that a client may have cut does not."""
    if read is None:
        return kind_of(pair.use.tool) == "write"
    return read.by_tool and read.span is None and shows_whole_file(pair.result.text)


def _trimmed(pair: Pair) -> Decision:
    text = pair.result.text
    head, tail = text[:KEPT_ENDS], text[-KEPT_ENDS:]
    note = trim_note(len(text) - len(head) - len(tail), pair.use.tool)
    return Trim(LARGE_OLD_OUTPUT_TRIMMED, note, f"{head}\n{note}\n{tail}")


def _call_and_output(pair: Pair) -> _Key:
    try:
        written = orjson.dumps(pair.use.input, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits
        written = repr(pair.use.input).encode("utf-8", "surrogatepass")
    return pair.use.tool, written, comparable(pair.use.tool, pair.result.text)
