"""Line-based session files: splitting them into JSON documents, each found by its byte offsets.

Claude Code and Codex append to these files while they are read. A line may hold two documents with
nothing between them, blank lines and CR LF are kept as found, and only LF ends a line. What a crash, a full
disk or an editor left in them (NUL bytes, torn records, bytes that are no UTF-8) is damage: read around, kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from lcc.transcript.document import loads
from lcc.transcript.splice import skip_value
from lcc.transcript.values import Json, TranscriptError

_ESCAPE: Final = re.compile(
    rb'\\(?:["\\/bfnrt]'
    rb"|u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}"  # a pair of surrogates
    rb"|(?P<lone>u[Dd][89A-Fa-f][0-9A-Fa-f]{2})|u[0-9A-Fa-f]{4}|(?P<stray>))"
)
_BLANK: Final = re.compile(rb"[ \t\r]*+")
KEPT: Final = "this line is kept as it is"
UNREAD: Final = "this line is not read, and is kept as it is"


class Document(NamedTuple):
    """One JSON object of the file: its offsets in the bytes, its line number (from 1), its value."""

    start: int
    end: int
    line: int
    value: dict[str, Json]
    """Empty for what cannot be read at all."""
    damage: str | None
    """What is wrong with it, in words for people, where it was read around: nothing in it may then be changed."""


def split(raw: bytes, start: int = 0, line: int = 1, *, strict: bool = False) -> Iterator[Document]:
    """The documents of ``raw[start:]``, whose first line is number ``line``.

    What cannot be read is damage, and with ``strict`` a TranscriptError with line and column. Some damage is
    read as the clients read it: bytes that are no UTF-8 and halves of a surrogate pair stand for U+FFFD. So is
    a backslash before a character that needs none, strict or not: published sessions have such lines (a masking
    tool's work), sound in everything else.
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
            yield from _odd_line(raw, start, end, line, strict)
        else:
            if isinstance(value, dict):
                yield Document(start, end, line, value, None)
            else:
                yield _unread(start, end, "a line must hold an object", f"line {line}, column 1", strict)
        start = end + 1
        line += 1


def _odd_line(raw: bytes, start: int, end: int, line: int, strict: bool) -> Iterator[Document]:
    """A line that is not one plain document: blank, several in a row, or damaged.

    A line of which a part cannot be read is not read at all, as its client does. Of two records on a line the
    client sees the first alone; the second is read, for nothing that was said may be lost, but it is damage.
    """
    text = raw[start:end]
    if text.startswith(b"\0"):
        yield _unread(start, end, "NUL bytes, such as a power loss leaves", f"line {line}, column 1", strict)
        return
    found: list[Document] = []
    position = _BLANK.match(text).end()  # type: ignore[union-attr]
    while position < len(text):
        try:
            stop = skip_value(text, position)
        except ValueError:
            stop = len(text)
        before = text[:position].decode(errors="replace")
        try:
            value, damage = _value(text[position:stop], before, line, strict)
            if not isinstance(value, dict):
                raise TranscriptError("a line must hold objects only", f"line {line}, column {len(before) + 1}")
        except TranscriptError as error:
            yield _unread(start, end, error.problem, error.place, strict)
            return
        if found and damage is None and not strict:
            damage = (
                f"line {line}, column {len(before) + 1}: a second record on the line, which clients pass over; {KEPT}"
            )
        found.append(Document(start + position, start + stop, line, value, damage))
        position = _BLANK.match(text, stop).end()  # type: ignore[union-attr]
    yield from found


def _unread(start: int, end: int, problem: str, place: str, strict: bool) -> Document:
    if strict:
        raise TranscriptError(problem, place)
    return Document(start, end, int(place.split(",")[0].removeprefix("line ")), {}, f"{place}: {problem}; {UNREAD}")


def _value(piece: bytes, before: str, line: int, strict: bool) -> tuple[Json, str | None]:
    """A document's value, and its damage where it was read around.

    Raises TranscriptError; its column counts from the start of the line, whose part ahead of ``piece`` is ``before``.
    """
    try:
        value: Json = orjson.loads(piece)
    except orjson.JSONDecodeError as error:
        mended = _ESCAPE.sub(_literal_backslash if strict else _readable, piece if strict else _utf8(piece))
        try:
            value = orjson.loads(mended) if mended != piece else None
        except orjson.JSONDecodeError:
            value = None
        if value is None:
            loads(b" " * len(before) + piece, line)
            raise TranscriptError("not valid JSON", f"line {line}") from None
        problem, column = _problem(piece, error)
        return value, f"line {line}, column {len(before) + column}: {problem}; {KEPT}"
    return value, None


def _problem(piece: bytes, error: orjson.JSONDecodeError) -> tuple[str, int]:
    """What is wrong with a piece that could be read around, and at which of its columns (from 1)."""
    try:
        piece.decode()
    except UnicodeDecodeError as invalid:
        return f"byte 0x{piece[invalid.start]:02x} is not valid UTF-8", invalid.start + 1
    return error.msg, error.colno


def _utf8(piece: bytes) -> bytes:
    return piece if piece.isascii() else piece.decode("utf-8", "replace").encode()


def _literal_backslash(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape["stray"] is None else b"\\\\"


def _readable(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape["lone"] is not None else _literal_backslash(escape)
