"""Whatever a report holds, it is explained or refused with a place: never anything else."""

from __future__ import annotations

import copy
import io
import json
from typing import Any

from cli.report_world import ONE_OF_EACH, report_of
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc.commands.explain_text import layout
from lcc.commands.text import write
from lcc.contract.report_reader import ReportError, read_report
from lcc.explain.grouped import explain
from lcc.explain.html import page

VALID = report_of(ONE_OF_EACH)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.sampled_from(["keep", "drop", "replace", "pin", "disk", "\x1b[31m", "</script>", "a" * 5000]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner)),
    max_leaves=6,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value but the root."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, item in inside:
        found += [(*path, key), *places(item, (*path, key))]
    return found


def changed(path: tuple[str | int, ...], new: Any, remove: bool) -> Any:
    """A copy of the valid report with the value at ``path`` replaced or taken away."""
    report = copy.deepcopy(VALID)
    at: Any = report
    for key in path[:-1]:
        at = at[key]
    if remove:
        del at[path[-1]]
    else:
        at[path[-1]] = new
    return report


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(places(VALID)), VALUES, st.booleans())
def test_any_change_of_a_report_is_explained_or_refused(path: tuple[str | int, ...], new: Any, remove: bool) -> None:
    """One value anywhere is replaced by anything, or missing."""
    try:
        report = read_report(json.dumps(changed(path, new, remove)).encode())
    except ReportError:
        return
    shown = io.StringIO()
    write(shown, *layout(explain(report)))
    assert all(c.isprintable() or c == "\n" for c in shown.getvalue())
    drawn = page(report)
    assert drawn.count("</script>") == 2
    json.dumps(explain(report).as_json())


def test_sums_beyond_64_bits_are_explained() -> None:
    """Counts that each fit into 64 bits and together do not: the page and the JSON hold their sum."""
    raw = copy.deepcopy(VALID)
    for record in raw["decisions"]:
        record["tool"], record["chars"] = "Bash", 2**64 - 1
    report = read_report(json.dumps(raw).encode())
    sums = [str((2**64 - 1) * count) for count in range(2, len(report["decisions"]) + 1)]
    for written in (page(report), json.dumps(explain(report).as_json())):
        assert any(each in written for each in sums)
