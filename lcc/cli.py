"""The `lcc` program: finds the command that was asked for, and imports that one alone.

`lcc --help` must be quick, and each command needs other libraries, so the commands stand here as names with
one line of help. An error that a user can mend is one line on stderr and exit 2; a failed run is exit 1.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from lcc.commands.files import InputError, WriteError, written

if TYPE_CHECKING:
    import typer

EXIT_OK, EXIT_FAILED, EXIT_BAD_INPUT = 0, 1, 2
_INTERRUPTED = 128 + signal.SIGINT


_EXIT_CODES = "Exit codes: 0 done; 1 the run failed; 2 the input or an option is wrong."


class _Command(NamedTuple):
    where: str
    """module:attribute; the attribute is a function for Typer, or a Typer with commands of its own."""
    help: str
    examples: tuple[str, ...]
    """Command lines that a person would begin with, for the end of its help."""
    check: str | None = None
    """module:attribute of a function that is given the command's words before they are parsed."""


COMMANDS: dict[str, _Command] = {
    "compact": _Command(
        "lcc.commands.compact:compact",
        "Remove from a session what can be had back byte for byte.",
        (
            "lcc compact SESSION.jsonl --rules-mode auto --dry-run",
            "lcc compact SESSION.jsonl --rules-mode stashed -o OUT.jsonl -r REPORT.json",
            "lcc compact SESSION.jsonl --fork",
        ),
        check="lcc.commands.compact_options:refuse_options",
    ),
    "explain": _Command(
        "lcc.commands.explain:explain",
        "Show what a pass removed, what it kept, and why.",
        ("lcc explain --last", "lcc explain REPORT.json", "lcc explain REPORT.json --html PAGE.html"),
    ),
    "watch": _Command(
        "lcc.commands.watch:watch",
        "Show a live session: context in use, and what could go now.",
        ("lcc watch", "lcc watch --once", "lcc watch --json"),
    ),
    "sessions": _Command(
        "lcc.commands.sessions:sessions",
        "List sessions, and what a compaction would free.",
        ("lcc sessions", "lcc sessions PROJECT --limit 0", "lcc sessions --json"),
    ),
    "recall": _Command(
        "lcc.commands.recall:recall",
        "Give back an output that a note stands for.",
        ("lcc recall 0123456789ab", "lcc recall 0123456789ab --lines 10-40", "lcc recall 0123456789ab --grep ERROR"),
    ),
    "restore": _Command(
        "lcc.commands.restore:restore",
        "Rebuild the original from a compacted session.",
        ("lcc restore OUT.jsonl -r REPORT.json -o BACK.jsonl",),
    ),
    "stash": _Command(
        "lcc.commands.stash:app",
        "Look after the stash: list, show, verify, gc.",
        ("lcc stash list", "lcc stash verify", "lcc stash gc"),
    ),
    "log": _Command(
        "lcc.commands.log:log",
        "Your own figures from the request log, where it is switched on.",
        ("lcc log", "lcc log --summary"),
    ),
    "mcp": _Command(
        "lcc.mcp:mcp", "Serve recall, compact_transcript and explain to an agent.", ("claude mcp add lcc -- lcc mcp",)
    ),
    "doctor": _Command(
        "lcc.commands.doctor:doctor",
        "Check what can stand in the way, and say the next step for each.",
        ("lcc doctor", "lcc doctor --json"),
    ),
}

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def build(asked: str | None) -> typer.Typer:
    """The program with the command ``asked`` as it is, and every other one as its line of help."""
    import typer

    from lcc.commands.before import options

    app = typer.Typer(
        name="lcc",
        help="Compacts Claude Code sessions: removes only what can be had back, and proves it first.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_SETTINGS,
    )
    app.callback()(options)
    for name, command in COMMANDS.items():
        loaded = _load(command.where) if name == asked else None
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=name, help=command.help, epilog=_end(command), context_settings=_SETTINGS)
        else:
            # A command that was asked for is told by its own docstring, which says more than the line.
            about = None if loaded else command.help
            app.command(name, help=about, epilog=_end(command), context_settings=_SETTINGS)(loaded or _not_loaded)
    return app


def _end(command: _Command) -> str:
    """The end of a command's help. The mark keeps Click from filling the lines."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in command.examples), "", _EXIT_CODES])


def _not_loaded() -> None:
    raise AssertionError("only the command that was asked for is run")


def _load(where: str) -> Any:
    module, _, attribute = where.partition(":")
    return getattr(_import_whole(module), attribute)


def _import_whole(module: str) -> ModuleType:
    """Import a command's module; Ctrl-C waits for it, since compiled libraries can crash when it meets their start."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        importlib.import_module("orjson")  # every command needs it sooner or later
        return importlib.import_module(module)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the program with ``arguments`` (the process's own by default) and exits with its code.

    Little is imported before it runs, so that Ctrl-C is answered in a line also while a command is loaded.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _stop)
        _have_streams()
        code = _run(given)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    with contextlib.suppress(ValueError):  # not the main thread, which no signal comes to
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is to end, which needs no second word
    if code == _INTERRUPTED:
        _say(_interrupted(given), code)
    sys.exit(code)


def _interrupted(given: Sequence[str]) -> str:
    """What a person is told who pressed Ctrl-C: whether anything is other than before."""
    if written:
        return f"interrupted; {', '.join(written)} was written before, whole"
    return "interrupted" if "stash" in given[:1] else "interrupted; nothing was changed"


def _have_streams() -> None:
    """Opens what the caller closed, so that no file of ours is ever taken for standard output."""
    for name, number, mode in (("stdin", 0, os.O_RDONLY), ("stdout", 1, os.O_WRONLY), ("stderr", 2, os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            # What cannot be written to standard output is an error; a word that nobody can hear is not.
            os.dup2(os.open(os.devnull, os.O_RDONLY if number == 1 else mode), number)
            opened = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, opened)
        elif hasattr(stream, "reconfigure") and number:
            stream.reconfigure(errors="replace")


def _stop(number: int, _frame: FrameType | None) -> None:
    """Ends the program as an error would, so that what was written beside a file is taken away."""
    raise SystemExit(128 + number)


def _run(given: list[str]) -> int:
    try:
        code = _command(given)
        sys.stdout.flush()
        return code
    except InputError as problem:
        return _say(str(problem), EXIT_BAD_INPUT)
    except WriteError as problem:
        return _say(str(problem), EXIT_FAILED)
    except OSError as error:
        _forget_stdout()
        if isinstance(error, BrokenPipeError):  # whoever read our output has gone, and knows it
            return EXIT_FAILED
        from lcc.stash.folder import StashFolderError

        if isinstance(error, StashFolderError):
            return _say(str(error), EXIT_BAD_INPUT)
        where = f"{error.filename}" if error.filename else "standard output"
        words = "it is closed" if error.errno == errno.EBADF else (error.strerror or str(error)).lower()
        return _say(f"{where}: {words}", EXIT_FAILED)
    except Exception as error:
        if os.environ.get("LCC_TRACEBACK"):
            raise
        words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _say(f"a fault in lcc itself, {words}; LCC_TRACEBACK=1 shows where", EXIT_FAILED)


def _command(given: list[str]) -> int:
    if given == ["--version"]:  # answered without Typer, whose import costs more than everything else
        from lcc.version import our_version

        print(f"lcc {our_version()}")
        return EXIT_OK
    if len(given) == 2 and given[0] == "recall" and not given[1].startswith("-"):  # as a note says it
        _load("lcc.commands.give_back:give_back")(given[1])
        return EXIT_OK
    completed = _completed() if "_LCC_COMPLETE" in os.environ else []
    asked = next((word for word in completed or given if not word.startswith("-")), None)
    check = COMMANDS[asked].check if asked in COMMANDS else None
    if check and asked and not completed:
        _load(check)(given[given.index(asked) + 1 :])
    try:
        build(asked)(given, prog_name="lcc", standalone_mode=True)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_OK
    return EXIT_OK


def _completed() -> list[str]:
    """The words of a command line that a shell wants completed, behind the program's name."""
    os.environ["COLUMNS"] = "10000"  # a shell takes each line for a word of its own: nothing may be wrapped
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    return line.split()[1:]


def _forget_stdout() -> None:
    """What standard output did not take must not be tried again when the program ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(problem: str, code: int) -> int:
    from lcc.explain.grouped import one_line

    print(f"lcc: {one_line(problem, 4000)}", file=sys.stderr)
    return code
