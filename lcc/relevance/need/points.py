"""The table: how many points each feature of a result is worth, and what a number of points comes to.

A result goes when its key is at most a limit: few points, and many characters saved in a context that is large.
The points are fitted by ``scripts/fit_points.py`` over real sessions; change them there, never by hand alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Feature = Literal[
    "read", "agent", "list", "search", "test", "web", "plan", "write",
    "calls_30", "calls_60", "turn_1", "turn_2",
    "new_1", "new_4", "new_16",
    "partial", "read_again", "edit_rhythm", "named_lately", "used_lately", "failed",
]  # fmt: skip


class Points(NamedTuple):
    """What a feature is worth, and how it is said in a line that explains."""

    points: float
    words: str


POINTS: Final[dict[Feature, Points]] = {
    "read": Points(0.15, "file read"),
    "agent": Points(0.95, "agent's report"),
    "list": Points(0.3, "listing"),
    "search": Points(-0.25, "search"),
    "test": Points(-0.75, "test or build output"),
    "web": Points(-0.85, "web or MCP result"),
    "plan": Points(-0.75, "plan"),
    "write": Points(-0.75, "answer to a write"),
    "calls_30": Points(-0.1, "over 30 calls ago"),
    "calls_60": Points(-0.05, "over 60 calls ago"),
    "turn_1": Points(-0.35, "a turn ago"),
    "turn_2": Points(0.15, "two turns ago or more"),
    "new_1": Points(2.0, "holds words that stand nowhere else"),
    "new_4": Points(1.05, "holds several of them"),
    "new_16": Points(0.65, "holds many of them"),
    "partial": Points(-0.7, "part of a file"),
    "read_again": Points(-0.45, "read again later"),
    "edit_rhythm": Points(0.55, "edits are about to come or under way"),
    "named_lately": Points(0.45, "its file is named in the newest messages"),
    "used_lately": Points(0.2, "its words are used in the newest messages"),
    "failed": Points(-0.6, "failed call"),
}
"""Points by feature. Higher: more likely needed again."""

KINDS: Final[tuple[Feature, ...]] = ("read", "agent", "list", "search", "test", "web", "plan", "write")
"""The features of which a result has one at most."""

LIMIT: Final = -15.8
"""A result whose key is at most this goes."""
LEAST_SAVED: Final = 200
"""Characters that a note, with its excerpt, must save."""
_NOTE_COST: Final = 150
"""Characters that a removed result costs besides its note, when it is fetched again, spread over all removals."""

_NOTHING: Final = "nothing of note"

_SAID_ONCE: Final[tuple[tuple[Feature, ...], ...]] = (
    ("calls_60", "calls_30"),
    ("turn_2", "turn_1"),
    ("new_16", "new_4", "new_1"),
)
"""Features that add up and are said by the strongest alone."""


@dataclass(frozen=True, slots=True)
class Need:
    """How likely one result is needed again. ``features`` in the order of the table."""

    points: float
    features: tuple[Feature, ...]
    excerpt: tuple[str, ...] = ()
    """What of the result is worth keeping beside a note of the stash."""


def need_key(points: float, saved: int, total: int) -> float:
    """The key by which results are ordered: the lowest goes first.

    ``saved`` is in characters, less note and excerpt; ``total`` are the characters of all results in context.
    """
    return points - math.log((saved + _NOTE_COST) * max(total, 1))


def why(need: Need) -> str:
    """The features in one line, for a person: "file read, part of a file, over 60 calls ago"; never empty."""
    features = set(need.features)
    for group in _SAID_ONCE:
        strongest = next((feature for feature in group if feature in features), None)
        features -= set(group) - ({strongest} if strongest else set())
    return ", ".join(POINTS[feature].words for feature in POINTS if feature in features) or _NOTHING
