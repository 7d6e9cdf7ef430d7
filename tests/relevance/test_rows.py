"""Numbered rows: recognising them, and numbering lines the same way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import REMINDER, numbered

from lcc.relevance.reading.rows import number_lines, parse_rows


@pytest.mark.parametrize("form", ["{:>6}→{}", "{}\t{}", "{:>6}\t{}", "{}→{}"])
@pytest.mark.parametrize("first", [0, 1, 9, 4090, 4095, 4096, 99_999, 3_999_999])
@pytest.mark.parametrize("suffix", ["", REMINDER])
def test_rows_are_numbered_as_they_were(form: str, first: int, suffix: str) -> None:
    """The lines that rows show, numbered again, are the rows, whatever the numbers."""
    lines = ["a", "", "\tb", "5→c", "6\td", ""]
    text = numbered("\n".join(lines), first, form)

    rows = parse_rows(text + suffix)

    assert rows is not None
    assert (rows.first, rows.total, rows.end) == (first, len(lines), len(text))
    assert number_lines(lines, rows) == text


@given(
    st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), min_size=1),
    st.integers(0, 5000),
)
def test_any_lines(lines: list[str], first: int) -> None:
    """Lines may hold anything but LF."""
    text = numbered("\n".join(lines), first, "{}\t{}")
    rows = parse_rows(text)

    assert rows is not None
    assert number_lines(lines, rows) == text


@pytest.mark.parametrize(
    "text",
    ["", "a", "1 a", "→a", "1→a\n3→b", "1→a\nb", "1→a\n2→b\n", "    1→a", "-1→a", "\uff11→a", "1.→a", "9" * 13 + "→a"],
)
def test_what_is_no_row(text: str) -> None:
    """Other forms, gaps in the numbers and rows that stop before the end are no rows."""
    assert parse_rows(text) is None
