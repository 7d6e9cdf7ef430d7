"""What of a removed result is worth keeping beside its note: the paths and ids that stand nowhere else."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from lcc.relevance.need.points import Feature
from lcc.relevance.need.words import last_word

MOST_PATHS: Final = 30
MOST_CHARS: Final = 1500
MOST_IDS: Final = 12

_PATH = re.compile(r"(?<![\w./@:%~+-])[\w.@%+~-]*+(?:/[\w.@%+~-]++)+")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}\Z")
_HEX = re.compile(r"(?<![\w./-])(?=[0-9]*[a-f])[0-9a-f]{7,40}(?![\w/-])")
_HEX_WORD = re.compile(rb"(?=[0-9]*[a-f])[0-9a-f]{7,40}")
_HEX_DIGITS: Final = b"0123456789abcdef"
_AGENT = re.compile(r"^agentId: ([\w-]+)", re.MULTILINE)
_WITHOUT: Final[frozenset[Feature | None]] = frozenset({"read", "web", "plan", "write"})
_WITHOUT_IDS: Final[frozenset[Feature | None]] = frozenset({"search"})


def names_among(words: Iterable[bytes]) -> Iterator[bytes]:
    """The names that ``words`` hold: paths by their last two parts, and ids."""
    for word in words:
        if b"/" in word:
            yield path_tail(word)
        elif not word.strip(_HEX_DIGITS) and _HEX_WORD.fullmatch(word):
            yield word


def path_tail(path: bytes) -> bytes:
    """The last two parts of a path: what it is known by in any spelling."""
    return b"/".join(path.strip(b"./-").rsplit(b"/", 2)[-2:])


def excerpt_of(text: str, group: Feature | None, known: Collection[bytes]) -> tuple[str, ...]:
    """The tokens of ``text`` to keep beside its note, in its order, each of them verbatim in it.

    ``group`` is what kind of result it is; reads, web pages, plans and writes have none. ``known`` are the names
    that stand elsewhere already. At most 30 paths and 1,500 characters of them; ids where they are few.
    """
    if group in _WITHOUT:
        return ()
    tokens: dict[str, None] = dict.fromkeys(_paths(text, known))
    if group not in _WITHOUT_IDS:
        ids = dict.fromkeys(_HEX.findall(text))
        new = [each for each in ids if each.encode() not in known]
        if len(new) <= MOST_IDS:
            tokens.update(dict.fromkeys(new))
    if group == "agent":
        tokens.update(dict.fromkeys(_AGENT.findall(text)))
    return tuple(tokens)


def _paths(text: str, known: Collection[bytes]) -> Iterator[str]:
    if "/" not in text:
        return
    seen: set[bytes] = set()
    size = 0
    for found in _PATH.finditer(text):
        path = found[0].rstrip(".")
        if not _EXTENSION.search(path):
            continue
        tail = path_tail(last_word(path))
        if tail in known or tail in seen:
            continue
        seen.add(tail)
        size += len(path) + 1
        if size > MOST_CHARS or len(seen) > MOST_PATHS:
            return
        yield path
