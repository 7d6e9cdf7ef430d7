"""The families of models that share a vocabulary, and which one a model is of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

FamilyName: TypeAlias = Literal["older", "newer"]


@dataclass(frozen=True, slots=True)
class Family:
    """Models that share a vocabulary. The factors turn our counts of a kind of run into theirs; spaces, line
    ends, digits and single marks need none (``scripts/bench_tokens.py --rates`` measures them)."""

    name: FamilyName
    file: str
    size: int
    splits_capitals: bool
    words: float
    capitals: float
    punctuation: float
    exact_version: str
    """What the ``ctok`` package calls this vocabulary."""


FAMILIES: dict[FamilyName, Family] = {
    "older": Family("older", "merges-older.txt", 24_000, False, 0.98, 0.9, 1.0, "3.0"),
    "newer": Family("newer", "merges-newer.txt", 10_000, True, 1.26, 0.85, 1.42, "4.8"),
}

_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?![0-9])")
NEWER_FROM = (4, 7)


def family_of(model: str | None) -> Family:
    """The family of an API model id; the newer one for None and for names it cannot place."""
    found = _VERSION.search(model) if model else None
    if found is None:
        return FAMILIES["newer"]
    version = (int(found[1]), int(found[2] or 0))
    return FAMILIES["newer" if version >= NEWER_FROM else "older"]
