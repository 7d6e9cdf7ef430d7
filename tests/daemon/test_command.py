"""The `lcc-daemon` command as a person types it."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from daemon.daemon_world import PYTHON, World, make_event, wait_until

from lcc_daemon.cli import status_lines


def test_status_reads_like_a_sentence_in_each_state(world: World) -> None:
    """The first line is the state; a running one tells what it did, a refused one what to run."""
    assert world.cli("status").stdout.splitlines()[0].endswith(": not running")
    pid = world.start()
    world.plan(make_event(world))
    assert wait_until(lambda: "saved       0 " not in world.cli("status").stdout)
    lines = world.cli("status").stdout.splitlines()
    assert lines[0].endswith(": running")
    assert f"  process     {pid}" in lines
    assert any(line.startswith("  requests    1 (0 failed, 0 refused)") for line in lines)
    os.kill(pid, signal.SIGSTOP)
    assert world.cli("status").stdout.splitlines()[0].endswith(": unresponsive")
    os.kill(pid, signal.SIGKILL)
    world.runtime.chmod(0o750)
    refused = world.cli("status")
    assert refused.returncode == 0
    assert f"chmod 700 {world.runtime}" in refused.stdout


def test_busy_names_what_and_for_how_long() -> None:
    """Not `stuck`, not `unresponsive`."""
    found = {
        "state": "busy", "build": "1", "busy": [{"command": "compact", "seconds": 3.21}], "pid": 7,
        "socket": "/s", "log": "/l",
    }  # fmt: skip
    assert status_lines(found)[0] == "lcc-daemon 1: busy: compact for 3.2 s"


def test_logs_show_the_end_and_a_missing_log_is_no_error(world: World) -> None:
    """So many lines as asked for, the newest last."""
    none = world.cli("logs")
    assert (none.returncode, none.stdout) == (0, "")
    assert "no log yet" in none.stderr
    world.start()
    world.cli("stop")
    whole = world.cli("logs").stdout.splitlines()
    assert "started: build" in whole[0]
    assert world.cli("logs", "-n", "1").stdout.splitlines() == whole[-1:]
    assert world.cli("logs", "-n", "0").stdout == ""


@pytest.mark.parametrize("words", [[], ["no-such"], ["logs", "-n", "-1"], ["status", "--yaml"], ["start", "now"]])
def test_a_wrong_command_line_is_exit_2_with_how_to_use_it(world: World, words: list[str]) -> None:
    """Nothing is started by a mistake in typing."""
    done = world.cli(*words)
    assert done.returncode == 2
    assert "usage: lcc-daemon" in done.stderr
    assert world.processes() == []


def test_a_reader_that_leaves_is_no_error(world: World) -> None:
    """`lcc-daemon logs | head -1` ends quietly."""
    world.state.mkdir(mode=0o700)
    (world.state / "daemon.log").write_text("a line of the log\n" * 200_000)
    words = [PYTHON, "-I", "-m", "lcc_daemon", "logs", "-n", "200000"]
    process = subprocess.Popen(words, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(30) == 0
