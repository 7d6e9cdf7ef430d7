"""`orjson` for a Python that has only its standard library: what lcc uses of it, by `json`, with orjson's strictness.

On the path only where the plugin runs from its own sources without its libraries (`bin/from_sources.py`), behind
everything else, so that the real one is taken where it is there. It refuses what orjson refuses: NaN and infinity, a
lone surrogate, bytes that are no UTF-8, too deep a nesting. Slower, and a float may be written in another way.
"""

from __future__ import annotations

import json
import re
from json import JSONDecodeError
from typing import Any, NoReturn

__all__ = [
    "OPT_APPEND_NEWLINE",
    "OPT_INDENT_2",
    "OPT_SORT_KEYS",
    "JSONDecodeError",
    "JSONEncodeError",
    "dumps",
    "loads",
]

OPT_INDENT_2, OPT_SORT_KEYS, OPT_APPEND_NEWLINE = 1, 32, 1024
DEPTH = 1024
JSONEncodeError = TypeError
_MAY_BE_LONE = re.compile(r"\\u[dD][89abAB]|\\u[dD][c-fC-F]")
_LEAST, _MOST = -(2**63), 2**64 - 1
_SURE = 18
"""An integer of so many characters is within the limits."""


def loads(written: bytes | bytearray | memoryview | str) -> Any:
    """The value of a JSON text. Raises JSONDecodeError."""
    text = written if isinstance(written, str) else _text_of(bytes(written))
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise JSONDecodeError("Recursion limit reached", text, 0) from None
    except JSONDecodeError:
        raise
    except ValueError as error:
        raise JSONDecodeError(str(error), text, 0) from None
    if _MAY_BE_LONE.search(text):
        _refuse_lone(value, text)
    if text.count("[") + text.count("{") > DEPTH and _depth(value) > DEPTH:
        raise JSONDecodeError("Recursion limit reached", text, 0)
    return value


def dumps(value: Any, default: None = None, option: int = 0) -> bytes:
    """The value as JSON in UTF-8. Raises TypeError for what JSON or UTF-8 cannot hold."""
    indent, separators = (2, (",", ": ")) if option & OPT_INDENT_2 else (None, (",", ":"))
    try:
        text = json.dumps(
            value, ensure_ascii=False, indent=indent, separators=separators, sort_keys=bool(option & OPT_SORT_KEYS)
        )
        return text.encode() + b"\n" * bool(option & OPT_APPEND_NEWLINE)
    except (ValueError, RecursionError) as error:
        raise JSONEncodeError(str(error)) from None


def _text_of(written: bytes) -> str:
    try:
        return written.decode()
    except UnicodeDecodeError as error:
        before = written[: error.start].decode()
        raise JSONDecodeError("str is not valid UTF-8: surrogates not allowed", before, len(before)) from None


def _refuse_lone(value: Any, text: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        found = _MAY_BE_LONE.search(text)
        raise JSONDecodeError("no low surrogate in string", text, found.start() if found else 0) from None


def _depth(value: Any) -> int:
    """How deep it is nested, without recursion."""
    deepest, left = 0, [(value, 1)]
    while left:
        each, depth = left.pop()
        if isinstance(each, list | dict):
            deepest = max(deepest, depth)
            left += [(inner, depth + 1) for inner in (each.values() if isinstance(each, dict) else each)]
    return deepest


def _whole(digits: str) -> int | float:
    if len(digits) <= _SURE:
        return int(digits)
    return _real(digits) if len(digits) > 21 or not _LEAST <= int(digits) <= _MOST else int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return number


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"unexpected word {word}")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=_no_number)
