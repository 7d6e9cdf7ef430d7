"""`lcc watch`: a live session in the terminal."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lcc.commands.files import InputError
from lcc.commands.flags import Given, takes_options

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from lcc.sessions.watch import Measured, Watched

_BAR = 40
_MODE_WORDS = {"recoverable": "from disk", "stashed": "with the stash", "auto": "by the ladder"}
_SECONDS_BETWEEN_LOOKS = 1.0


@takes_options("preserve_recent")
def watch(
    given: Given,
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="A session file. Default: the newest session of this folder."),
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1000, help="The context window in tokens. Default: 200,000, or what fits.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once and stop. Without a terminal and --json it does so too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each change.")] = False,
) -> None:
    """Show the context in use and what a compaction could free now, while a session goes on.

    Only reads. Ctrl-C ends it.
    """
    from lcc.sessions.watch import Watched

    path = Path(session) if session is not None else _newest(Path.cwd())
    watched = Watched(path, given.options(provider="rules"), window)
    if _poll(watched) and not watched.is_session():
        raise InputError(f"{path}: not a session file of Claude Code")
    if once or not (as_json or sys.stdout.isatty()):
        _show_once(watched, as_json)
    elif as_json:
        _follow_json(watched)
    else:
        _follow(watched)


def _newest(folder: Path) -> Path:
    from lcc.sessions.listing import project_folder, session_files

    kept = project_folder(folder, os.environ)
    try:
        files = session_files(kept)
    except OSError:
        files = []
    if not files:
        raise InputError(f"{folder}: Claude Code has no sessions of this folder ({kept}); name a session file")
    return files[0]


def _poll(watched: Watched) -> bool:
    from lcc.sessions.watch import SessionTooLargeError
    from lcc.transcript import TranscriptError

    try:
        return watched.poll()
    except (TranscriptError, SessionTooLargeError) as error:
        raise InputError(f"{watched.path}: {error}") from None
    except OSError as error:
        raise InputError(f"{watched.path}: {(error.strerror or str(error)).lower()}") from None


def _print_json(found: Measured) -> None:
    import orjson

    sys.stdout.buffer.write(orjson.dumps(found.as_json(), option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def _show_once(watched: Watched, as_json: bool) -> None:
    if as_json:
        _print_json(watched.measure())
        return
    from lcc.commands.text import write

    write(sys.stdout, *layout(watched.measure(), watched.path))


def _follow_json(watched: Watched) -> None:
    _print_json(watched.measure())
    while True:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        if _poll(watched):
            _print_json(watched.measure())


def _follow(watched: Watched) -> None:
    from rich.live import Live

    from lcc.commands.text import console

    changed = time.monotonic()
    shown = layout(watched.measure(), watched.path)
    with Live(_framed(shown, changed), console=console(sys.stdout), auto_refresh=False, transient=False) as live:
        try:
            while True:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                if _poll(watched):
                    changed = time.monotonic()
                    shown = layout(watched.measure(), watched.path)
                live.update(_framed(shown, changed), refresh=True)
        except KeyboardInterrupt:
            return


def _framed(lines: list[Text], changed: float) -> Group:
    from rich.console import Group

    from lcc.commands.text import cell

    seconds = time.monotonic() - changed
    return Group(*lines, cell(f"last change {seconds:.0f} s ago; Ctrl-C ends this", "dim"))


def layout(found: Measured, path: Path) -> list[Text]:
    """The lines that are shown, for one look."""
    from rich.text import Text

    from lcc.commands.text import cell, count

    version = f", Claude Code {found.client_version}" if found.client_version else ""
    counted = "" if found.context is not None else " (estimated)"
    lines = [
        Text.assemble(cell(found.session_id or path.stem, "bold"), cell(f"  {found.cwd or path}{version}", "dim")),
        Text.assemble(
            "context         ",
            _bar(found.used, found.window, "cyan"),
            f" {count(found.used)} of {count(found.window)} tokens, {100 * found.used / found.window:.0f} %{counted}",
        ),
    ]
    for mode, freeable in found.freeable.items():
        share = 100 * freeable.tokens / found.used if found.used else 0.0
        lines.append(
            Text.assemble(
                f"{_MODE_WORDS[mode]:<16}",
                _bar(min(freeable.tokens, found.used), found.window, "green"),
                f" ~{count(freeable.tokens)} tokens could go now, {share:.0f} % of it, {count(freeable.calls)} results",
            )
        )
    lines.append(cell(f"{_number(found.messages, 'message')}, {_number(found.calls, 'call')} with a result", "dim"))
    for call in found.largest:
        lines.append(
            Text.assemble(
                f"{count(call.chars_before - call.chars_after):>14}  ",
                cell(call.tool),
                cell(f"  {call.subject or call.id}", "dim"),
            )
        )
    return lines


def _number(value: int, what: str) -> str:
    return f"{value:,} {what}{'' if value == 1 else 's'}"


def _bar(part: int, whole: int, style: str) -> Text:
    from rich.text import Text

    filled = min(_BAR, round(_BAR * part / whole)) if whole else 0
    return Text.assemble(("█" * filled, style), ("░" * (_BAR - filled), "dim"))
