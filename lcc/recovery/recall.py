"""Recalling a removed output: which part of it to show, and in pages that do not flood a context.

Lines end at LF alone, and are counted from 1. Choosing and paging are pure; only a search with a regular
expression starts a process, because a bad expression can run for ever and must be stopped.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from lcc.contract.notes import find_note
from lcc.stash import Stash, text_of_bytes

PAGE_CHARS = 16_000
"""About 5,000 tokens: less than what an agent's own tools may print."""
MAX_PAGE_CHARS = 60_000
GREP_SECONDS = 5.0
_LINES = re.compile(r"([1-9][0-9]{0,11})(?:(-)([1-9][0-9]{0,11})?)?", re.ASCII)
_META = frozenset("\\.^$*+?{}[]|()")
_SEARCH = """
import re, sys
wanted = re.compile(sys.argv[1])
for number, line in enumerate(sys.stdin.buffer.read().decode("utf-8", "surrogatepass").split("\\n"), 1):
    if wanted.search(line):
        print(number)
"""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
)


class RecallError(ValueError):
    """A part that cannot be given; the message says what to ask for instead."""


class Part(NamedTuple):
    """What is asked of a text. ``lines`` and ``grep`` narrow it down; ``offset`` is where in that to begin."""

    lines: tuple[int, int | None] | None = None
    """First and last line, both included; None for the last: to the end."""
    grep: str | None = None
    """A text or a regular expression; the lines that hold it are shown as ``<number>:<line>``."""
    offset: int = 0
    """In characters of the narrowed-down text, from 0."""


class Page(NamedTuple):
    """A piece of what was asked, ``start`` to ``end`` in characters of ``total``; ``next`` is where it goes on."""

    text: str
    start: int
    end: int
    total: int
    next: int | None


class Recalled(NamedTuple):
    """An object from the stash. ``text`` is None for bytes that are no text; ``image`` is then png, jpeg … or None."""

    sha256: str
    content: bytes
    text: str | None
    image: str | None


def recall(stash: Stash, object_id: str) -> Recalled:
    """The object whose id begins with ``object_id``. Raises ``StashError`` or ``OSError``."""
    sha256 = stash.resolve(object_id)
    content = stash.get(sha256)
    image = image_type(content)
    return Recalled(sha256, content, None if image else text_of_bytes(content), image)


def id_in(asked: str) -> str:
    """The id in a note of the stash that was given whole; what was given, where it is no note."""
    note = find_note(asked.strip())
    return note.target if note is not None and note.kind == "stash" and note.target else asked.strip()


def image_type(content: bytes) -> str | None:
    """Which kind of image the bytes are, by their first ones (png, jpeg, gif, webp); None for anything else."""
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp"
    return next((name for signature, name in _SIGNATURES if content.startswith(signature)), None)


def media_type(content: bytes) -> str | None:
    """The type of what a client shows beside text, an image or a PDF, by its first bytes; None for anything else."""
    image = image_type(content)
    if image:
        return f"image/{image}"
    return "application/pdf" if content.startswith(b"%PDF-") else None


def parse_lines(written: str) -> tuple[int, int | None]:
    """``a-b``, ``a-`` or ``a`` as first and last line. Raises ``RecallError``."""
    match = _LINES.fullmatch(written.strip())
    if not match:
        raise RecallError(f"lines {written!r}: give a-b, a- or a, counted from 1")
    first = int(match[1])
    last = int(match[3]) if match[3] else (None if match[2] else first)
    if last is not None and last < first:
        raise RecallError(f"lines {written!r}: the last line is before the first")
    return first, last


def page_of(text: str, part: Part, limit: int = PAGE_CHARS) -> Page:
    """The page of ``text`` that ``part`` asks for, at most ``limit`` characters, ended at a line's end if one is near.

    Pages put together are the whole. Raises ``RecallError`` for lines or an offset beyond the end, an
    expression that is none, and one that matches nothing or takes too long.
    """
    narrowed = _narrow(text, part)
    if part.offset < 0 or (part.offset and part.offset >= len(narrowed)):
        raise RecallError(f"offset {part.offset}: there are {len(narrowed)} characters, counted from 0")
    end = min(part.offset + limit, len(narrowed))
    if end < len(narrowed):
        line_end = narrowed.rfind("\n", part.offset + limit // 2, end)
        end = line_end + 1 if line_end >= 0 else end
    following = end if end < len(narrowed) else None
    return Page(narrowed[part.offset : end], part.offset, end, len(narrowed), following)


def _narrow(text: str, part: Part) -> str:
    if part.lines is None and part.grep is None:
        return text
    lines = text.split("\n")
    first, last = part.lines or (1, None)
    if first > len(lines):
        raise RecallError(f"line {first}: there are {len(lines)} lines")
    chosen = lines[first - 1 : last]
    if part.grep is None:
        return "\n".join(chosen)
    found = _matching(chosen, part.grep)
    if not found:
        raise RecallError(f"no line matches {part.grep!r}; there are {len(chosen)} lines")
    return "\n".join(f"{first + index}:{chosen[index]}" for index in found)


def _matching(lines: list[str], pattern: str) -> list[int]:
    """The indexes of the lines that match ``pattern``; where none does, of those that hold it letter by letter."""
    holding = [index for index, line in enumerate(lines) if pattern in line]
    if not _META & set(pattern):
        return holding
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        if holding:
            return holding
        raise RecallError(f"{pattern!r} stands in no line, and is no regular expression ({error})") from None
    return _matching_expression(lines, pattern) or holding


def _matching_expression(lines: list[str], pattern: str) -> list[int]:
    import subprocess  # loaded for a search alone

    command = [sys.executable, "-I", "-S", "-c", _SEARCH, pattern]
    try:
        found = subprocess.run(
            command,
            input="\n".join(lines).encode("utf-8", "surrogatepass"),
            capture_output=True,
            timeout=GREP_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise RecallError(f"{pattern!r} took more than {GREP_SECONDS:g} s; use a simpler expression") from None
    except (OSError, ValueError, subprocess.CalledProcessError):
        raise RecallError(f"{pattern!r} could not be searched for; use a simpler expression") from None
    return [int(number) - 1 for number in found.stdout.split()]
