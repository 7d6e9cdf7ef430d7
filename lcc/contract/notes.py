"""The one-line notes that stand in for a removed output: writing them, and recognising them.

The forms are in use by other programs and never change (the report-format page; `lcc/README.md`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

VERIFIED = "; content verified on disk at compaction time"
REMINDER_START = "\n\n<system-reminder>"
REMINDER_END = "</system-reminder>"

# A call's id, of printable ASCII without spaces and square brackets; with the part where its result has several.
_ID = r"[!-Z^-~]+(?: part [1-9][0-9]{0,8})?"
_LINES = r"([1-9][0-9]{0,17})-([1-9][0-9]{0,17})"
_NOTE = re.compile(
    rf"\[identical output kept at (?P<identical>{_ID})\]"
    rf"|\[output = lines (?P<range>{_LINES}) of (?P<within>{_ID})\]"
    rf"|\[removed: re-read (?P<path>[^\n]+?)(?: \(lines (?P<lines>{_LINES})\))? to recover"
    rf"(?P<verified>{re.escape(VERIFIED)})?\]"
    r"|\[removed: re-run `(?P<command>[^`\n]+)` to recover\]"
    r"|\[removed: (?P<tokens>[0-9]+) tokens · lcc recall (?P<sha>[0-9a-f]{12,64})\]"
)
_EXCERPT = re.compile(
    r"\[it holds(?!\])(?: (?P<lines>[1-9][0-9]{0,11}) lines)?(?:: (?P<tokens>[^\s\[\]]+(?: [^\s\[\]]+)*))?\]"
)
MANY_LINES = 40
"""From this many lines on a note says how many the output has, so that a part of it can be asked for."""
_TOKEN = re.compile(r"[^\s\[\]]+")
_ID_ONLY = re.compile(_ID)
_ENDS_LIKE_LINES = re.compile(r" \(lines [0-9]+-[0-9]+\)\Z")
_LONGEST_POINTED = 4096  # characters of a path or command; no system opens a longer path
_LONGEST_NOTE = 5000  # characters; longer texts are not worth a look

NoteKind = Literal["identical", "lines", "file", "command", "stash"]


class Note(NamedTuple):
    """A recognised note. Fields that its kind does not use are None."""

    kind: NoteKind
    target: str | None = None
    """The text id it points at, the path, the command, or the first 12 hex digits of the stashed object."""
    lines: tuple[int, int] | None = None
    verified: bool = False
    text: str = ""
    """The note as it stands, with its excerpt."""
    excerpt: tuple[str, ...] = ()
    """Tokens of the removed output, word for word, that stand behind a note of the stash."""
    line_count: int | None = None
    """How many lines the removed output has, where the note of the stash says it."""


def identical_note(text_id: str) -> str | None:
    """The note for an output that a later result repeats; None when its text id cannot be written in a note."""
    return f"[identical output kept at {text_id}]" if _ID_ONLY.fullmatch(text_id) else None


def lines_note(first: int, last: int, text_id: str) -> str | None:
    """The note for an output that is lines ``first`` to ``last`` (1-based, inclusive) of a later result."""
    return f"[output = lines {first}-{last} of {text_id}]" if _ID_ONLY.fullmatch(text_id) else None


def reread_note(path: str, lines: tuple[int, int] | None, *, verified: bool) -> str | None:
    """The note for an output that is in a file; None when the path cannot be written unambiguously."""
    if not _one_line(path) or " to recover" in path or _ENDS_LIKE_LINES.search(path):
        return None
    span = f" (lines {lines[0]}-{lines[1]})" if lines else ""
    return f"[removed: re-read {path}{span} to recover{VERIFIED if verified else ''}]"


def rerun_note(command: str) -> str | None:
    """The note for the output of a read-only command; None when it cannot be written unambiguously."""
    return f"[removed: re-run `{command}` to recover]" if _one_line(command) and "`" not in command else None


def stash_note(tokens: int, sha256: str, digits: int = 12) -> str:
    """The note for an output that the stash holds under ``sha256`` (64 hex digits), named by its first ``digits``."""
    return f"[removed: {tokens} tokens · lcc recall {sha256[:digits]}]"


def excerpt_line(tokens: Sequence[str], lines: int = 0) -> str:
    """What stands behind a note of the stash: how many lines the output has, where they are many, and the tokens.

    "" where there is neither. A token with a blank or a square bracket in it, or that cannot be printed, cannot be
    written.
    """
    fit = [token for token in tokens if token and _TOKEN.fullmatch(token) and token.isprintable()]
    counted = f" {lines} lines" if lines >= MANY_LINES else ""
    words = f": {' '.join(fit)}" if fit else ""
    return f"\n[it holds{counted}{words}]" if counted or words else ""


def count_lines(text: str) -> int:
    """The lines of an output, each ended by LF or by the end."""
    return text.count("\n") + (not text.endswith("\n"))


def trim_note(dropped: int, tool: str) -> str:
    """The line that says how many characters of which tool's output a trim took away; it is no pointer."""
    name = "".join(c if c.isprintable() else "?" for c in tool)
    return f"[trimmed: {dropped} characters of this {name} output were removed]"


def find_note(text: str) -> Note | None:
    """The note that ``text`` is, or begins with when only the output's last newline and a client reminder follow it."""
    if not text.startswith("["):
        return None
    head, excerpt = text, None
    if len(text) > _LONGEST_NOTE or "\n" in text:
        head, _, rest = text[:_LONGEST_NOTE].partition("\n")
        excerpt = _EXCERPT.fullmatch(rest)
        if excerpt is None and len(text) > len(head) + 1 and not _is_left_behind(text, len(head)):
            return None
    match = _NOTE.fullmatch(head)
    if match is None:
        return None
    note = _note_of(match, head)
    if excerpt is None:
        return note
    if note.kind != "stash":
        return None
    tokens = tuple(excerpt["tokens"].split(" ")) if excerpt["tokens"] else ()
    return note._replace(text=text, excerpt=tokens, line_count=int(excerpt["lines"]) if excerpt["lines"] else None)


def _is_left_behind(text: str, position: int) -> bool:
    """Whether all from ``position`` on, a newline, is a reminder, or the output's last newline and a reminder."""
    return reminder_follows(text, position) or reminder_follows(text, position + 1)


def reminder_follows(text: str, position: int) -> bool:
    """Whether all of ``text`` from ``position`` on is what the client put behind a tool's output."""
    return text.startswith(REMINDER_START, position) and text.rstrip("\n").endswith(REMINDER_END)


def _note_of(match: re.Match[str], text: str) -> Note:
    if match["identical"]:
        return Note("identical", match["identical"], text=text)
    if match["within"]:
        return Note("lines", match["within"], _span(match["range"]), text=text)
    if match["path"]:
        lines = _span(match["lines"]) if match["lines"] else None
        return Note("file", match["path"], lines, bool(match["verified"]), text=text)
    if match["command"]:
        return Note("command", match["command"], text=text)
    return Note("stash", match["sha"], text=text)


def _span(written: str) -> tuple[int, int]:
    first, _, last = written.partition("-")
    return int(first), int(last)


def _one_line(value: str) -> bool:
    return 0 < len(value) <= _LONGEST_POINTED and value.isprintable() and value == value.strip()
