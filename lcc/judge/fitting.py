"""Fitting the state into its budget, cheapest stage first (the seed's section 4).

Every entry is rendered once a stage and counted once for each text that it has; the first two stages stop at
the first entry that is too much. The sum of the parts is what is held against the budget: a token that spans
two parts only makes the whole shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcc.judge.errors import TranscriptFitError
from lcc.judge.state import LINE_CHARS, Call, Entry, Stage, call_line, collapsed_line, render
from lcc.judge.wire import dumps
from lcc.tokens import TokenCounter

ABOUT = (
    "A coding agent's session, oldest message first. Calls are numbered. Their outputs are not shown: "
    "'ok, 4213 chars' stands for an output of that length."
)
_SPARE = 1
"""Tokens added for each entry: the comma between two entries."""


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


def fit_state(entries: Sequence[Entry], goal: str, counter: TokenCounter, budget: StateBudget) -> FittedState:
    """The state for ``entries`` within ``budget``, at the first stage that fits.

    Raises ``TranscriptFitError`` with the figures when the last stage does not fit.
    """
    head = dumps({"about": ABOUT, "goal": goal} if goal else {"about": ABOUT})[:-1] + ',"conversation":['
    tail = "]}"
    left = budget.tokens - counter.count(head) - counter.count(tail)
    counted = _Counted(counter, len(entries))
    stages: tuple[Stage, ...] = ("full", "inputs-200")
    for stage in stages:
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
    return FittedState(head + ",".join(texts) + tail, tokens + budget.tokens - left, "calls-one-line")


def _within(entries: Sequence[Entry], stage: Stage, counted: _Counted, left: int) -> tuple[list[str], int] | None:
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


def _shortest(entries: Sequence[Entry], counter: TokenCounter, counted: _Counted, left: int) -> tuple[list[str], int]:
    """The last stage: calls as lines, neighbouring messages of calls merged, the oldest lines as a count.

    Only as many of the oldest lines become a count as the budget needs.
    """
    parts: list[str | list[_Line]] = []
    tokens = 0
    for index, entry in enumerate(entries):
        if not entry.collapses:
            text = render(entry, "calls-one-line")
            tokens += counted.cost(index, text)
            parts.append(text)
            continue
        if not parts or isinstance(parts[-1], str):
            parts.append([])
            tokens += counter.count('{"calls":[]}') + _SPARE
        run = parts[-1]
        assert isinstance(run, list)
        for call in entry.calls:
            text = dumps(call_line(call, LINE_CHARS))
            run.append(_Line(call, text, counter.count(text) + _SPARE))
            tokens += run[-1].tokens
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        lines, saved = _collapse(part, tokens - left, counter) if tokens > left else ([x.text for x in part], 0)
        tokens -= saved
        texts.append('{"calls":[' + ",".join(lines) + "]}")
    return texts, tokens


def _collapse(run: list[_Line], excess: int, counter: TokenCounter) -> tuple[list[str], int]:
    """Turn the oldest lines of a run into one that counts them; returns the lines and the tokens saved.

    The line that counts is never longer than the longest that it could be for this run, so its cost is taken
    from the whole run first and the exact one afterwards.
    """
    whole = dumps(collapsed_line([line.call for line in run]))
    reserve = counter.count(whole) + _SPARE
    saved = taken = 0
    for line in run:
        if saved >= excess + reserve:
            break
        saved += line.tokens
        taken += 1
    if taken < 2 or saved <= reserve:
        return [line.text for line in run], 0
    counting = whole if taken == len(run) else dumps(collapsed_line([line.call for line in run[:taken]]))
    cost = counter.count(counting) + _SPARE
    return [counting, *(line.text for line in run[taken:])], saved - cost
