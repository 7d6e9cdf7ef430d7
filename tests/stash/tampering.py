"""What befalls a stash's files: bits flip, packs vanish, time passes."""

from __future__ import annotations

import os
from pathlib import Path

from lcc.stash import Stash, all_references
from lcc.stash.objects import Place


def place_of(stash: Stash, sha256: str) -> Place:
    """Where the object stands; there must be one copy."""
    (place,) = stash.places(sha256)
    return place


def stored_bytes(place: Place) -> int:
    """The object's bytes in its pack, header and all."""
    return place.stored_bytes - 48


def flip(place: Place, position: int, bit: int = 0) -> None:
    """Flip one bit of the object; a negative position counts from its end."""
    raw = bytearray(place.pack.read_bytes())
    at = place.offset + (position if position >= 0 else stored_bytes(place) + position)
    raw[at] ^= 1 << bit
    place.pack.write_bytes(raw)


def damage(stash: Stash, sha256: str) -> None:
    """Make the object unreadable."""
    flip(place_of(stash, sha256), -3)


def lose(stash: Stash, sha256: str) -> None:
    """Remove the pack of the object."""
    place_of(stash, sha256).pack.unlink()


def age_packs(stash: Stash, when: float) -> None:
    """Let every pack be last put at ``when``."""
    for pack in (stash.folder / "packs").glob("*.pack"):
        os.utime(pack, (when, when))


def age_references(stash: Stash, when: float) -> None:
    """Let every reference be of ``when``."""
    for each in all_references(stash.folder):
        lines = each.file.read_text().split("\n")
        each.file.write_text("\n".join(map(lambda line: _aged(line, when), lines)))  # noqa: C417


def _aged(line: str, when: float) -> str:
    words = line.split(" ")
    return " ".join([words[0], f"{when:.0f}", *words[2:]]) if len(words) == 3 and len(words[0]) == 64 else line


def object_folder(stash: Stash) -> Path:
    """Where the packs are."""
    return stash.folder / "packs"
