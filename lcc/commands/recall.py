"""`lcc recall ID`: the bytes that a note stands for, from the stash."""

from __future__ import annotations

from typing import Annotated

import typer

from lcc.commands.give_back import give_back


def recall(
    object_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The 12 digits of a note (or the whole note), or more of the object's sha256."
        ),
    ],
    lines: Annotated[
        str | None, typer.Option("--lines", metavar="A-B", help="Only these lines, counted from 1; also A- and A.")
    ] = None,
    grep: Annotated[
        str | None,
        typer.Option(
            "--grep",
            metavar="TEXT",
            help="Only the lines that hold this text or match this expression, numbered.",
        ),
    ] = None,
    offset: Annotated[
        int, typer.Option("--offset", min=0, help="Begin at this character; the last page named the next one.")
    ] = 0,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Characters a page, 16,000 if not given.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="All bytes exactly, unpaged, to standard output; for pipes.")
    ] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="All bytes exactly, into this file.")
    ] = None,
) -> None:
    """Give back an output that lcc removed: a note reads [removed: 812 tokens · lcc recall 0123456789ab].

    Text is shown a page at a time, so that it does not fill the context that was just freed; the line on
    standard error says where the next page begins. Ask for --lines or --grep when you know what you need.
    An image is written to a file, whose name is printed.
    """
    give_back(object_id, lines, grep, offset, limit, raw, output)
