"""One option: what a row of the table says of it, and how a value that somebody gave is checked."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Literal, NamedTuple, TypeAlias, get_args, get_origin

Value: TypeAlias = "bool | int | float | str | tuple[str, ...] | None"
Kind = Literal["switch", "whole", "number", "word", "text", "name", "path", "texts"]
Needs = Literal["judge", "rules", "proof"]
"""What an option has an effect beside: a judge, the rules, or a mode of the rules that reads files."""

_TRUE = frozenset(("1", "true", "yes", "on"))
_FALSE = frozenset(("0", "false", "no", "off"))
_LONGEST_NAME = 4096


class RequestError(ValueError):
    """An option that cannot be honoured; ``option`` names it as the Python field."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option}: {problem}")
        self.option = option
        self.problem = problem


class Form(NamedTuple):
    """A field of the form that Claude Code shows for the plugin."""

    title: str
    help: str
    most: int | None = None
    """The largest number that the form takes; the configuration may have a larger one."""


@dataclass(frozen=True, slots=True)
class Option:
    """What a row says beside its name, type and default."""

    help: str
    """One sentence for a person who reads ``--help``, a field of MCP or a table."""
    kind: Literal["text", "name", "path"] = "text"
    """Of a text: any text; a name, which is one printable line; or a path, which may also be a ``PathLike``."""
    choices: tuple[str, ...] = ()
    """Of a word: the ones that may be given, where those are not all of its type's."""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    absolute: bool = False
    """Of a path: must begin with ``/`` or ``~/``, since nobody's working folder is meant."""
    needs: Needs | None = None
    flag: str | None = None
    """Its long flag of ``lcc compact``; for a switch that is on by default, the flag that takes it off."""
    short: str | None = None
    metavar: str | None = None
    flag_help: str | None = None
    """In place of ``help`` where the command line's behaviour is its own."""
    in_config: bool = False
    in_mcp: bool = False
    mcp_default: str | None = None
    """In place of the default, for an agent that asks over MCP."""
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: an option with its name, its type and its default."""

    name: str
    kind: Kind
    hint: object
    """Its type as an annotation."""
    default: Value
    may_be_none: bool
    choices: tuple[str, ...]
    option: Option

    @property
    def allowed(self) -> str:
        """What the option may be, to follow "is not"."""
        low, high = self.option.low, self.option.high
        between = (
            f" from {low:g} to {high:g}" if high is not None else f" of at least {low:g}" if low is not None else ""
        )
        number = f"number of {self.option.unit}" if self.option.unit else "number"
        return {
            "switch": "true or false",
            "whole": f"a whole {number}{between}",
            "number": f"a {number}{between}",
            "word": f"one of {', '.join(self.choices)}",
            "text": "a text",
            "name": "a name: one line of text",
            "path": "an absolute path (or one that begins with ~/)" if self.option.absolute else "a path",
            "texts": "a list of texts",
        }[self.kind]

    def checked(self, value: object) -> Value:
        """``value`` as the pass takes it. Raises ``RequestError`` for what the option may not be."""
        if value is None and self.may_be_none:
            return None
        if self.kind == "path" and isinstance(value, os.PathLike):
            value = os.fspath(value)
        found = _CHECKS[self.kind](self, value)
        if found is None:
            raise RequestError(self.name, _problem(self, value))
        return found

    def from_text(self, text: str) -> object:
        """A variable's text as a value of the option's type; as it is, for the check to refuse, where it is none."""
        word = text.strip().lower()
        if self.kind == "switch":
            return True if word in _TRUE else False if word in _FALSE else text
        if self.kind == "texts":
            return tuple(part.strip() for part in text.replace("\n", ",").split(",") if part.strip())
        try:
            return int(text) if self.kind == "whole" else float(text) if self.kind == "number" else text
        except ValueError:
            return text


def _problem(row: Row, value: object) -> str:
    if row.name == "provider" and value == "mechanical":
        return (
            "mechanical is refused in this mode: whether a tool output is still needed is a semantic "
            "question, and a lexical scorer cannot answer it honestly; use jev, laya, auto or rules"
        )
    shown = repr(value)
    return f"{shown if len(shown) <= 100 else shown[:99] + '…'} is not {row.allowed}"


def _in_range(row: Row, value: float) -> bool:
    low, high = row.option.low, row.option.high
    return (low is None or value >= low) and (high is None or value <= high)


def _switch(row: Row, value: object) -> Value:
    return value if isinstance(value, bool) else None


def _whole(row: Row, value: object) -> Value:
    return value if isinstance(value, int) and not isinstance(value, bool) and _in_range(row, value) else None


def _number(row: Row, value: object) -> Value:
    if not isinstance(value, int | float) or isinstance(value, bool) or not _in_range(row, value):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _word(row: Row, value: object) -> Value:
    return value if isinstance(value, str) and value in row.choices else None


def _text(row: Row, value: object) -> Value:
    return value if isinstance(value, str) else None


def _name(row: Row, value: object) -> Value:
    return value if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value.isprintable() else None


def _path(row: Row, value: object) -> Value:
    if not isinstance(value, str) or not value or "\0" in value:
        return None
    if not row.option.absolute:
        return value
    named = _name(row, value) is not None and value.startswith(("/", "~/"))
    return value if named else None


def _texts(row: Row, value: object) -> Value:
    if not isinstance(value, list | tuple):
        return None
    parts = tuple(part for part in value if isinstance(part, str) and part)
    return parts if len(parts) == len(value) else None


_CHECKS: Mapping[Kind, Callable[[Row, object], Value]] = {
    "switch": _switch,
    "whole": _whole,
    "number": _number,
    "word": _word,
    "text": _text,
    "name": _name,
    "path": _path,
    "texts": _texts,
}


def row_of(name: str, annotated: object, default: Value) -> Row:
    """The row of a field that is annotated ``Annotated[type, Option(...)]``."""
    hint, option = get_args(annotated)
    parts = [part for part in get_args(hint) if part is not type(None)] if get_origin(hint) is UnionType else [hint]
    (kind,) = (_kind(part, option) for part in parts)
    choices = option.choices or (get_args(parts[0]) if kind == "word" else ())
    return Row(name, kind, hint, default, parts != [hint], choices, option)


def _kind(hint: object, option: Option) -> Kind:
    if get_origin(hint) is Literal:
        return "word"
    if get_origin(hint) is tuple:
        return "texts"
    kinds: Mapping[object, Kind] = {bool: "switch", int: "whole", float: "number", str: option.kind}
    return kinds[hint]
