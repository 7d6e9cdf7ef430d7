"""JSON as it is sent: compact, UTF-8, and never refused because of what a transcript holds."""

from __future__ import annotations

import json

import orjson

from lcc.transcript import Json

TOO_DEEP = "[nested too deeply to be shown]"


def dumps(value: Json) -> str:
    """``value`` as compact JSON text that can be encoded as UTF-8; a lone surrogate becomes ``?``."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):  # a lone surrogate, an integer over 64 bits, or deep nesting
        pass
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return f'"{TOO_DEEP}"'
    return text.encode("utf-8", "replace").decode()


def cut(text: str, limit: int) -> str:
    """The first ``limit`` characters, with a mark where something was cut."""
    return text if len(text) <= limit else text[:limit] + "…"


def one_line(value: Json, limit: int) -> str:
    """The telling part of a tool input on one line of at most ``limit`` characters (and a mark).

    The values of an object are given without their keys, in order; anything else as JSON.
    """
    parts: list[str] = []
    length = 0
    for item in value.values() if isinstance(value, dict) else (value,):
        if length > limit:
            break
        part = item[: limit + 1] if isinstance(item, str) else cut(dumps(item), limit)
        part = " ".join(part.split())
        if part:
            parts.append(part)
            length += len(part)
    return cut(", ".join(parts), limit)
