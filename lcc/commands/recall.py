"""`lcc recall ID`: the bytes that a note stands for, from the stash."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcc.commands.files import InputError, OutputFile, WriteError

if TYPE_CHECKING:
    from lcc.recovery.recall import Page, Recalled


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
    from lcc.recovery.recall import recall as fetch
    from lcc.stash import Stash, StashError, UnknownObjectError, bytes_of_text, stash_folder

    if (raw or output) and (lines or grep or offset or limit):
        raise InputError("--raw and -o give all bytes: leave out --lines, --grep, --offset and --limit")
    object_id = _id_in(object_id)
    stash = Stash(stash_folder())
    try:
        found = fetch(stash, object_id)
    except UnknownObjectError as error:
        raise InputError(str(error)) from None
    except StashError as error:
        raise WriteError(str(error)) from None
    except OSError as error:
        raise WriteError(f"the stash cannot be read: {error}") from None
    if raw or output is not None or found.text is None:
        _show_whole(found, raw, output)
        given = len(found.content) if raw else 0  # a file does not go into the context
    else:
        page = _page(found.text, lines, grep, offset, limit)
        _show(found, object_id, page, lines, grep)
        given = len(bytes_of_text(page.text))
    _note(found, given)


def _show_whole(found: Recalled, raw: bool, output: str | None) -> None:
    if raw:
        _print(found.content)
    elif output is not None:
        _write(output, found.content)
        typer.echo(f"[{len(found.content):,} bytes written to {output}]", err=True)
    else:
        _show_binary(found)


def _note(found: Recalled, given: int) -> None:
    """Have it in the record of recalls, where a session asked."""
    from lcc.log.lines import LogError
    from lcc.log.recalls import Recall, asking_session, note_recall, recalls_path

    session = asking_session()
    if session:
        with contextlib.suppress(LogError):
            recall = Recall(session, found.sha256[:12], given, len(found.content), "shell")
            note_recall(recall, recalls_path(os.environ))


def _id_in(given: str) -> str:
    """The id in a note that was pasted whole; what was given, where it is no note."""
    from lcc.contract.notes import find_note

    note = find_note(given.strip())
    return note.target if note is not None and note.kind == "stash" and note.target else given


def _page(text: str, lines: str | None, grep: str | None, offset: int, limit: int | None) -> Page:
    from lcc.recovery.recall import PAGE_CHARS, Part, RecallError, page_of, parse_lines

    try:
        part = Part(parse_lines(lines) if lines else None, grep, offset)
        return page_of(text, part, limit or PAGE_CHARS)
    except RecallError as error:
        raise InputError(str(error)) from None


def _show(found: Recalled, object_id: str, page: Page, lines: str | None, grep: str | None) -> None:
    from lcc.stash import bytes_of_text

    _print(bytes_of_text(page.text))
    if page.next is None and page.start == 0:
        return
    said = f"characters {page.start}-{page.end} of {page.total}"
    if page.next is None:
        said += "; this is the end"
    else:
        again = f" --lines {lines}" * bool(lines) + (" --grep …" if grep else "")
        said += f"; next page: lcc recall {object_id}{again} --offset {page.next}"
    if sys.stdout.isatty() and not page.text.endswith("\n"):
        sys.stdout.write("\n")
    typer.echo(f"[{said}]", err=True)


def _show_binary(found: Recalled) -> None:
    if found.image is None:
        raise InputError(f"{found.sha256[:12]}: {len(found.content):,} bytes that are no text; give -o FILE or --raw")
    folder = Path(tempfile.mkdtemp(prefix="lcc-recall-"))
    path = folder / f"{found.sha256[:12]}.{found.image}"
    _write(str(path), found.content)
    typer.echo(f"{path}")
    typer.echo(f"[an image ({found.image}, {len(found.content):,} bytes), written to the file above]", err=True)


def _write(name: str, content: bytes) -> None:
    with OutputFile(name, "-o") as file:
        file.write(content)
        file.commit()


def _print(content: bytes) -> None:
    sys.stdout.flush()
    view = memoryview(content)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]
