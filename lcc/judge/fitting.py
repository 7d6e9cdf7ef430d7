"""Fitting the state into its budget, cheapest stage first (the seed's section 4).

Every entry is rendered once a stage and counted once for each text that it has; the first two stages stop at
the first entry that is too much. The sum of the parts is what is held against the budget: a token that spans
two parts only makes the whole shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lcc.judge.errors import TranscriptFitError
from lcc.judge.state import (
    LINE_CHARS,
    STAGES,
    Call,
    Stage,
    StateMessage,
    call_line,
    collapsed_line,
    render,
    render_shorter,
)
from lcc.judge.wire import dumps
from lcc.tokens import TokenCounter

ABOUT = (
    "A coding agent's session, oldest message first. Calls are numbered. Their outputs are not shown: "
    "'ok, 4213 chars' stands for an output of that length."
)
_SPARE = 2
"""Tokens added for each part: the comma that follows it, and what its own count was rounded down by."""


@dataclass(frozen=True, slots=True)
class FittedState:
    """The state as JSON text, what it costs, and at which stage it fitted."""

    json: str
    tokens: int
    stage: Stage


class StateBudget(NamedTuple):
    """What the state may cost (tokens), which option says so, and what to do when that is too little."""

    tokens: int
    option: str
    advice: str


class _Line(NamedTuple):
    call: Call
    text: str
    tokens: int


class _Counted:
    """The cost of each entry's latest text; a text that did not change is not counted again."""

    def __init__(self, counter: TokenCounter, size: int) -> None:
        self._counter = counter
        self._known: list[tuple[str, int] | None] = [None] * size

    def cost(self, index: int, text: str) -> int:
        known = self._known[index]
        if known is None or known[0] != text:
            known = (text, self._counter.count(text) + _SPARE)
            self._known[index] = known
        return known[1]


def fit_state(entries: Sequence[StateMessage], goal: str, counter: TokenCounter, budget: StateBudget) -> FittedState:
    """The state for ``entries`` within ``budget``, at the first stage that fits.

    Raises ``TranscriptFitError`` with the figures when the last stage does not fit.
    """
    head = dumps({"about": ABOUT, "goal": goal} if goal else {"about": ABOUT})[:-1] + ',"conversation":['
    tail = "]}"
    left = budget.tokens - counter.count(head) - counter.count(tail)
    counted = _Counted(counter, len(entries))
    for stage in STAGES[:-1]:
        found = _within(entries, stage, counted, left)
        if found is not None:
            texts, tokens = found
            return FittedState(head + ",".join(texts) + tail, tokens + budget.tokens - left, stage)
    texts, tokens = _shortest(entries, counter, counted, left)
    if tokens > left:
        raise TranscriptFitError(
            needed=tokens + budget.tokens - left,
            allowed=budget.tokens,
            messages=len(entries),
            calls=sum(len(entry.calls) for entry in entries),
            option=budget.option,
            advice=budget.advice,
        )
    return FittedState(head + ",".join(texts) + tail, tokens + budget.tokens - left, STAGES[-1])


def _within(
    entries: Sequence[StateMessage], stage: Stage, counted: _Counted, left: int
) -> tuple[list[str], int] | None:
    """The entries' texts at a stage and their cost; None as soon as they are more than ``left``."""
    texts: list[str] = []
    tokens = 0
    for index, entry in enumerate(entries):
        text = render(entry, stage)
        tokens += counted.cost(index, text)
        if tokens > left:
            return None
        texts.append(text)
    return texts, tokens


def _shortest(
    entries: Sequence[StateMessage], counter: TokenCounter, counted: _Counted, left: int
) -> tuple[list[str], int]:
    """The last stage: calls as lines, neighbouring messages of calls merged.

    Where that is still too much, the oldest of those lines become a count, then the oldest unpinned texts keep
    less of their head and tail, then the calls beside the oldest texts become a count: each only as far as the
    budget needs.
    """
    parts, tokens = _merged(entries, counter, counted)
    for part in parts:
        if tokens <= left:
            break
        if isinstance(part, _Run):
            tokens -= part.collapse(tokens - left, counter)
    unpinned = [part for part in parts if isinstance(part, _Shown) and not part.entry.pinned]
    for count_calls in (False, True):
        for part in unpinned:
            if tokens <= left:
                break
            before = part.tokens
            part.text = render_shorter(part.entry, count_calls=count_calls)
            part.tokens = counted.cost(part.index, part.text)
            tokens += part.tokens - before
    return [part.json() for part in parts], tokens


def _merged(
    entries: Sequence[StateMessage], counter: TokenCounter, counted: _Counted
) -> tuple[list[_Shown | _Run], int]:
    """The entries at the last stage, runs of messages that hold only calls merged, and what all cost."""
    parts: list[_Shown | _Run] = []
    tokens = 0
    frame = counter.count('{"calls":[]}') + _SPARE
    for index, entry in enumerate(entries):
        if not entry.collapses:
            text = render(entry, STAGES[-1])
            shown = _Shown(index, entry, text, counted.cost(index, text))
            tokens += shown.tokens
            parts.append(shown)
            continue
        run = parts[-1] if parts else None
        if not isinstance(run, _Run):
            run = _Run()
            parts.append(run)
            tokens += frame
        for call in entry.calls:
            text = dumps(call_line(call, LINE_CHARS))
            run.lines.append(_Line(call, text, counter.count(text) + _SPARE))
            tokens += run.lines[-1].tokens
    return parts, tokens


@dataclass(slots=True)
class _Shown:
    """An entry that is shown by itself."""

    index: int
    entry: StateMessage
    text: str
    tokens: int

    def json(self) -> str:
        return self.text


@dataclass(slots=True)
class _Run:
    """Neighbouring messages that hold only calls, one line a call; ``counting`` stands for the oldest ones."""

    lines: list[_Line] = field(default_factory=list)
    counting: str | None = None

    def json(self) -> str:
        counting = [] if self.counting is None else [self.counting]
        return '{"calls":[' + ",".join(counting + [line.text for line in self.lines]) + "]}"

    def collapse(self, excess: int, counter: TokenCounter) -> int:
        """Turn the oldest lines into one that counts them, to save ``excess`` tokens; returns what was saved.

        What the counting line may cost is set aside before it is known how many lines it stands for.
        """
        whole = dumps(collapsed_line([line.call for line in self.lines]))
        reserve = counter.count(whole) + _SPARE
        saved = taken = 0
        for line in self.lines:
            if saved >= excess + reserve:
                break
            saved += line.tokens
            taken += 1
        if saved <= reserve:
            return 0
        if taken == len(self.lines):
            self.counting = whole
        else:
            self.counting = dumps(collapsed_line([line.call for line in self.lines[:taken]]))
        self.lines = self.lines[taken:]
        return saved - counter.count(self.counting) - _SPARE
