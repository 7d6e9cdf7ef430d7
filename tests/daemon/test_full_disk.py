"""No byte can be written any more (the limit of file sizes is 0, as on a full disk): sessions go on, none is half."""

from __future__ import annotations

import logging
import resource
import sys
from pathlib import Path

import pytest
from daemon.daemon_world import World, make_event, make_large_event, wait_until, write_session
from daemon.test_guide import pre_compact

from lcc_daemon.logs import open_log


@pytest.mark.skipif(sys.platform != "linux", reason="a running process's limits can be changed on Linux alone")
def test_a_full_disk_takes_nothing_from_a_compaction_and_leaves_nothing_half(world: World) -> None:
    pid = world.start()
    assert wait_until(lambda: bool(world.status()["warm"]))
    before = {path: path.stat().st_size for path in [*world.state.rglob("*"), *world.runtime.rglob("*")]}
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
    for number in range(20):
        assert world.plan(make_event(world, session_id=f"s-{number}"), LCC_REQUEST_LOG="1")["action"] == "replace"
    assert "module_3.py" in pre_compact(world, write_session(world))
    assert world.status()["failed"] == 0
    grown = [
        path
        for path in [*world.state.rglob("*"), *world.runtime.rglob("*")]
        if path.is_file() and path.stat().st_size != before.get(path, 0)
    ]
    assert grown == []
    assert not list(world.state.rglob("*.tmp"))
    done = world.cli("stop")
    assert done.stdout.startswith("lcc-daemon: stopped")


@pytest.mark.skipif(sys.platform != "linux", reason="a running process's limits can be changed on Linux alone")
def test_a_plan_that_is_too_long_and_cannot_be_kept_is_handed_over_by_name(world: World) -> None:
    pid = world.start()
    event = make_large_event(world)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
    plan = world.plan(event)
    assert (plan["action"], plan["reason"]) == ("hand-over", "parts")
    assert "File too large" in str(plan["say"])
    assert list((world.runtime / "parts").iterdir()) == []


def test_a_log_that_cannot_be_written_says_nothing_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the start's output goes: a traceback for each line would fill that disk instead."""
    log = open_log(tmp_path / "daemon.log")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        for _ in range(100):
            log.info("a line")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert capsys.readouterr().err == ""
    log.info("room again")
    assert (tmp_path / "daemon.log").read_text().endswith("room again\n")
    logging.getLogger("lcc_daemon").handlers.clear()
