"""Replacing and removing values in a JSON document's bytes, everything else staying as it is written.

The document is walked only along the paths that are edited; every other value is skipped with one call
into the regular expression engine. All repeats are possessive, so nothing is ever tried twice and the
cost is linear in the bytes. The bytes must be valid JSON, as orjson reads it, or that with damage inside strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

import orjson

REMOVE = object()
"""The edit that takes an array's element away, with one comma."""

Trie: TypeAlias = "dict[str | int, Trie | bytes | object]"
"""Edits by path: an inner dict is the branch below a key or index; bytes replace the value; or ``REMOVE``."""

Cut: TypeAlias = "tuple[int, int, bytes]"
"""Start and end offset of what goes, and what comes in its place."""

_SPACE_PATTERN = rb"[ \t\n\r]*+"
_STRING = (
    rb'"(?:[^"]*+(?<!\\)"'  # up to the first quote, when no backslash stands before it
    rb'|(?:[^"]*+(?<=[^\\]\\)")*+[^"]*+(?<!\\)"'  # over quotes with a single backslash before them
    rb'|[^"\\]*+(?:\\.[^"\\]*+)*+")'  # any
)
"""The first two branches run from quote to quote, which is several times as fast as the third."""
_DEPTH = 8


def _value_pattern() -> bytes:
    """Any value nested at most ``_DEPTH`` deep. A pattern cannot recurse, so the nesting is written out."""
    nested = rb'[\[{][^][{}"]*+(?:' + _STRING + rb'[^][{}"]*+)*+[\]}]'
    for _ in range(_DEPTH - 1):
        nested = rb'[\[{][^][{}"]*+(?:(?:' + _STRING + rb"|" + nested + rb')[^][{}"]*+)*+[\]}]'
    return rb"(?:" + _STRING + rb"|[-+.0-9A-Za-z]++|" + nested + rb")"


_VALUE = re.compile(_value_pattern(), re.DOTALL)
_BETWEEN = _SPACE_PATTERN + rb",?+" + _SPACE_PATTERN
_COLON = _SPACE_PATTERN + rb":" + _SPACE_PATTERN
_ELEMENT = re.compile(_BETWEEN + _value_pattern(), re.DOTALL)
_KEY = re.compile(_BETWEEN + rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"' + _COLON, re.DOTALL)
_COMMA = re.compile(_BETWEEN)
_SPACE = re.compile(_SPACE_PATTERN)
_TOKEN = re.compile(rb'[^][{}"]++|' + _STRING + rb"|[][{}]", re.DOTALL)


def skip_value(raw: bytes, start: int) -> int:
    """The offset after the value that starts at ``start``. Raises ValueError where none does."""
    if raw[start : start + 1] == b'"':
        end = raw.find(b'"', start + 1)
        if end > 0 and raw[end - 1] != 0x5C:
            return end + 1
    found = _VALUE.match(raw, start)
    if found is not None:
        return found.end()
    depth = 0
    position = start
    if raw[start : start + 1] not in (b"[", b"{"):
        raise ValueError(f"no JSON value at offset {start}")
    while (token := _TOKEN.match(raw, position)) is not None:
        first = raw[position]
        position = token.end()
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
            if depth <= 0:
                break
    if depth != 0:
        raise ValueError(f"no JSON value at offset {start}")
    return position


class Splices:
    """The edits of one document, collected by path."""

    __slots__ = ("count", "root")

    def __init__(self) -> None:
        self.root: Trie = {}
        self.count = 0

    def add(self, path: Iterable[str | int], edit: bytes | object) -> None:
        """Take in one edit: the value's new bytes, or ``REMOVE``, which swallows every edit below it."""
        *above, last = path
        branch = self.root
        for step in above:
            below = branch.get(step)
            if below is None:
                branch[step] = below = {}
            elif not isinstance(below, dict):
                return
            branch = below
        self.count += 1 - _leaves(branch.get(last))
        branch[last] = edit

    def cuts(self, raw: bytes, start: int = 0) -> list[Cut]:
        """What changes in the document that starts at ``start``, in order.

        A path that does not lead to a value raises LookupError: an edit is never lost in silence.
        """
        cuts: list[Cut] = []
        _walk(raw, _SPACE.match(raw, start).end(), self.root, cuts)  # type: ignore[union-attr]
        if len(cuts) != self.count:
            raise LookupError(f"{self.count - len(cuts)} of the edited paths lead to no value")
        return cuts

    def apply(self, raw: bytes, start: int = 0, end: int | None = None) -> bytes:
        """The document in ``raw[start:end]`` with the edits made. Raises LookupError as ``cuts`` does."""
        return splice(raw, self.cuts(raw, start), start, end)


def splice(raw: bytes, cuts: Iterable[Cut], start: int = 0, end: int | None = None) -> bytes:
    """``raw[start:end]`` with the cuts made, which are in order and do not overlap."""
    view = memoryview(raw)  # its slices copy nothing
    pieces: list[bytes | memoryview] = []
    position = start
    for cut_start, cut_end, new in cuts:
        pieces.append(view[position:cut_start])
        pieces.append(new)
        position = cut_end
    pieces.append(view[position : len(raw) if end is None else end])
    return b"".join(pieces)


def _leaves(branch: object) -> int:
    """How many edits a branch holds."""
    if isinstance(branch, dict):
        return sum(map(_leaves, branch.values()))
    return 0 if branch is None else 1


def _walk(raw: bytes, start: int, trie: Trie, cuts: list[Cut]) -> int:
    """Record the cuts inside the value at ``start``, one for each edit; its end offset."""
    opening = raw[start]
    if opening == 0x7B:
        return _walk_members(raw, start + 1, trie, cuts)
    if opening == 0x5B:
        return _walk_array(raw, start + 1, trie, cuts)
    return skip_value(raw, start)


def _walk_member(raw: bytes, start: int, key: str | int, edit: object, cuts: list[Cut]) -> int:
    if isinstance(edit, dict):
        return _walk(raw, start, edit, cuts)
    if not isinstance(edit, bytes):
        raise LookupError(f"the member {key!r} of an object cannot be removed")
    end = skip_value(raw, start)
    cuts.append((start, end, edit))
    return end


def _walk_members(raw: bytes, position: int, trie: Trie, cuts: list[Cut]) -> int:
    """Of duplicate keys the last one counts: the cuts made for an earlier one are taken back."""
    made: list[tuple[bytes, int, int]] = []
    match_key, get = _KEY.match, trie.get
    while (found := match_key(raw, position)) is not None:
        key = found[1]
        start = found.end()
        edit = get(_name(key))
        if edit is None:
            position = skip_value(raw, start)
            continue
        low = len(cuts)
        position = _walk_member(raw, start, _name(key), edit, cuts)
        made.append((key, low, len(cuts)))
    if len(made) > 1:
        _take_back(made, cuts)
    if raw[position] == 0x7D:
        return position + 1
    return _SPACE.match(raw, position).end() + 1  # type: ignore[union-attr]


def _name(key: bytes) -> str:
    """A member's name, from between its quotes; in a damaged document one that nothing is called, if it must be."""
    if b"\\" in key:
        try:
            return str(orjson.loads(b'"%b"' % key))
        except orjson.JSONDecodeError:
            pass
    return key.decode(errors="replace")


def _take_back(made: list[tuple[bytes, int, int]], cuts: list[Cut]) -> None:
    """Leave only the cuts that were made for the last of duplicate keys."""
    last = {_name(key): low for key, low, _ in made}
    kept = set(last.values())
    for _, low, high in reversed(made):
        if low not in kept:
            del cuts[low:high]


def _walk_array(raw: bytes, position: int, trie: Trie, cuts: list[Cut]) -> int:
    """A removed element goes with the comma before it; one ahead of the first kept one, with that after."""
    kept = False
    leading: int | None = None
    match_element = _ELEMENT.match
    index = 0
    last = max((i for i in trie if isinstance(i, int)), default=-1)
    while True:
        edit = trie.get(index)
        index += 1
        if edit is None and leading is None and index <= last and (found := match_element(raw, position)) is not None:
            position = found.end()
            kept = True
            continue
        start = _COMMA.match(raw, position).end()  # type: ignore[union-attr]
        closing = raw[start] == 0x5D
        if leading is not None:
            cuts.append((leading, position if closing else start, b""))
            leading = None
        if closing:
            return start + 1
        if edit is REMOVE:
            end = skip_value(raw, start)
            if kept:
                cuts.append((position, end, b""))
            else:
                leading = start
            position = end
            continue
        kept = True
        if isinstance(edit, dict):
            position = _walk(raw, start, edit, cuts)
        else:
            position = skip_value(raw, start)
            if isinstance(edit, bytes):
                cuts.append((start, position, edit))
