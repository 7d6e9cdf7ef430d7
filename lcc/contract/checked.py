"""Whether a JSON value from outside is of a declared shape: the one check behind every typed value that is read.

The declaration is a TypedDict, so that what the type checker holds inside and what is checked at the edge cannot
drift apart. Beside plain types it may hold literals, lists, other TypedDicts, unions, and `Count`.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

T = TypeVar("T")

_NOT_NEGATIVE = "a whole number"
Count: TypeAlias = Annotated[int, _NOT_NEGATIVE]
"""A whole number that is not negative."""

_Check: TypeAlias = Callable[[object], None]
_WORDS = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "an array",
    dict: "an object",
}


class ShapeError(ValueError):
    """A value of another shape. ``place`` is its JSON path in what was checked; "" for all of it."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place

    def within(self, step: str) -> ShapeError:
        """The same, seen from one level further out; ``step`` is a key or ``[index]``."""
        dot = "." if self.place and not self.place.startswith("[") else ""
        return ShapeError(self.problem, f"{step}{dot}{self.place}")


def checked(value: object, shape: type[T]) -> T:
    """``value`` as a ``shape`` (a TypedDict). Raises ``ShapeError`` with the place for anything else.

    A key that may be null and is missing is set to None; keys that the shape does not have are left alone.
    """
    declared: Any = shape
    _check_of(declared)(value)
    return cast("T", value)


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "nothing"
    names = {dict: "an object", list: "an array", str: "a string", bool: "a truth value"}
    return names.get(type(value), "a number")


@cache
def _check_of(shape: Any) -> _Check:
    if is_typeddict(shape):
        return _object(shape)
    origin = get_origin(shape)
    if origin is Annotated:
        return _plain(lambda value: _is_whole(value) and value >= 0, _NOT_NEGATIVE)
    if origin is Literal:
        return _literal(get_args(shape))
    if origin in (Union, types.UnionType):
        return _union(get_args(shape))
    if origin is list:
        return _list(get_args(shape)[0])
    if shape is int:
        return _plain(_is_whole, _WORDS[int])
    if shape is float:
        return _plain(lambda value: _is_whole(value) or isinstance(value, float), _WORDS[float])
    return _plain(lambda value: isinstance(value, shape), _WORDS[origin or shape])


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse(wanted: str, value: object) -> ShapeError:
    return ShapeError(f"expected {wanted}, found {kind_of(value)}")


def _plain(fits: Callable[[Any], bool], wanted: str) -> _Check:
    def check(value: object) -> None:
        if not fits(value):
            raise _refuse(wanted, value)

    return check


def _literal(allowed: tuple[object, ...]) -> _Check:
    words = f"one of {', '.join(map(str, allowed))}" if len(allowed) > 1 else str(allowed[0])
    return _plain(lambda value: isinstance(value, str) and value in allowed, words)


def _list(item: Any) -> _Check:
    check_item = _check_of(item)

    def check(value: object) -> None:
        if not isinstance(value, list):
            raise _refuse("an array", value)
        for index, each in enumerate(value):
            try:
                check_item(each)
            except ShapeError as error:
                raise error.within(f"[{index}]") from None

    return check


def _object(shape: type) -> _Check:
    required: list[tuple[str, _Check]] = []
    optional: list[tuple[str, _Check]] = []
    nullable: list[str] = []
    for key, hint in get_type_hints(shape, include_extras=True).items():
        if get_origin(hint) is NotRequired:
            optional.append((key, _check_of(get_args(hint)[0])))
        else:
            required.append((key, _check_of(hint)))
            if type(None) in get_args(hint):
                nullable.append(key)

    def check(value: object) -> None:
        if not isinstance(value, dict):
            raise _refuse("an object", value)
        for key in nullable:
            value.setdefault(key, None)
        for key, check_value in required:
            try:
                check_value(value.get(key))
            except ShapeError as error:
                raise error.within(key) from None
        for key, check_value in optional:
            if key in value:
                try:
                    check_value(value[key])
                except ShapeError as error:
                    raise error.within(key) from None

    return check


def _union(members: tuple[Any, ...]) -> _Check:
    others = [member for member in members if member is not type(None)]
    with_none = len(others) < len(members)
    if len(others) == 1:
        check_other = _check_of(others[0])
    elif any(is_typeddict(member) for member in others):
        check_other = _tagged(tuple(others))
    else:
        check_other = _one_of(tuple(others))

    def check(value: object) -> None:
        if value is None and with_none:
            return
        check_other(value)

    return check


def _one_of(members: tuple[Any, ...]) -> _Check:
    """One of several plain types."""
    checks = [_check_of(member) for member in members]
    words = " or ".join(_WORDS[member] for member in members)

    def check(value: object) -> None:
        for fits in checks:
            with suppress(ShapeError):
                return fits(value)
        raise _refuse(words, value)

    return check


def _tagged(members: tuple[Any, ...]) -> _Check:
    """One of several objects, told apart by the keys whose literals differ between them, in order of declaration."""
    hints = [(get_type_hints(member), _check_of(member)) for member in members]
    literals: dict[str, set[object]] = {}
    for found, _ in hints:
        for key, hint in found.items():
            if get_origin(hint) is Literal:
                literals.setdefault(key, set()).add(hint)
    tags = [key for key, different in literals.items() if len(different) > 1]

    def check(value: object) -> None:
        if not isinstance(value, dict):
            raise _refuse("an object", value)
        left = hints
        for tag in tags:
            asked = [found[tag] for found, _ in left if tag in found]
            if len(asked) < len(left):
                continue
            left = [(found, each) for found, each in left if _is_one_of(value.get(tag), found[tag])]
            if not left:
                allowed = dict.fromkeys(str(word) for hint in asked for word in get_args(hint))
                raise ShapeError(f"expected one of {', '.join(allowed)}, found {kind_of(value.get(tag))}", tag)
        left[0][1](value)

    return check


def _is_one_of(value: object, literal: Any) -> bool:
    return isinstance(value, str) and value in get_args(literal)
