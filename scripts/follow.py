"""Follows the notes of a compacted transcript, without any code of the programs that wrote them.

Given the messages before and after, every changed result is judged: can what was there be had again, byte for
byte, from the transcript that is left, from a file, or from a stash? Works on the notes of lcc and of
local-context-compiler alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

Kind = Literal["identical", "lines", "file", "stash", "command", "trimmed", "dropped"]

_IDENTICAL = re.compile(r"\[identical output kept at (.+)\]")
_LINES = re.compile(r"\[output = lines (\d+)-(\d+) of (.+)\]")
_FILE = re.compile(
    r"\[removed: re-read (.+?)(?: \(lines (\d+)-(\d+)\))?(?: \(cwd (.+)\))? to recover"
    r"(?:; content verified on disk at compaction time)?\]"
)
_STASH = re.compile(
    r"\[removed: \d+ tokens · lcc recall ([0-9a-f]{12,64})\]"
    r"(?:\n\[it holds(?: \d+ lines)?(?:: (\S+(?: \S+)*))?\])?"
)
_COMMAND = re.compile(r"\[removed: re-run `(.+)`.* to recover\]")
_ROW = re.compile(r"\s*(\d+)(\t|→)(.*)", re.DOTALL)
_HEADER = re.compile(r"(?:(?:Chunk ID|Wall time|Original token count|Process exited|Exit code)\b[^\n]*\n)+Output:\n")
_VOLATILE = re.compile(r"(?:Chunk ID|Wall time|Original token count):[^\n]*\n")


class Followed(NamedTuple):
    """A changed result: by what it was replaced, whether the original came back, and where it is now."""

    kind: Kind
    works: bool
    target: str | None
    """The id, the file or the stash id that the note names."""


def results_of(messages: list[dict[str, Any]]) -> dict[str, str]:
    """The text of every result, by call id. Ids that occur twice are left out."""
    found = [(r["tool_use_id"], r["text"]) for m in messages for r in m.get("toolResults", [])]
    times = Counter(name for name, _ in found)
    return {name: text for name, text in found if times[name] == 1}


def follow(
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
    recall: Callable[[str], str | None] | None = None,
) -> dict[str, Followed]:
    """Every result that is not as it was, by call id. ``recall`` fetches a text from the stash by its id."""
    old, new = results_of(before), results_of(after)
    return {
        name: _follow(text, new[name], old, new, recall) if name in new else Followed("dropped", False, None)
        for name, text in old.items()
        if new.get(name) != text
    }


def _follow(
    text: str,
    note: str,
    old: Mapping[str, str],
    new: Mapping[str, str],
    recall: Callable[[str], str | None] | None,
) -> Followed:
    head, newline, rest = note.partition("\n")
    rest = newline + rest
    body = text.removesuffix(rest) if rest else text
    if found := _IDENTICAL.fullmatch(head):
        kept = new.get(found[1])
        same = kept is not None and kept == old.get(found[1]) and _comparable(kept) == _comparable(text)
        return Followed("identical", same and not rest, found[1])
    if found := _LINES.fullmatch(head):
        kept = new.get(found[3])
        lines = kept.split("\n") if kept is not None and kept == old.get(found[3]) else []
        first, last = int(found[1]), int(found[2])
        same = 1 <= first <= last <= len(lines) and "\n".join(lines[first - 1 : last]) == text
        return Followed("lines", same, found[3])
    if found := _FILE.fullmatch(head):
        span = (int(found[2]), int(found[3])) if found[2] else None
        path = Path(found[4] or "/", found[1])
        return Followed("file", text.endswith(rest) and _file_gives(body, path, span), str(path))
    if found := _STASH.fullmatch(note):
        excerpt = found[2].split(" ") if found[2] else []
        same = recall is not None and recall(found[1]) == text
        return Followed("stash", same and all(token in text for token in excerpt), found[1])
    if _COMMAND.fullmatch(head):
        return Followed("command", False, None)
    return Followed("trimmed", False, None)


def _comparable(text: str) -> str:
    """A text without the header lines that differ on every run of the same command."""
    header = _HEADER.match(text)
    return _VOLATILE.sub("", header[0]) + text[header.end() :] if header else text


def _file_gives(body: str, path: Path, span: tuple[int, int] | None) -> bool:
    """Whether the file's lines are the removed output, numbered as they were or bare."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError):
        return False
    header = _HEADER.match(body)
    body = body[header.end() :] if header else body
    lines = text.split("\n")
    if span is not None:
        if span[1] > len(lines):
            return False
        lines = lines[span[0] - 1 : span[1]]
    rows = [_ROW.fullmatch(row) for row in body.split("\n")]
    if all(rows):
        first = int(rows[0][1]) if rows[0] else 0
        numbers = [int(row[1]) for row in rows if row]
        shown = [row[3] for row in rows if row]
        starts = (span[0],) if span and span[0] > 1 else (0, 1)
        in_order = first in starts and numbers == list(range(first, first + len(rows)))
        if in_order and (shown == lines or ([*shown, ""] == lines and span is None)):
            return True
    whole = "\n".join(lines)
    return body == whole or (span is not None and body == whole + "\n")
