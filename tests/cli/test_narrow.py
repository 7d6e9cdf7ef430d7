"""On a narrow terminal columns are left out; what is shown is whole."""

from __future__ import annotations

import contextlib
import os
import pty
import re
from pathlib import Path

import programs
import pytest
from cli.cli_world import World
from rich.text import Text

IDS = ["0f1e2d3c-4b5a-4697-8877-665544332211", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"]


def on_a_terminal(world: World, columns: int, *words: str) -> list[str]:
    """The lines that lcc shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    env = {**world.environment(), "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": str(columns)}
    shown = b""
    with programs.start("lcc", *words, env=env, cwd=world.folder, terminal=theirs) as run:
        os.close(theirs)
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
        assert run.wait() == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode()).splitlines()


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_session_ids_are_never_cut(world: World, columns: int) -> None:
    """They are what a person copies; other columns go first, and all are there when there is room."""
    projects = world.folder / "home" / ".claude" / "projects"
    name = "".join(c if c.isalnum() else "-" for c in str(world.folder))
    (projects / name).mkdir(parents=True)
    for session in IDS:
        Path(projects / name / f"{session}.jsonl").write_bytes(world.session.read_bytes())

    lines = on_a_terminal(world, columns, "sessions")

    assert all(any(session in line for line in lines) for session in IDS)
    assert max(map(len, lines)) <= columns
    assert ("messages" in lines[0]) == (columns == 200)


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_explain_leaves_room_for_the_reasons(world: World, columns: int) -> None:
    """The last column is no thread of single letters, however long the ids of the calls are."""
    raw = world.session.read_bytes()
    world.session.write_bytes(raw.replace(b"toolu_sample", b"toolu_01ABCDEFGHIJKLMNOPQRST"))
    world.compact("-o", "out.jsonl", "-r", "report.json")
    lines = on_a_terminal(world, columns, "explain", "report.json")
    assert max(map(len, lines)) <= columns
    assert len(lines) < 140
    assert any("toolu_01ABCDEFGHIJKLMNOPQRST007" in line for line in lines) == (columns >= 80)


def test_elsewhere_nothing_is_left_out(world: World) -> None:
    """In a file or a pipe every column stands."""
    world.compact("-o", "out.jsonl", "-r", "report.json")
    assert "  call  " in world.lcc("explain", "report.json").text


def test_columns_go_in_the_order_in_which_they_can_be_spared() -> None:
    """As many as needed, and no more."""
    from lcc.commands.text import _fitting

    rows = [[Text("x" * 10), Text("y" * 10), Text("z" * 100)]]
    assert _fitting(["a", "b", "c"], rows, 44, ["b", "a"]) == [0, 1, 2]
    assert _fitting(["a", "b", "c"], rows, 43, ["b", "a"]) == [0, 2]
    assert _fitting(["a", "b", "c"], rows, 5, ["b", "a"]) == [2]
