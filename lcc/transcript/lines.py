"""Line-based session files: splitting them into JSON documents, each found by its byte offsets.

Claude Code and Codex append to these files while they are read. A line may hold two documents with
nothing between them, blank lines and CR LF are kept as found, and only LF ends a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

import orjson

from lcc.transcript.document import loads
from lcc.transcript.splice import skip_value
from lcc.transcript.values import Json, TranscriptError

_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}|())')
_BLANK = re.compile(rb"[ \t\r]*+")


class Document(NamedTuple):
    """One JSON object of the file: its offsets in the bytes, its line number (from 1), its value."""

    start: int
    end: int
    line: int
    value: dict[str, Json]
    damage: str | None
    """What is wrong with it, where it could be read in spite of that: nothing in it may then be changed."""


def split(raw: bytes, start: int = 0, line: int = 1) -> Iterator[Document]:
    """The documents of ``raw[start:]``, whose first line is number ``line``.

    Raises TranscriptError with line and column for what is not JSON, or not an object.
    """
    view = memoryview(raw)
    size = len(raw)
    while start < size:
        end = raw.find(b"\n", start)
        if end < 0:
            end = size
        try:
            value = orjson.loads(view[start:end])
        except orjson.JSONDecodeError:
            yield from _odd_line(raw, start, end, line)
        else:
            if not isinstance(value, dict):
                raise TranscriptError("a line must hold an object", f"line {line}, column 1")
            yield Document(start, end, line, value, None)
        start = end + 1
        line += 1


def _odd_line(raw: bytes, start: int, end: int, line: int) -> Iterator[Document]:
    """A line that is not one plain document: blank, several in a row, or damaged.

    One kind of damage is read around: a backslash before a character that needs none. Published sessions
    have such lines (a masking tool's work), sound in everything else. The backslash is taken as written.
    """
    text = raw[start:end]
    position = _BLANK.match(text).end()  # type: ignore[union-attr]
    while position < len(text):
        try:
            stop = skip_value(text, position)
        except ValueError:
            stop = len(text)
        piece = text[position:stop]
        damage = None
        try:
            value: Json = orjson.loads(piece)
        except orjson.JSONDecodeError as error:
            mended = _ESCAPE.sub(_literal_backslash, piece)
            if mended == piece:
                _refuse_at(piece, text[:position], line)
            try:
                value = orjson.loads(mended)
            except orjson.JSONDecodeError:
                _refuse_at(piece, text[:position], line)
            column = len(text[:position].decode(errors="replace")) + error.colno
            damage = f"line {line}, column {column}: {error.msg}; this line is kept as it is"
        if not isinstance(value, dict):
            column = len(text[:position].decode(errors="replace")) + 1
            raise TranscriptError("a line must hold objects only", f"line {line}, column {column}")
        yield Document(start + position, start + stop, line, value, damage)
        position = _BLANK.match(text, stop).end()  # type: ignore[union-attr]


def _literal_backslash(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape[1] is None else b"\\\\"


def _refuse_at(piece: bytes, before: bytes, line: int) -> NoReturn:
    """Raise the TranscriptError for ``piece``, its columns counted from the start of the line."""
    loads(b" " * len(before.decode(errors="replace")) + piece, line)
    raise TranscriptError("not valid JSON", f"line {line}")
