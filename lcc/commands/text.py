"""Laying out figures and lists for a person, on a terminal or in a file.

On a terminal there is colour and lines are folded to its width; elsewhere lines are plain and never folded, so
that they can be searched and compared. Nothing that a transcript holds is taken as markup or as a control code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import IO, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lcc.explain.grouped import one_line

Align = Literal["left", "right"]
_PLAIN_WIDTH = 10_000
_LAST_COLUMN = 20
_GAP = 2


def console(stream: IO[str]) -> Console:
    """A console on ``stream``: the terminal's width there, no folding elsewhere."""
    terminal = stream.isatty()
    return Console(
        file=stream,
        width=None if terminal else _PLAIN_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not terminal,
    )


def cell(value: object, style: str = "") -> Text:
    """Any text or number as one printable line."""
    return Text(one_line(str(value)), style=style)


def count(value: int) -> str:
    """A whole number with its thousands set apart."""
    return f"{value:,}"


def share(ratio: float) -> str:
    """A share of 0 to 1 as a percentage with one place."""
    return f"{100 * ratio:.1f} %"


def table(
    heads: Sequence[tuple[str, Align]],
    rows: Iterable[Sequence[Text | str]],
    *,
    indent: int = 2,
    spare: Sequence[str] = (),
) -> Table:
    """A table without rules; the last column takes the room that is left.

    Where standard output is a terminal that is too narrow for that, the columns with the heads ``spare`` are left
    out, one after the other, so that no other one is cut.
    """
    filled = [[value if isinstance(value, Text) else cell(value) for value in row] for row in rows]
    shown = _fitting([head for head, _ in heads], filled, console(sys.stdout).width - indent, spare)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    if indent:
        grid.add_column("", width=indent - 2 if indent > 2 else 0, no_wrap=True)
    for position in shown:
        head, align = heads[position]
        last = position == len(heads) - 1
        grid.add_column(head, justify=align, no_wrap=not last, overflow="fold", ratio=1 if last else None)
    for row in filled:
        grid.add_row(*([Text("")] if indent else []), *(row[position] for position in shown))
    return grid


def _fitting(heads: Sequence[str], rows: Sequence[Sequence[Text]], width: int, spare: Sequence[str]) -> list[int]:
    """The columns to show in ``width``, when the last one, where it stays, needs some room to fold in."""
    widest = [max([cell_len(head), *(row[i].cell_len for row in rows)]) for i, head in enumerate(heads)]
    widest[-1] = min(widest[-1], _LAST_COLUMN)
    shown = list(range(len(heads)))
    for head in spare:
        if sum(widest[i] + _GAP for i in shown) - _GAP <= width:
            break
        shown.remove(heads.index(head))
    return shown


def write(stream: IO[str], *parts: Table | Text | str) -> None:
    """Prints ``parts`` one below the other, without blanks at the ends of lines."""
    if stream.isatty():
        output = console(stream)
        for part in parts:
            if isinstance(part, Text) and part.no_wrap:  # printing a text alone would lose this
                output.print(part, no_wrap=True, overflow=part.overflow)
            else:
                output.print(part)
        return
    output = console(stream)
    with output.capture() as captured:
        for part in parts:
            output.print(part)
    stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().split("\n")[:-1]))


def error(message: str) -> None:
    """One line on stderr that begins with the program's name."""
    print(f"lcc: {one_line(message, 2000)}", file=sys.stderr)
