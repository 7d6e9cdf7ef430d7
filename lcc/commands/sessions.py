"""`lcc sessions`: a project's sessions, and what a compaction of each would free."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcc.commands.files import InputError, WriteError
from lcc.commands.flags import Given, takes_options
from lcc.commands.progress import progress
from lcc.contract.options import LiveOptions, table

if TYPE_CHECKING:
    from lcc.sessions.listing import Session


NO_SESSIONS = "Claude Code has no sessions of this folder, of one below it, or of one above it in your home"


@takes_options("rules_mode", "preserve_recent", rules_mode=table(LiveOptions)["rules_mode"].default)
def sessions(
    given: Given,
    project: Annotated[
        str | None, typer.Argument(metavar="[PROJECT]", help="The project's folder. Default: where you are.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Sessions to look at, the newest; 0 for all.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List a project's sessions with their size, their tokens, and what a compaction would free.

    Only reads. In use means that a client seems to have the session open; reached is the share of the file that the
    conversation can still reach (not rewound, summarised or damaged); context is what the API counted at the last
    request, system prompt and tools included.
    """
    from lcc.client_folders import folders_of
    from lcc.sessions.listing import look_at, session_files

    folder = Path(os.path.abspath(project or "."))
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder")
    options = given.options(provider="rules")
    try:
        files = session_files(folders_of(folder, os.environ))
    except OSError as error:
        raise WriteError(f"{error.filename}: {error.strerror}") from None
    if not files:
        raise InputError(f"{folder}: {NO_SESSIONS}")
    now = time.time()
    found = []
    asked = files[:limit] if limit else files
    with progress("looking at sessions") as shown:
        for number, path in enumerate(asked, 1):
            shown.doing = f"looking at sessions: {number:,} of {len(asked):,}"
            with contextlib.suppress(FileNotFoundError):
                found.append(look_at(path, options, now))
    if as_json:
        _print_json(found, len(files))
    else:
        _print(found, len(files), options.rules_mode, folder)


def _print(found: list[Session], total: int, mode: str, folder: Path) -> None:
    from lcc.commands.text import cell, console, count, table

    out = console(sys.stdout)
    heads = [
        ("session", "left"),
        ("last change", "left"),
        ("MB", "right"),
        ("reached", "right"),
        ("messages", "right"),
        ("context", "right"),
    ]
    heads += [("tokens", "right"), (f"{mode} frees", "right"), ("", "left")]
    rows = []
    for each in found:
        when = datetime.fromtimestamp(each.modified).astimezone().strftime("%Y-%m-%d %H:%M")
        numbers = [count(n) if n is not None else "-" for n in (each.messages, each.context, each.tokens)]
        freed = "-"
        if each.frees is not None and each.tokens:
            freed = f"{count(each.frees)} ({100 * each.frees / each.tokens:.0f} %)"
        reached = f"{100 * each.reached / each.size:.0f} %" if each.reached is not None and each.size else "-"
        rows.append(
            (each.id, when, f"{each.size / 1e6:.1f}", reached, *numbers, freed, cell(_said(each, folder)[:120]))
        )
    spare = ("MB", "reached", "messages", "context", "tokens", "last change", "", f"{mode} frees")
    out.print(table(heads, rows, indent=0, spare=spare))  # type: ignore[arg-type]
    if len(found) < total:
        out.print(f"and {total - len(found)} older ones; --limit 0 lists all")


def _said(session: Session, folder: Path) -> str:
    """What there is to say of a session in words: why it cannot be read, or who uses it, where it began, its damage,
    its title."""
    if session.problem:
        return session.problem
    use = f"in use ({session.live}) " if session.live else ""
    lines = "1 damaged line; " if session.damaged == 1 else f"{session.damaged} damaged lines; "
    elsewhere = f"in {_from(folder, session.folder)}: " if _is_elsewhere(session.folder, folder) else ""
    return use + elsewhere + (lines if session.damaged else "") + session.title


def _is_elsewhere(began: str | None, folder: Path) -> bool:
    return began is not None and os.path.realpath(began) != os.path.realpath(folder)


def _from(folder: Path, began: str | None) -> str:
    """Where a session began, as it is seen from ``folder``."""
    inner = os.path.relpath(os.path.realpath(began or ""), os.path.realpath(folder))
    return str(began) if inner.startswith("..") else inner


def _print_json(found: list[Session], total: int) -> None:
    import orjson

    rows = [
        {
            "id": each.id,
            "path": str(each.path),
            "bytes": each.size,
            "modified_at": datetime.fromtimestamp(each.modified).astimezone().isoformat(timespec="seconds"),
            "in_use": each.live,
            "title": each.title,
            "folder": each.folder,
            "messages": each.messages,
            "reached_bytes": each.reached,
            "damaged_lines": each.damaged,
            "context_tokens": each.context,
            "tokens": each.tokens,
            "frees_tokens": each.frees,
            "problem": each.problem,
        }
        for each in found
    ]
    value = {"sessions_total": total, "sessions": rows}
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
