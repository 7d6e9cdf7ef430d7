"""One JSON document's bytes to values, and every way in which that can fail, with its place.

orjson does the reading; what it refuses (NaN, a lone surrogate, nesting deeper than 1024, a byte order
mark, bytes that are no UTF-8) is refused here, in words that say where. Of duplicate keys in an object
the last one counts, as for every client that wrote such a file.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Final, NoReturn

import orjson

from lcc.transcript.values import Json, Path, TranscriptError

BOM: Final = codecs.BOM_UTF8
_FOREIGN_BOMS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def loads(raw: bytes | memoryview, line: int = 1) -> Json:
    """Parse one document. ``line`` is the number of its first line, for the place of an error."""
    try:
        value: Json = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        _refuse(bytes(raw), error, line)
    return value


def _refuse(raw: bytes, error: orjson.JSONDecodeError, line: int) -> NoReturn:
    """Raise the TranscriptError that says what orjson found, and where."""
    try:
        raw.decode()
    except UnicodeDecodeError as invalid:
        before = raw[: invalid.start]
        column = invalid.start - before.rfind(b"\n")
        place = f"line {line + before.count(10)}, column {column}"
        raise TranscriptError(f"byte 0x{raw[invalid.start]:02x} is not valid UTF-8", place) from None
    place = f"line {line + error.lineno - 1}, column {error.colno}"
    at_end = error.pos >= len(error.doc.rstrip())
    problem = "the JSON document is cut off" if at_end else f"not valid JSON: {error.msg}"
    raise TranscriptError(problem, place) from None


def refuse_foreign_encoding(raw: bytes, name: str) -> None:
    """Raise TranscriptError for an empty input, and for one that is not UTF-8 text by its first bytes."""
    for bom, encoding in _FOREIGN_BOMS:
        if raw.startswith(bom):
            raise TranscriptError(f"the text is {encoding}, not UTF-8", "line 1, column 1")
    # Two NUL bytes and no bracket behind a third: no encoding of JSON begins so, but what a power loss leaves.
    if b"\0" in raw[:4] and (raw[:2] != b"\0\0" or raw[3:4] in (b"{", b"[")):
        raise TranscriptError("the text is UTF-16 or UTF-32, or binary, not UTF-8", "line 1, column 1")
    if not raw or raw.isspace() or (raw[:3] == BOM and not raw[3:].strip()):
        raise TranscriptError("the input is empty", name)


def json_path(path: Iterable[str | int]) -> str:
    """``("messages", 3, "text")`` as ``messages[3].text``."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).removeprefix(".")


def refuse(problem: str, path: Path) -> NoReturn:
    """Raise TranscriptError at a JSON path."""
    raise TranscriptError(problem, json_path(path))


def kind(value: object) -> str:
    """What JSON calls this value, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list | tuple):
        return "an array"
    return "an object" if isinstance(value, dict) else f"a Python {type(value).__name__}"
