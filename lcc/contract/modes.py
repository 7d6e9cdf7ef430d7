"""Who decides, by which rules, and what each mode of the rules promises (the seed's sections 2, 5 and 6).

`MODES` is the one place that says what a mode does; a mode that is missing from it does not pass the type checker.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypedDict, get_args

from lcc.contract import reasons
from lcc.contract.reasons import Reason

Provider = Literal["jev", "laya", "auto", "rules"]
JudgeName = Literal["jev", "laya"]
RulesMode = Literal["lossless", "recoverable", "stashed", "lossy", "auto"]
Proactive = Literal["off", "cold", "early"]
"""When a live session is compacted before its window is full: never, where that is free, or from a share of it on."""
Guarantee = Literal["lossless", "recoverable", "stashed", "judged", "partial", "none"]

PROVIDERS: tuple[Provider, ...] = get_args(Provider)
RULES_MODES: tuple[RulesMode, ...] = get_args(RulesMode)


class Promise(NamedTuple):
    """What a mode that verifies its own work promises, and why a result is kept where that did not hold."""

    guarantee: Guarantee
    broken: Reason


class Mode(NamedTuple):
    """What a mode of the rules does."""

    promise: Promise | None
    """None: the mode removes without a proof."""
    reads_files: bool
    """It points at files, which are compared with what they are to give back. A judge's removals can be
    turned into its pointers."""
    stashes: bool
    """It needs a stash, into which goes what no other proof covers."""
    live: bool
    """It may be used in a live session."""


class _Modes(TypedDict):
    lossless: Mode
    recoverable: Mode
    stashed: Mode
    lossy: Mode
    auto: Mode


MODES: _Modes = {
    "lossless": Mode(
        Promise("lossless", reasons.LOSSLESS_VERIFICATION_FAILED), reads_files=False, stashes=False, live=True
    ),
    "recoverable": Mode(
        Promise("recoverable", reasons.RECOVERABLE_VERIFICATION_FAILED), reads_files=True, stashes=False, live=True
    ),
    "stashed": Mode(Promise("stashed", reasons.STASHED_VERIFICATION_FAILED), reads_files=True, stashes=True, live=True),
    "auto": Mode(  # the ladder: `stashed` and then inputs, or `recoverable` where nothing can be recalled
        Promise("stashed", reasons.STASHED_VERIFICATION_FAILED), reads_files=True, stashes=True, live=True
    ),
    "lossy": Mode(None, reads_files=False, stashes=False, live=False),  # it failed its audits
}
"""Each mode's row, by its name."""

LIVE_MODES: tuple[RulesMode, ...] = tuple(mode for mode in RULES_MODES if MODES[mode].live)
FILE_MODES: tuple[RulesMode, ...] = tuple(mode for mode in RULES_MODES if MODES[mode].reads_files)
