"""Numbered rows: how a read tool shows the lines of a file, and what of a result is the file's.

Two styles occur, the number right-aligned to six places and an arrow, or the bare number and a tab; mixed
forms are made by `cat -n` and other hosts. A file that ends with a newline shows a last, empty row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from lcc.contract.notes import REMINDER_START, reminder_follows

READ_LIMIT = 2000  # lines that a read tool shows at most; of a longer file it shows the first so many
_KNOWN_ROWS = 4096
_ROW = re.compile(r"( *)([0-9]{1,12})(→|\t)", re.ASCII)
_CUT = re.compile(
    r"\[[^\]\n]{0,80}truncated|[0-9] \w+ truncated|\b(?:been|was|is|output) truncated\b|\btruncated (?:to|at)\b"
)


class Rows(NamedTuple):
    """The numbered rows that a text begins with."""

    first: int
    """The number of the first row: 0 for a read with offset 0, whose rows are counted from 0."""
    total: int
    width: int
    """6 when numbers are right-aligned to six places, 0 when they are not padded."""
    separator: str
    end: int
    """Where the rows end in the text, in characters; a client reminder may follow."""

    @property
    def first_line(self) -> int:
        """The 1-based line of the file that the first row shows."""
        return max(self.first, 1)


def content_end(text: str) -> int:
    """Where a read tool's own output ends: before the reminder that the client put behind it, if there is one."""
    found = text.find(REMINDER_START)
    return found if found >= 0 and reminder_follows(text, found) else len(text)


def parse_rows(text: str) -> Rows | None:
    """The rows that ``text`` begins with, up to its end or to a client reminder; None when it has none.

    Only the first and the last row are looked at: `number_lines` then says whether all of them are as a
    file's lines would be shown.
    """
    start = _ROW.match(text)
    if not start:
        return None
    end = content_end(text)
    last = _ROW.match(text, text.rfind("\n", 0, end) + 1)
    count = text.count("\n", 0, end) + 1
    first = int(start[2])
    if not last or int(last[2]) != first + count - 1:
        return None
    padded = len(start[1]) + len(start[2])
    if start[1] and padded != 6:
        return None
    return Rows(first, count, 6 if start[1] else 0, start[3], end)


def begins_with_row(text: str) -> bool:
    """Whether ``text`` begins as numbered rows do, whatever comes after."""
    return _ROW.match(text) is not None


def shows_whole_file(text: str) -> bool:
    """Whether a read tool that was asked for a whole file showed all of it, and nothing of it was cut."""
    rows = parse_rows(text)
    if rows is None:
        if begins_with_row(text):
            return False
    elif rows.first_line != 1 or rows.total >= READ_LIMIT:
        return False
    return "truncated" not in text or _CUT.search(text) is None


def number_lines(lines: Sequence[str], rows: Rows) -> str:
    """``lines`` as the tool shows them, numbered from ``rows.first`` in the style of ``rows``."""
    end = rows.first + len(lines)
    if end <= _KNOWN_ROWS:
        beginnings = _known_beginnings(rows.width, rows.separator)[rows.first : end]
    else:
        beginnings = _row_beginnings(rows.width, rows.separator, range(rows.first, end))
    return "".join(chain.from_iterable(zip(beginnings, lines, strict=True)))[1:]


@lru_cache(maxsize=8)
def _known_beginnings(width: int, separator: str) -> tuple[str, ...]:
    """The beginnings of the first rows, which nearly all reads show."""
    return _row_beginnings(width, separator, range(_KNOWN_ROWS))


def _row_beginnings(width: int, separator: str, numbers: range) -> tuple[str, ...]:
    """What stands before a line in its row, with the newline that ends the row before."""
    return tuple([f"\n{number:{width or 1}d}{separator}" for number in numbers])
