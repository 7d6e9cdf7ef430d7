"""What our counts are in the model's own tokens, measured on a session's own ``usage`` records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

from lcc.tokens.counting import TokenCounter
from lcc.tokens.usage import UsageStep

CalibrationSource = Literal["usage", "family", "none"]

PER_BLOCK = 24.0
"""Tokens that a call or a result adds beside its text: its name, its id, its wrapping. Measured."""
PER_PARAMETER = 14.5
"""Tokens that each parameter of a call adds beside its name and value."""
PER_MESSAGE = 6.0
"""Tokens that a message without calls or results adds."""
PER_FURTHER_CALL = 16.0
"""Tokens that each call after the first of one answer adds."""
FEWEST_STEPS = 8
"""With fewer usable steps than this the session says too little, and the family's figures stand."""
SMALLEST_STEP = 50
"""Steps of fewer tokens say more about the wrapping than about the vocabulary."""
SANE_FACTORS = (0.5, 2.0)
FAMILY_WEIGHT = 20
"""The family's factor counts as much as this many steps, so that a few steps move it little."""
PARTIAL_SHARE = 0.1
"""Where more than this share of the answers has fewer output tokens than it holds, the file's output figures
are partial ones (written while the answer still streamed), and none of them is trusted."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """``factor``: true tokens for each counted one; ``per_block``: what each call or result adds to its text.

    ``source``: "usage" where a session's own records gave the figures, else those of the model's family.
    """

    factor: float = 1.0
    per_block: float = PER_BLOCK
    source: CalibrationSource = "none"


class StepCount(NamedTuple):
    """A step that can be checked: our count of its texts, the true tokens of texts and wrapping together."""

    tokens: int
    true: int
    step: UsageStep
    counts_answer: bool
    """The answer's own tokens are in both figures; else both are of what came after it."""


def checkable(steps: Iterable[UsageStep], counter: TokenCounter) -> list[StepCount]:
    """The steps whose growth comes from text that the file shows.

    Where the file has the answers' final output tokens, they are taken off the growth: they are known, and
    hold the thinking that the file does not show. Else the answer's texts are counted too.
    """
    shown = [step for step in steps if not step.unseen and step.growth > 0 and (step.calls or step.added)]
    written = [sum(map(counter.count, step.written)) for step in shown]
    partial = sum(step.output < 0.9 * own for step, own in zip(shown, written, strict=True))
    final = partial <= PARTIAL_SHARE * len(shown)
    found = []
    for step, own in zip(shown, written, strict=True):
        added = sum(map(counter.count, step.added))
        if final and step.output >= 0.9 * own:
            if step.growth > step.output and added:
                found.append(StepCount(added, step.growth - step.output, step, False))
        elif not step.thinks:
            found.append(StepCount(own + added, step.growth, step, True))
    return found


def wrapping(found: StepCount, per_block: float = PER_BLOCK) -> float:
    """The tokens of a step that are no text: the wrapping of its calls and results."""
    step = found.step
    if not found.counts_answer:
        # The first result's wrapping was written by the answer, so it is in the answer's output tokens.
        return 2 * per_block * (step.results - 1) + 5 if step.results else 2.0
    if not step.calls:
        return PER_MESSAGE
    further = PER_FURTHER_CALL * (step.calls - 1)
    return PER_PARAMETER * step.parameters + 2 * per_block * step.calls + further


def predicted(found: StepCount, calibration: Calibration) -> float:
    """What ``calibration`` makes of a step's count; to be compared with ``found.true``."""
    return calibration.factor * found.tokens + wrapping(found, calibration.per_block)


def calibrate(steps: Iterable[UsageStep], counter: TokenCounter) -> Calibration:
    """The figures of one session, from its steps (``usage_steps``) and the counter they are to correct.

    Medians, so that a step with something unseen in it pulls little. The family's figures (factor 1)
    where the session has too few steps to say.
    """
    rows = checkable(steps, counter)
    usable = [row for row in rows if row.tokens >= SMALLEST_STEP]
    if len(usable) < FEWEST_STEPS:
        return Calibration(source="family")
    seen = _weighted_median([((row.true - wrapping(row)) / row.tokens, row.tokens**0.5) for row in usable])
    factor = (len(usable) * seen + FAMILY_WEIGHT) / (len(usable) + FAMILY_WEIGHT)
    factor = min(max(factor, SANE_FACTORS[0]), SANE_FACTORS[1])
    spare = [
        (row.true - factor * row.tokens - wrapping(row, 0.0)) / (2 * row.step.calls)
        for row in rows
        if row.counts_answer and row.step.calls
    ]
    per_block = median(spare) if len(spare) >= FEWEST_STEPS else PER_BLOCK
    return Calibration(factor, min(max(per_block, 0.0), 3 * PER_BLOCK), "usage")


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    for value, weight in ordered:
        half -= weight
        if half <= 0:
            return value
    return ordered[-1][0]
