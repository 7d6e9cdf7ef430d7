"""Whether a file holds exactly what a read printed, and which of its lines (the seed's section 5, form `disk`).

A range of lines `a-b` means the lines joined by LF, without the newline that ends line b. What a proof does
not cover (a client reminder, a command's last newline) is left standing behind the note.
"""

from __future__ import annotations

from typing import NamedTuple

from lcc.relevance.reading.calls import FileRead
from lcc.relevance.reading.rows import Rows, content_end, number_lines, parse_rows


class ProvenPart(NamedTuple):
    """The part ``start`` to ``end`` of a result's text is lines ``lines`` of the file; None: all of the file."""

    lines: tuple[int, int] | None
    start: int
    end: int


class FileText:
    """A file's text, with its lines split once for all of the reads that are compared with it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines: list[str] | None = None

    @property
    def lines(self) -> list[str]:
        """The lines, ended by LF alone; the last one is empty when the file ends with a newline."""
        if self._lines is None:
            self._lines = self.text.split("\n")
        return self._lines


def prove_read(read: FileRead, text: str, start: int, file: FileText) -> ProvenPart | None:
    """The proof that ``text`` from ``start`` on is what ``read`` prints of ``file`` as it is now, or None."""
    if read.numbered and start == 0:
        rows = parse_rows(text)
        if rows and not _are_numbers(read, rows):
            rows = None
        proof = _prove_rows(read, text, rows, file) if rows else None
        if proof or not read.by_tool:
            return proof
    if read.by_tool:
        end = content_end(text)
        if end < len(text):
            proof = _prove_plain(read, text, start, end, file)
            if proof:
                return proof
    return _prove_plain(read, text, start, len(text), file)


def _are_numbers(read: FileRead, rows: Rows) -> bool:
    """Whether rows are known to be numbered by the tool, and are not a file's own first column.

    A bare number and a tab is how a table begins too. Known are the commands that number, the tool whose rows always
    are, the arrow, and a part of a file whose first row has the number of the line that was asked for.
    """
    if not read.by_tool or read.always_rows or rows.separator != "\t":
        return True
    return read.span is not None and 1 < read.span.first == rows.first


def _prove_rows(read: FileRead, text: str, rows: Rows, file: FileText) -> ProvenPart | None:
    first = rows.first_line
    last = first + rows.total - 1
    lines = file.lines
    if last > len(lines):
        return None
    shown = lines[first - 1 : last]
    # Lengths first: a tool cuts long lines, and one line of a file may be all of its megabytes.
    if sum(map(len, shown)) > rows.end or number_lines(shown, rows) != text[: rows.end]:
        return None
    whole = read.span is None and first == 1 and last == len(lines)
    return ProvenPart(None if whole else (first, last), 0, rows.end)


def _prove_plain(read: FileRead, text: str, start: int, end: int, file: FileText) -> ProvenPart | None:
    body = text[start:end]
    if read.span is None and read.tail is None and body == file.text:
        return ProvenPart(None, start, end)
    lines = file.lines
    count = body.count("\n") + 1
    if read.tail is not None:
        present = len(lines) - (lines[-1] == "")
        first = max(1, present - read.tail + 1)
    else:
        first = read.span.first if read.span else 1
    last = first + count - 1
    # What follows the newline that ends the file is no line of it.
    behind_end = count > 1 and last == len(lines) and lines[-1] == ""
    if not behind_end and last <= len(lines) and _are_lines(body, lines[first - 1 : last]):
        return ProvenPart((first, last), start, end)
    # A command prints the newline that ends the last line; it stays in the result, behind the note.
    if count > 1 and body.endswith("\n") and last <= len(lines) and _are_lines(body[:-1], lines[first - 1 : last - 1]):
        return ProvenPart((first, last - 1), start, end - 1)
    return None


def _are_lines(body: str, lines: list[str]) -> bool:
    """Whether ``body`` is these lines joined by LF; their lengths tell nearly always."""
    return sum(map(len, lines)) + len(lines) - 1 == len(body) and "\n".join(lines) == body
