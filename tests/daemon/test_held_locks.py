"""A lock that another process holds, and does not let go, stops nothing: real processes, stopped as by Ctrl-Z."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from daemon.daemon_world import World, make_event, read_turn, that_can_recall, wait_until
from odd_files import Holder

ASKED = 5


def stopped(hold: Holder, place: Path) -> subprocess.Popen[str]:
    """A process that holds the lock and will not run again."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    process = hold(place)
    os.kill(process.pid, signal.SIGSTOP)
    return process


def reports(state: Path) -> int:
    """How many whole reports are kept."""
    return sum(json.loads(file.read_bytes())["schema_version"] != "" for file in (state / "reports").glob("*.json"))


def test_the_lock_of_the_bytes_saved_holds_up_neither_reports_nor_the_end(world: World, hold: Holder) -> None:
    """What cannot be added waits in memory, and is added once the lock is free."""
    holder = stopped(hold, world.state / "saved.json.lock")
    world.start()
    for number in range(ASKED):
        assert world.plan(make_event(world, session_id=f"session-{number}"))["action"] == "replace"
    assert wait_until(lambda: reports(world.state) == ASKED)
    assert wait_until(lambda: "compact" in json.loads((world.state / "hooks.json").read_bytes()))
    assert "another lcc process holds" in world.status()["last_error"]["what"]  # type: ignore[index]
    assert not (world.state / "saved.json").exists()

    holder.kill()
    holder.wait()
    world.plan(make_event(world, session_id="one more"))
    saved = [int(size) for size in re.findall(r"results removed, (\d+) bytes", world.log())]
    assert len(saved) == ASKED + 1
    file = world.state / "saved.json"
    assert wait_until(lambda: file.exists() and json.loads(file.read_bytes())["ever"] == sum(saved))


def test_a_daemon_ends_in_good_order_while_the_lock_is_held(world: World, hold: Holder) -> None:
    """It says what it could not count, and needs neither its own last limit nor a signal."""
    stopped(hold, world.state / "saved.json.lock")
    world.start()
    world.plan(make_event(world))
    done = world.cli("stop")
    assert (done.returncode, done.stdout.split(" (")[0]) == (0, "lcc-daemon: stopped")
    assert "stopped: asked to" in world.log()
    assert "left undone" not in world.log()
    assert "bytes saved could not be counted" in world.log()
    assert reports(world.state) == 1


@pytest.mark.parametrize("is_held", [True, False])
def test_a_stash_whose_lock_is_held_keeps_the_outputs_and_the_reports_come(
    world: World, hold: Holder, is_held: bool
) -> None:
    """A collection that was stopped: nothing is stashed, the pass answers, and the report says why."""
    stash = world.root / "stash"
    if is_held:
        stopped(hold, stash / "lock")
    turns = read_turn(99, world.project / "search", "found: " * 2000, is_error=False)
    event = json.loads(make_event(world, files=3))
    event["messages"][1:1] = turns
    world.start()
    asked = that_can_recall(world, json.dumps(event).encode())
    plan = world.plan(asked, LCC_RULES_MODE="stashed", LCC_STASH_DIR=str(stash))
    assert wait_until(lambda: len(list((world.state / "reports").glob("*.json"))) == 1)
    report = json.loads(next((world.state / "reports").glob("*.json")).read_bytes())
    assert plan["action"] == "replace"
    assert report["tool_calls_stashed"] == (0 if is_held else 1)
    assert [each.split(":")[:2] for each in report["warnings"]] == [["stash_write_failed", "ETIMEDOUT"]] * is_held
    assert world.cli("stop").stdout.startswith("lcc-daemon: stopped")


def test_a_request_log_whose_lock_is_held_takes_its_lines(world: World, hold: Holder) -> None:
    """The lock is for setting a full log aside alone."""
    log = world.state / "requests.jsonl"
    stopped(hold, log)
    world.start()
    world.plan(make_event(world), LCC_REQUEST_LOG="1")
    assert wait_until(lambda: log.read_bytes().count(b"\n") == 1)
