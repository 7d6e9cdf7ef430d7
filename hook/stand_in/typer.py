"""`typer` for a Python that has only its standard library: what a command such as `lcc recall` uses, by argparse.

On the path only where the plugin runs from its own sources without its libraries (`bin/from_sources.py`), behind
everything else. Commands are declared as ever, and this reads the same declarations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from inspect import cleandoc
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints

__all__ = ["Argument", "Exit", "Option", "Typer", "echo"]

Command = Callable[..., object]


class Exit(SystemExit):
    """The end of the program, with an exit code."""


class Declared(NamedTuple):
    """One parameter: its flags (none for a place on the command line), and what else is said of it."""

    flags: tuple[str, ...]
    said: dict[str, Any]


def Argument(*_: object, **said: Any) -> Declared:  # noqa: N802 - the library's own name
    return Declared((), said)


def Option(*flags: str, **said: Any) -> Declared:  # noqa: N802 - the library's own name
    return Declared(flags, said)


def echo(message: object = "", err: bool = False) -> None:
    print(message, file=sys.stderr if err else sys.stdout, flush=True)


class Typer:
    """The program. Only the command that is asked for is ever looked at."""

    def __init__(self, name: str = "lcc", **_: object) -> None:
        self.name = name
        self._commands: dict[str, Command] = {}

    def callback(self) -> Callable[[Command], Command]:
        return lambda function: function

    def command(self, name: str, **_: object) -> Callable[[Command], Command]:
        def add(function: Command) -> Command:
            self._commands[name] = function
            return function

        return add

    def add_typer(self, other: Typer, **_: object) -> None:
        """Commands within a command need the library."""

    def __call__(self, given: Sequence[str], **_: object) -> None:
        asked = given[0] if given else ""
        function = self._commands.get(asked)
        if function is None:
            print(f"{self.name}: {asked or 'no command'}: not without its Python environment", file=sys.stderr)
            raise SystemExit(2)
        function(**vars(_parser(f"{self.name} {asked}", function).parse_args(given[1:])))


def _parser(prog: str, function: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog, description=cleandoc(function.__doc__ or ""), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    defaults = function.__kwdefaults__ or {}
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    given = function.__defaults__ or ()
    defaults |= dict(zip(names[len(names) - len(given) :], given, strict=True))
    for name, hint in get_type_hints(function, include_extras=True).items():
        if name != "return":
            _add(parser, name, hint, defaults.get(name))
    return parser


def _add(parser: argparse.ArgumentParser, name: str, hint: Any, default: object) -> None:
    base, declared = get_args(hint)[:2]
    kind = next((each for each in get_args(base) if each is not NoneType), base)
    words = {key: declared.said[key] for key in ("metavar", "help") if key in declared.said}
    if not declared.flags:
        parser.add_argument(name, **words)
    elif kind is bool:
        parser.add_argument(*declared.flags, dest=name, action="store_true", help=words.get("help"))
    else:
        least = declared.said.get("min")
        parser.add_argument(*declared.flags, dest=name, type=_bounded(kind, least), default=default, **words)


def _bounded(kind: Callable[[str], Any], least: int | None) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
        if least is not None and value < least:
            raise argparse.ArgumentTypeError(f"{text} is less than {least}")
        return value

    return read
