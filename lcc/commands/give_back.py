"""What `lcc recall` does with its words, without Typer: a note's own command is run often, and mostly by agents."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lcc.commands.files import InputError, OutputFile, WriteError

if TYPE_CHECKING:
    from lcc.recovery.recall import Page, Recalled


def give_back(
    object_id: str,
    lines: str | None = None,
    grep: str | None = None,
    offset: int = 0,
    limit: int | None = None,
    raw: bool = False,
    output: str | None = None,
) -> None:
    """Shows the output that a note stands for; the arguments are the options of `lcc recall`.

    Raises ``InputError`` for an id or options that cannot be used, ``WriteError`` where the stash or a file fails.
    """
    from lcc.recovery.recall import id_in
    from lcc.recovery.recall import recall as fetch
    from lcc.stash import Stash, StashError, UnknownObjectError, bytes_of_text, stash_folder

    if (raw or output) and (lines or grep or offset or limit):
        raise InputError("--raw and -o give all bytes: leave out --lines, --grep, --offset and --limit")
    object_id = id_in(object_id)
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
        print(f"[{len(found.content):,} bytes written to {output}]", file=sys.stderr)
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
    print(f"[{said}]", file=sys.stderr)


def _show_binary(found: Recalled) -> None:
    if found.image is None:
        raise InputError(f"{found.sha256[:12]}: {len(found.content):,} bytes that are no text; give -o FILE or --raw")
    folder = Path(tempfile.mkdtemp(prefix="lcc-recall-"))
    path = folder / f"{found.sha256[:12]}.{found.image}"
    _write(str(path), found.content)
    print(f"{path}")
    print(f"[an image ({found.image}, {len(found.content):,} bytes), written to the file above]", file=sys.stderr)


def _write(name: str, content: bytes) -> None:
    with OutputFile(name, "-o") as file:
        file.write(content)
        file.commit()


def _print(content: bytes) -> None:
    sys.stdout.flush()
    view = memoryview(content)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]
