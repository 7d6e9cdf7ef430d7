"""The one check of a JSON value's shape: what fits comes back typed, and anything else is told by its place."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

import pytest

from lcc.contract.checked import Count, ShapeError, checked


class Circle(TypedDict):
    shape: Literal["circle"]
    size: float


class Square(TypedDict):
    shape: Literal["square"]
    size: float
    side: Literal["thin"]


class ThickSquare(TypedDict):
    shape: Literal["square"]
    size: float
    side: Literal["thick"]
    width: Count


class Drawing(TypedDict):
    name: str
    number: Count
    offset: int
    shown: bool
    colour: Literal["red", "blue"] | None
    tags: list[str]
    shapes: list[Circle | Square | ThickSquare]
    note: NotRequired[str]
    frame: Circle | None


def drawing(**changes: Any) -> dict[str, Any]:
    """A drawing that fits, with changes; ``...`` takes a key away."""
    made = {
        "name": "a",
        "number": 3,
        "offset": -2,
        "shown": True,
        "colour": "red",
        "tags": ["x"],
        "shapes": [{"shape": "circle", "size": 2}, {"shape": "square", "size": 0.5, "side": "thick", "width": 1}],
        "frame": None,
        **changes,
    }
    return {key: value for key, value in made.items() if value is not ...}


def test_what_fits_comes_back_as_it_is() -> None:
    """Keys of others too."""
    given = drawing(more=[1])
    assert checked(given, Drawing) is given


def test_a_missing_key_that_may_be_null_is_null() -> None:
    """And one that need not be there stays away."""
    found = checked(drawing(colour=..., frame=...), Drawing)
    assert (found["colour"], found["frame"], "note" in found) == (None, None, False)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": 5}, "name: expected a string, found a number"),
        ({"name": ...}, "name: expected a string, found nothing"),
        ({"number": -1}, "number: expected a whole number, found a number"),
        ({"number": True}, "number: expected a whole number, found a truth value"),
        ({"number": 1.0}, "number: expected a whole number, found a number"),
        ({"offset": False}, "offset: expected a whole number, found a truth value"),
        ({"shown": 1}, "shown: expected true or false, found a number"),
        ({"colour": "green"}, "colour: expected one of red, blue, found a string"),
        ({"colour": []}, "colour: expected one of red, blue, found an array"),
        ({"tags": "x"}, "tags: expected an array, found a string"),
        ({"tags": ["x", None]}, "tags[1]: expected a string, found nothing"),
        ({"note": None}, "note: expected a string, found nothing"),
        ({"shapes": [7]}, "shapes[0]: expected an object, found a number"),
        ({"shapes": [{}]}, "shapes[0].shape: expected one of circle, square, found nothing"),
        ({"shapes": [{"shape": []}]}, "shapes[0].shape: expected one of circle, square, found an array"),
        ({"shapes": [{"shape": "circle", "size": True}]}, "shapes[0].size: expected a number, found a truth value"),
        ({"shapes": [{"shape": "square", "size": 1}]}, "shapes[0].side: expected one of thin, thick, found nothing"),
        (
            {"shapes": [{"shape": "square", "size": 1, "side": "thick", "width": "9"}]},
            "shapes[0].width: expected a whole number, found a string",
        ),
        ({"frame": {"shape": "square", "size": 1}}, "frame.shape: expected circle, found a string"),
    ],
)
def test_what_does_not_fit_is_told_by_its_place(changes: dict[str, Any], problem: str) -> None:
    """The JSON path, what was expected there, and what was found."""
    with pytest.raises(ShapeError) as refused:
        checked(drawing(**changes), Drawing)
    assert str(refused.value) == problem


@pytest.mark.parametrize("value", [None, [], "x", 5, True])
def test_what_is_no_object_is_told_as_a_whole(value: object) -> None:
    """The place is empty."""
    with pytest.raises(ShapeError) as refused:
        checked(value, Drawing)
    assert refused.value.place == ""
