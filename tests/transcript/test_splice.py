"""Splicing: the edited document means what was asked, and every byte beside the edits is as it was."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc.transcript.splice import REMOVE, Splices, skip_value

KEYS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(["text", "a", "\\", '"', "é"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    LEAVES | st.sampled_from(["\\", '"', '\\"', '\\\\"', "C:\\\\", "[", "}"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=25,
)
STYLES = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, 0, 2]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]),
    }
)


def paths(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place below the root."""
    inside: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for step, below in inside for p in ((*above, step), *paths(below, (*above, step)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The same by plain Python: an edited copy."""
    step, rest = path[0], path[1:]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[step] = put(copy[step], rest, new) if rest else new
    return copy


def spliced(raw: bytes, *edits: tuple[tuple[Any, ...], Any]) -> bytes:
    splices = Splices()
    for path, edit in edits:
        splices.add(path, edit)
    return splices.apply(raw)


@given(VALUES, STYLES, st.data())
def test_a_replaced_value_is_the_only_thing_that_changes(value: Any, style: Any, data: Any) -> None:
    raw = json.dumps(value, **style).encode()
    places = paths(value)
    if not places:
        assert spliced(raw) == raw
        return
    path = data.draw(st.sampled_from(places))
    new = json.dumps(data.draw(LEAVES)).encode()

    result = spliced(raw, (path, new))

    old: Any = value
    for step in path:
        old = old[step]
    assert json.loads(result) == put(value, path, json.loads(new))
    assert any(replaced == old for replaced in regions(raw, result, new))


def regions(raw: bytes, result: bytes, new: bytes) -> Iterator[Any]:
    """The values in ``raw`` in whose place ``new`` can have come, all other bytes being the same."""
    for start in range(len(result) - len(new) + 1):
        tail = result[start + len(new) :]
        if result[start : start + len(new)] == new and raw[:start] == result[:start] and raw.endswith(tail):
            with contextlib.suppress(ValueError):
                yield json.loads(raw[start : len(raw) - len(tail)])


@given(st.lists(VALUES, max_size=8), STYLES, st.data())
def test_removing_elements_leaves_the_others_as_they_are_written(value: list[Any], style: Any, data: Any) -> None:
    raw = json.dumps({"k": value}, **style).encode()
    gone = data.draw(st.sets(st.integers(0, len(value) - 1))) if value else set()

    result = spliced(raw, *((("k", index), REMOVE) for index in gone))

    assert json.loads(result) == {"k": [item for index, item in enumerate(value) if index not in gone]}
    if not gone:
        assert result == raw


@given(VALUES, STYLES)
def test_a_value_is_skipped_to_its_end(value: Any, style: Any) -> None:
    raw = json.dumps(value, **style).encode()

    assert skip_value(raw + b' ,"x"]', 0) == len(raw)


def test_removed_neighbours_take_one_comma_each() -> None:
    raw = b'[ 1 , "two",[3], {"4":4} ,5 ]'

    assert spliced(raw, ((0,), REMOVE)) == b'[ "two",[3], {"4":4} ,5 ]'
    assert spliced(raw, ((4,), REMOVE)) == b'[ 1 , "two",[3], {"4":4} ]'
    assert spliced(raw, ((1,), REMOVE), ((2,), REMOVE)) == b'[ 1, {"4":4} ,5 ]'
    assert spliced(raw, ((0,), REMOVE), ((1,), REMOVE), ((3,), REMOVE)) == b"[ [3] ,5 ]"
    assert json.loads(spliced(raw, *(((i,), REMOVE) for i in range(5)))) == []


@pytest.mark.parametrize("depth", [7, 8, 9, 30, 1000])
def test_values_deeper_than_the_pattern_are_skipped_too(depth: int) -> None:
    deep = b'[{"a":' * depth + b'"]"' + b"}]" * depth

    assert skip_value(deep + b",", 0) == len(deep)
    assert spliced(b'{"x":' + deep + b',"y":1}', (("y",), b"2")) == b'{"x":' + deep + b',"y":2}'


def test_of_duplicate_keys_the_last_is_edited() -> None:
    """As every reader takes it, whatever the earlier value was."""
    raw = b'{"m":{"t":1,"t":2},"m":"x","m":{"t":3,"u":[1,2]}}'

    assert json.loads(spliced(raw, (("m", "t"), b"9"))) == {"m": {"t": 9, "u": [1, 2]}}
    assert spliced(raw, (("m", "t"), b"9"), (("m", "u", 0), REMOVE)) == (
        b'{"m":{"t":1,"t":2},"m":"x","m":{"t":9,"u":[2]}}'
    )
    assert spliced(b'{"t":1,"\\u0074":2}', (("t",), b"9")) == b'{"t":1,"\\u0074":9}'


def test_keys_are_found_however_they_are_written() -> None:
    assert spliced(b'{"t\\u0065xt":"a"}', (("text",), b'"b"')) == b'{"t\\u0065xt":"b"}'
    assert spliced('{"é":1}'.encode(), (("é",), b"2")) == '{"é":2}'.encode()


def test_numbers_escapes_order_and_space_come_back_as_written() -> None:
    raw = b'{ "n" : 1.50e+3 , "big":123456789012345678901234567890,"s":"\\u00e9\\/\\"", "t":"old" ,"a":1 , "a":2 }\n'

    assert spliced(raw, (("t",), b'"new"')) == raw.replace(b'"old"', b'"new"')


@pytest.mark.parametrize("path", [("b",), ("a", "b"), ("l", 2), ("l", "x"), ("l", 0, "x")])
def test_an_edit_that_leads_nowhere_is_an_error(path: tuple[Any, ...]) -> None:
    with pytest.raises(LookupError):
        spliced(b'{"a":1,"l":[1,2]}', (path, b"0"))


def test_removing_a_value_swallows_the_edits_below_it() -> None:
    raw = b'{"l":[{"t":1},{"t":2}]}'

    assert spliced(raw, (("l", 0, "t"), b"9"), (("l", 0), REMOVE)) == b'{"l":[{"t":2}]}'
    assert spliced(raw, (("l", 0), REMOVE), (("l", 0, "t"), b"9")) == b'{"l":[{"t":2}]}'


def test_a_place_without_a_value_is_an_error() -> None:
    for raw in (b"", b",", b"[1", b'"open'):
        with pytest.raises(ValueError, match="no JSON value"):
            skip_value(raw, 0)
