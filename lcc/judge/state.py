"""What the judge is shown: every message, oldest first, with each tool result as a short note (section 4).

A result's note stands beside its call, so the messages that hold only results need no entry of their own.
Calls are named by their number in the session (``#7``), which costs two tokens where an id costs twenty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from typing import Literal, NamedTuple, get_args

from lcc.judge.wire import cut, dumps, one_line
from lcc.transcript import Json, Message, ToolResult, ToolUse, Transcript

Stage = Literal["full", "inputs-200", "calls-one-line"]
STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages of fitting, cheapest cut first."""

INPUT_CHARS = 200
"""Characters that an input keeps from the stage ``inputs-200`` on."""
TEXT_ENDS = (600, 200)
"""Characters of an abridged text's head and tail."""
SHORT_TEXT_ENDS = (180, 60)
"""The same where the last stage is still too much; the oldest texts first, and only as many as needed."""
LINE_CHARS = 60
"""Characters of an input in the one line of a call."""
COLLAPSED_CHARS = 120
"""Characters of the one line that stands for many old calls."""


class Call(NamedTuple):
    """One call as the judge is told of it."""

    label: str
    use: ToolUse
    outcome: str
    """``ok, 4213 chars``, ``error, 80 chars`` or ``no result yet``."""
    pinned: bool


class StateMessage(NamedTuple):
    """One message that says something: words, calls, or results whose call is not in the session."""

    role: str
    text: str
    calls: tuple[Call, ...]
    orphans: tuple[str, ...]
    pinned: bool

    @property
    def collapses(self) -> bool:
        """Whether the last stage may merge it with its neighbours: unpinned, and nothing but calls."""
        plain = bool(self.calls) and not self.text and not self.orphans and not self.pinned
        return plain and not any(call.pinned for call in self.calls)


def outcome_of(result: ToolResult | None) -> str:
    """The note that stands for a result: whether the call failed, and how many characters it gave."""
    if result is None:
        return "no result yet"
    return f"{'error' if result.is_error else 'ok'}, {len(result.text)} chars"


def entries_of(
    transcript: Transcript, pins: Container[str], preserve_recent: int
) -> tuple[list[StateMessage], dict[str, str]]:
    """The entries of a session, oldest first, and the label of each call by its id.

    ``pins`` are the pinned calls by id. A message is pinned when it is the first or one of the newest
    ``preserve_recent`` (the seed's section 3).
    """
    messages = transcript.messages
    results = {result.tool_use_id: result for message in messages for result in message.tool_results}
    used = {use.id for message in messages for use in message.tool_uses}
    labels: dict[str, str] = {}
    entries: list[StateMessage] = []
    recent_from = len(messages) - preserve_recent
    number = 0
    for index, message in enumerate(messages):
        pinned = index == 0 or index >= recent_from
        calls = []
        for use in message.tool_uses:
            number += 1
            labels[use.id] = label = f"#{number}"
            calls.append(Call(label, use, outcome_of(results.get(use.id)), pinned or use.id in pins))
        orphans = _orphans(message, used)
        if message.text or calls or orphans:
            entries.append(StateMessage(message.role, message.text, tuple(calls), orphans, pinned))
    return entries, labels


def _orphans(message: Message, used: set[str]) -> tuple[str, ...]:
    return tuple(
        f"result without its call: {outcome_of(result)}"
        for result in message.tool_results
        if result.tool_use_id not in used
    )


def render(entry: StateMessage, stage: Stage) -> str:
    """The JSON text of one entry at a stage."""
    as_written = stage == "full" or entry.pinned
    return _entry(
        entry, entry.text if as_written else abridge(entry.text), [_call(call, stage) for call in entry.calls]
    )


def render_shorter(entry: StateMessage, *, count_calls: bool) -> str:
    """An unpinned entry of the last stage with less of its text, and with ``count_calls`` of its calls."""
    calls: list[Json] = [_call(call, STAGES[-1]) for call in entry.calls]
    if count_calls and calls and not any(call.pinned for call in entry.calls):
        calls = [collapsed_line(entry.calls)]
    return _entry(entry, abridge(entry.text, SHORT_TEXT_ENDS), calls)


def _entry(entry: StateMessage, text: str, calls: list[Json]) -> str:
    shown: dict[str, Json] = {}
    if text:
        shown[entry.role] = text
    if calls:
        shown["calls"] = calls
    if entry.orphans:
        shown["results"] = list(entry.orphans)
    return dumps(shown)


def collapsed_line(calls: Sequence[Call]) -> str:
    """One line for many old calls: their numbers, and how many there are of each tool."""
    if len(calls) == 1:
        return f"{calls[0].label} {one_line(calls[0].use.tool, 40)}"
    tools = Counter(call.use.tool for call in calls)
    counted = ", ".join(f"{count} {one_line(tool, 40)}" for tool, count in tools.most_common())
    return cut(f"{calls[0].label}-{calls[-1].label}: {counted}", COLLAPSED_CHARS)


def abridge(text: str, ends: tuple[int, int] = TEXT_ENDS) -> str:
    """Head and tail of a long text, with the number of characters left out between them."""
    head, tail = ends
    left_out = len(text) - head - tail
    if left_out <= head // 3:
        return text
    return f"{text[:head]} […{left_out} chars left out…] {text[-tail:]}"


def call_line(call: Call, limit: int) -> str:
    """A call on one line: number, tool, the telling part of its input, and what came of it."""
    telling = one_line(call.use.input, limit)
    return f"{call.label} {one_line(call.use.tool, 80)}{' ' if telling else ''}{telling}: {call.outcome}"


def _call(call: Call, stage: Stage) -> Json:
    if stage == "calls-one-line" and not call.pinned:
        return call_line(call, LINE_CHARS)
    shown: Json = call.use.input
    if stage != "full":
        written = shown if isinstance(shown, str) else dumps(shown)
        if len(written) > INPUT_CHARS:
            shown = cut(written, INPUT_CHARS)
    return {"call": call.label, "tool": call.use.tool, "input": shown, "result": call.outcome}
