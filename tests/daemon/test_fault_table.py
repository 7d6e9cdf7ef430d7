"""Every fault of the live path ends in a right replacement, a skip or a hand-over: exit code 0, and in its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from daemon.faults.row import Call, Homes, Live, Row
from daemon.faults.rows import ROWS

FEWEST = 60


@pytest.fixture(scope="module")
def homes() -> Iterator[Homes]:
    """The homes that rows share."""
    with Homes() as made:
        yield made


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.group}: {row.name}" for row in ROWS])
def test_a_fault_ends_as_it_must(row: Row, homes: Homes) -> None:
    """As the row says; a note that does not give back what it stands for is no right replacement."""
    outcome = row.run(homes)
    assert outcome.ended == row.ends, outcome


def test_the_table_has_its_rows() -> None:
    """Names are not used twice, and every ending is one of the three."""
    assert len({(row.group, row.name) for row in ROWS}) == len(ROWS) >= FEWEST
    assert {row.ends.partition(":")[0] for row in ROWS} == {"replaced", "skip", "hand-over"}


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("exit 2", "EXIT 2"),
        ("echo", "NO ANSWER"),
        ("echo '{}'", "NO PLAN"),
        ("""echo '{"v":1,"action":"hand-over","reason":"x","say":""}'""", "NO PLAN"),
        ("""echo '{"v":1,"action":"replace","results":{"toolu_0001":"[removed: re-read /etc/passwd to recover]"}}'""",
         "WRONG NOTE"),
        ("""echo '{"v":1,"action":"replace","results":{"toolu_0001":"[removed: re-read /nowhere to recover]"}}'""",
         "WRONG NOTE"),
    ],
)  # fmt: skip
def test_what_must_not_be_is_seen(script: str, ended: str, homes: Homes) -> None:
    """A hook that ends otherwise, says nothing, or gives notes that lead elsewhere."""

    def make(live: Live) -> Iterator[Call]:
        yield Call(program=("/bin/sh", "-c", script))

    assert Row("", "", "", make).run(homes).ended == ended
