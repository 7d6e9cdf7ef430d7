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
from lcc.commands.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Group
    from rich.text import Text

    from lcc.sessions.watch import Measured, Watched

_BAR = 40
_SHORTEST_BAR = 8
_FULL_TO_SHORT = ((5, 5), (3, 3), (1, 2), (0, 2), (0, 1))
"""How many of the largest results and of the rounds are shown, from plenty of room to little."""
_MODE_WORDS = {"recoverable": "from disk", "stashed": "with the stash", "auto": "by the ladder"}
_PLAIN_WIDTH = 100
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
        bool, typer.Option("--once", help="Look once and stop, as it always does without a terminal or --json.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each change.")] = False,
) -> None:
    """Show the context in use, what a compaction could free now, and what earlier ones saved, while a session goes on.

    Only reads. Ctrl-C ends it.
    """
    from lcc.sessions.watch import Watched

    path = Path(session) if session is not None else _newest(Path.cwd())
    watched = Watched(path, given.options(provider="rules"), window)
    with progress("reading the session"):
        began = _poll(watched)
    if began and not watched.is_session():
        raise InputError(f"{path}: not a session file of Claude Code")
    if once or not (as_json or sys.stdout.isatty()):
        _show_once(watched, as_json)
    elif as_json:
        _follow_json(watched)
    else:
        _follow(watched)


def _newest(folder: Path) -> Path:
    from lcc.client_folders import folders_of
    from lcc.commands.sessions import NO_SESSIONS
    from lcc.sessions.listing import session_files

    try:
        files = session_files(folders_of(folder, os.environ))
    except OSError:
        files = []
    if not files:
        raise InputError(f"{folder}: {NO_SESSIONS}; name a session file")
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
        with progress("measuring the session"):
            found = watched.measure()
        _print_json(found)
        return
    from lcc.commands.text import write

    with progress("measuring the session"):
        found = watched.measure()
    write(sys.stdout, *layout(found, watched.path, _width()))


def _follow_json(watched: Watched) -> None:
    _print_json(watched.measure())
    while True:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        if _poll(watched):
            _print_json(watched.measure())


def _follow(watched: Watched) -> None:
    from rich.live import Live

    from lcc.commands.text import console

    with progress("measuring the session"):
        found = watched.measure()
    changed = time.monotonic()
    shown = layout(found, watched.path, *_screen())
    with Live(_framed(shown, changed), console=console(sys.stdout), auto_refresh=False, transient=False) as live:
        try:
            while True:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
                if _poll(watched):
                    changed = time.monotonic()
                    shown = layout(watched.measure(), watched.path, *_screen())
                live.update(_framed(shown, changed), refresh=True)
        except KeyboardInterrupt:
            return


def _width() -> int:
    """The terminal's columns; elsewhere what a line holds that is read on one."""
    from lcc.commands.text import console

    return console(sys.stdout).width if sys.stdout.isatty() else _PLAIN_WIDTH


def _screen() -> tuple[int, int]:
    """The terminal's columns, and the lines that can be shown above the one that says when it changed."""
    from lcc.commands.text import console

    size = console(sys.stdout).size
    return size.width, size.height - 2


def _framed(lines: list[Text], changed: float) -> Group:
    from rich.console import Group

    from lcc.commands.text import cell

    seconds = time.monotonic() - changed
    return Group(*lines, cell(f"last change {seconds:.0f} s ago; Ctrl-C ends this", "dim"))


def layout(found: Measured, path: Path, width: int, height: int | None = None) -> list[Text]:
    """The lines that are shown, for one look, on a terminal of ``width`` columns.

    Where they must fit into ``height`` lines, fewer of the largest results and of the rounds are among them.
    """
    from lcc.commands.rounds_text import rounds_lines

    head = _head(found, path, width)
    lines: list[Text] = []
    for results, rounds in _FULL_TO_SHORT:
        lines = [*head, *_largest(found, results), *rounds_lines(found.savings, found.recalled, width, rounds)]
        if height is None or len(lines) <= height:
            break
    return lines


def _head(found: Measured, path: Path, width: int) -> list[Text]:
    """Which session it is, how full its context is, and what could go."""
    from lcc.commands.rounds_text import LABEL
    from lcc.commands.text import cell, count

    version = f"  Claude Code {found.client_version}" if found.client_version else ""
    counted = "" if found.context is not None else " (estimated)"
    used = f" {count(found.used)} of {count(found.window)} tokens, {100 * found.used / found.window:.0f} %{counted}"
    bars = [("context", used, found.used, "cyan")]
    for mode, freeable in found.freeable.items():
        share = 100 * freeable.tokens / found.used if found.used else 0.0
        words = f" ~{count(freeable.tokens)} could go, {share:.0f} % of it, {_number(freeable.calls, 'result')}"
        bars.append((_MODE_WORDS[mode], words, min(freeable.tokens, found.used), "green"))
    size = max(_SHORTEST_BAR, min(_BAR, width - LABEL - max(len(words) for _, words, _, _ in bars)))
    lines = [_assembled(cell(found.session_id or path.stem, "bold"), cell(version, "dim"))]
    lines.append(cell(str(found.cwd or path), "dim"))
    lines += [
        _assembled(f"{label:<{LABEL}}", _bar(part, found.window, style, size), words)
        for label, words, part, style in bars
    ]
    lines.append(cell(f"{_number(found.messages, 'message')}, {_number(found.calls, 'call')} with a result", "dim"))
    return lines


def _largest(found: Measured, most: int) -> Iterator[Text]:
    """The largest results that could go."""
    from lcc.commands.text import cell, count

    for call in found.largest[:most]:
        subject = _below(found.cwd, call.subject or call.id)
        freed = f"{count(call.chars_before - call.chars_after):>14}  "
        yield _assembled(freed, cell(call.tool), cell(f"  {subject}", "dim"))


def _assembled(*parts: Text | str) -> Text:
    from rich.text import Text

    return Text.assemble(*parts)


def _below(folder: str | None, subject: str) -> str:
    """A path as it is seen from the session's folder."""
    return subject.removeprefix(f"{folder}/") if folder else subject


def _number(value: int, what: str) -> str:
    return f"{value:,} {what}{'' if value == 1 else 's'}"


def _bar(part: int, whole: int, style: str, size: int) -> Text:
    filled = min(size, round(size * part / whole)) if whole else 0
    return _assembled(_styled("█" * filled, style), _styled("░" * (size - filled), "dim"))


def _styled(words: str, style: str) -> Text:
    from rich.text import Text

    return Text(words, style)
