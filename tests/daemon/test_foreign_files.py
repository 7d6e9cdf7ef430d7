"""Folders that the user already uses, given to the daemon as its own: what is in them stays as it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from daemon.daemon_world import World, make_event, wait_until, write_session
from daemon.test_guide import pre_compact

from lcc.contract.report import Report
from lcc_daemon import keepers as keepers_module
from lcc_daemon.background import Background
from lcc_daemon.keepers import GUIDES_KEPT, REPORTS_KEPT, Keepers
from lcc_daemon.logs import open_fault_log, open_log
from lcc_daemon.saved import SavedBytes

LONG_AGO = 1_000_000.0


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below ``folder`` and what it holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def a_users_folder(folder: Path) -> dict[str, bytes]:
    """Files of the user in every place where the daemon keeps and removes something; older than all of ours."""
    for number in range(REPORTS_KEPT + 30):
        write(folder / "reports" / f"q{number:03}.json", "my own report")
    for number in range(GUIDES_KEPT + 10):
        write(folder / "guides" / f"chapter-{number:02}" / "text.md", "mine")
        write(folder / "guides" / f"both-{number:02}" / "user-messages.txt", "mine")
        write(folder / "guides" / f"both-{number:02}" / "notes.md", "mine")
    write(folder / "saved.json", '{"bookmarks": ["a", "b"]}')
    write(folder / "hooks.json", '{"hooks": {"PreToolUse": []}}')
    write(folder / "daemon-fault.log", "a list of faults\n")
    write(folder / "requests.jsonl", '{"request": 1}\n')
    return contents(folder)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (LONG_AGO, LONG_AGO))
    os.utime(path.parent, (LONG_AGO, LONG_AGO))


def test_nothing_of_the_users_is_removed_or_changed(world: World) -> None:
    """Compactions, a guide, parts of plans and a start in folders that hold other things too."""
    theirs = a_users_folder(world.state)
    world.runtime.mkdir(mode=0o700)
    write(world.runtime / "parts" / "engine.step", "my part")
    write(world.runtime / "d-9-notes.sock", "no socket")
    parts = contents(world.runtime)
    world.start()
    assert world.plan(make_event(world), LCC_REQUEST_LOG="1")["action"] == "replace"
    pre_compact(world, write_session(world))
    assert wait_until(lambda: len(list((world.state / "guides").glob("11111111-*/report.json"))) == 1)
    assert wait_until(lambda: len(list((world.state / "reports").glob("2*.json"))) == 1)
    assert world.cli("stop").returncode == 0
    assert {name: data for name, data in contents(world.state).items() if name in theirs} == theirs
    assert {name: data for name, data in contents(world.runtime).items() if name in parts} == parts
    assert "some other program's file" in world.log()


def test_somebody_elses_daemon_log_is_not_written_to(world: World) -> None:
    """Nor rotated: the daemon does not start, and says what to do."""
    write(world.state / "daemon.log", "2026-01-01 10:00:00,000 INFO mine\n")
    plan = world.plan(make_event(world))
    assert plan["action"] == "hand-over"
    assert "LCC_STATE_DIR" in str(plan["say"])
    assert contents(world.state) == {"daemon.log": b"2026-01-01 10:00:00,000 INFO mine\n"}


@pytest.mark.parametrize("name", ["daemon.log", "daemon.log.1", "daemon.log.3"])
@pytest.mark.parametrize("start", ["notes", "2026-01-01 10:00:00,000 INFO mine\n", "\n", "x" * 100])
def test_a_log_is_ours_by_how_it_begins(tmp_path: Path, name: str, start: str) -> None:
    (tmp_path / name).write_text(start)
    with pytest.raises(OSError, match="some other program's"):
        open_log(tmp_path / "daemon.log")
    assert contents(tmp_path) == {name: start.encode()}


@pytest.mark.parametrize("length", [0, 4, 10, 19, 23, 28, 33, 60])
def test_a_log_that_a_full_disk_cut_off_is_still_ours(tmp_path: Path, length: int) -> None:
    file = tmp_path / "daemon.log"
    open_log(file).info("started: build 1, protocol 2, Python 3")
    file.write_bytes(file.read_bytes()[:length])
    open_log(file).info("again")
    assert file.read_text().endswith("INFO again\n")


def test_an_old_fault_log_of_ours_is_emptied_and_any_other_is_left(tmp_path: Path) -> None:
    file = tmp_path / "daemon-fault.log"
    file.write_text("Fatal Python error: Segmentation fault\n")
    open_fault_log(file).close()
    assert file.read_bytes() == b""
    file.write_text("mine")
    with pytest.raises(OSError, match="some other program's"):
        open_fault_log(file)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("content", [b'{"name": "x"}', b'[{"today": 1}]', b"[1, 2]", b'"text"', b"x" * 5000])
def test_figures_are_not_written_over_what_is_not_ours(tmp_path: Path, content: bytes) -> None:
    """They wait in memory, and `status` says why."""
    file = tmp_path / "saved.json"
    file.write_bytes(content)
    problems: list[str] = []
    saved = SavedBytes(tmp_path, problems.append)
    saved.add(7)
    assert (file.read_bytes(), saved.saved()["ever"]) == (content, 7)
    assert [problem.partition(":")[0] for problem in problems] == ["saved.json"]


def test_old_reports_and_guides_of_ours_go_and_the_newest_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that a daemon which was killed left beside their places."""
    import logging

    monkeypatch.setattr(keepers_module, "REPORTS_KEPT", 3)
    monkeypatch.setattr(keepers_module, "GUIDES_KEPT", 2)
    background = Background(logging.getLogger("test"))
    keepers = Keepers(background, logging.getLogger("test"))
    report: Report = json.loads("{}")
    names = [f"20260101T00000{number}-000000-s.json" for number in range(6)]
    for name in names:
        keepers.keep_report(tmp_path / "reports" / name, report)
    write(tmp_path / "reports" / f".{names[0]}.0123456789abcdef.tmp", "cut off")
    write(tmp_path / "reports" / ".theirs.0123456789abcdef.tmp", "theirs")
    for number in range(4):
        folder = keepers.guide_folder(tmp_path, f"s-{number}")
        keepers.keep_to_give_back(folder, b"words", b"back")
        write(folder / ".compacted.jsonl.0123456789abcdef.tmp", "cut off")
        guide = Background(logging.getLogger("test"))
        Keepers(guide, logging.getLogger("test")).keep_guide(folder, b"compacted", report)
        assert guide.close(20)
        os.utime(folder, (LONG_AGO + number, LONG_AGO + number))
    last = keepers.report_path(tmp_path, "last")
    keepers.keep_report(last, report)
    assert background.close(20)
    left = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert left == [".theirs.0123456789abcdef.tmp", *names[4:], last.name]
    assert len(list((tmp_path / "guides").iterdir())) == 2
