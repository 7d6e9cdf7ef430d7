"""The flags of a command that are options of a pass, made from the table of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lcc.commands.files import InputError
from lcc.contract.options import PassOptions, RequestError, Row, table


@dataclass(frozen=True, slots=True)
class Given:
    """What a command line gave: a value for each option, and the long flags that stand on it, in the help's order."""

    values: Mapping[str, object]
    flags: tuple[str, ...]

    def options(self, **instead: object) -> PassOptions:
        """The pass's options, ``instead`` in place of what was given. Raises ``InputError`` with the flag's name."""
        values: dict[str, Any] = {**self.values, **instead}
        try:
            return PassOptions(**values)
        except RequestError as error:
            raise InputError(f"{flag_of(error.option)}: {error.problem}") from None


def takes_options(*names: str, **defaults: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags of the options ``names`` (all that have one, where none is named).

    They take the place of its parameter ``given``, a `Given`. ``defaults`` replace those of the table; None is for
    an option whose default the command works out from the other flags.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        rows = [row for row in table(PassOptions).values() if row.option.flag and row.name in (names or (row.name,))]
        own = inspect.signature(command, eval_str=True).parameters

        def run(**values: Any) -> None:
            context: typer.Context = values.pop("context")
            given = {row.name: _value(row, values.pop(row.name)) for row in rows}
            command(given=Given(given, _flags(context)), **values)

        parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        for name, parameter in own.items():
            if name == "given":
                parameters += [_parameter(row, defaults.get(row.name, row.default)) for row in rows]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__annotations__ = {}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


def flag_of(option: str) -> str:
    """The long flag of an option; one that no flag sets is named by its field."""
    return table(PassOptions)[option].option.flag or option


def _parameter(row: Row, default: object) -> inspect.Parameter:
    option = row.option
    hint, shown = row.hint, default
    if row.kind == "switch":
        shown = False
    elif row.kind == "word":
        hint = str | None if default is None else str
    elif row.kind == "texts":
        hint, shown = list[str], list(row.default) if isinstance(row.default, tuple) else []
    metavar = option.metavar or ("TEXT" if row.kind == "texts" else None)
    names = [name for name in (option.short, option.flag) if name]
    info = typer.Option(
        *names,
        metavar=metavar,
        help=option.flag_help or option.help,
        autocompletion=(lambda: list(row.choices)) if row.choices else None,
    )
    return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=shown, annotation=Annotated[hint, info])


def _value(row: Row, value: object) -> object:
    """What a flag's value means: a switch's flag turns its default round."""
    return value is not row.default if row.kind == "switch" else value


def _flags(context: typer.Context) -> tuple[str, ...]:
    return tuple(
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if parameter.name is not None
        and (source := context.get_parameter_source(parameter.name)) is not None
        and source.name == "COMMANDLINE"
    )
