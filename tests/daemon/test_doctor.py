"""`lcc doctor`: every trouble is named, with its next step, and nothing is started or changed."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from daemon.daemon_world import World, make_event, wait_until

from lcc.doctor import Check, as_json, doctor, failed, render, run_program


def look(world: World, monkeypatch: pytest.MonkeyPatch, **env: str) -> dict[str, Check]:
    """The checks in this world, by name. The daemon is asked for real."""
    wanted = world.merged({"PATH": f"{world.root}/bin:/usr/bin:/bin", **env})
    for key in [key for key in os.environ if key.startswith(("LCC_", "CLAUDE_", "XDG_"))]:
        monkeypatch.delenv(key)
    for key, value in wanted.items():
        monkeypatch.setenv(key, value)
    checks = doctor(wanted, run_program)
    assert all(check.next_step for check in checks if check.state == "problem")
    return {check.name: check for check in checks}


def claude(world: World, version: str) -> None:
    (world.root / "bin").mkdir(exist_ok=True)
    program = world.root / "bin" / "claude"
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    program.chmod(0o755)


def test_a_fresh_machine_has_no_problem_and_nothing_is_started(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first session: notes what is not there yet, and starts no daemon."""
    checks = look(world, monkeypatch)
    assert not failed(list(checks.values()))
    assert checks["daemon"].found.startswith("not running")
    assert world.processes() == []
    assert not world.state.exists()
    assert (checks["lcc"].state, "on PATH" in checks["lcc"].found) == ("note", True)
    assert "lcc" in checks["lcc"].next_step


@pytest.mark.parametrize(
    ("script", "state", "told"),
    [
        ("echo 3.12", "ok", "3.12"),
        ("sleep 0.2; echo 3.12", "note", "version manager"),
        ("echo 3.6", "problem", "is 3.6"),
        ("exit 3", "problem", "exit 3"),
    ],
)
def test_the_python3_that_runs_the_hooks(
    world: World, monkeypatch: pytest.MonkeyPatch, script: str, state: str, told: str
) -> None:
    """Too old, broken, slow by a stand-in: each is told, since no hook works without it."""
    (world.root / "bin").mkdir()
    program = world.root / "bin" / "python3"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = look(world, monkeypatch)["python3"]
    assert found.state == state or (state, found.state) == ("ok", "note")  # a loaded machine starts slowly
    assert told in found.found + found.next_step


def test_no_python3_at_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it no hook can run, and nothing would ever say so."""
    assert look(world, monkeypatch, PATH="/nowhere")["python3"].state == "problem"


@pytest.mark.parametrize(
    ("version", "state"), [("2.1.197", "problem"), ("2.1.250", "note"), ("2.1.332", "ok"), ("3.0.0", "ok")]
)
def test_the_clients_version(world: World, monkeypatch: pytest.MonkeyPatch, version: str, state: str) -> None:
    """An old client can only be guided, and says so; one between was not tried."""
    claude(world, version)
    assert look(world, monkeypatch)["claude code"].state == state


def test_the_plugin(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed, disabled, not there: from Claude Code's own files."""
    plugins = world.root / "home" / ".claude" / "plugins"
    assert look(world, monkeypatch)["plugin"].state == "note"
    plugins.mkdir(parents=True)
    (plugins / "installed_plugins.json").write_text('{"version": 2, "plugins": {"lcc@lcc": [{"version": "0.1.0"}]}}')
    assert look(world, monkeypatch)["plugin"].state == "ok"
    (plugins.parent / "settings.json").write_text('{"enabledPlugins": {"lcc@lcc": false}}')
    found = look(world, monkeypatch)["plugin"]
    assert (found.state, found.next_step) == ("problem", "claude plugin enable lcc@lcc")


def test_when_each_hook_last_fired(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a compaction its time is shown; a PreCompact without a session.compact: the module is not loaded."""
    world.start()
    world.client("pre-compact", "{}")
    assert wait_until((world.state / "hooks.json").exists)
    assert look(world, monkeypatch)["hooks"].state == "problem"
    world.plan(make_event(world))
    assert wait_until(lambda: "compact" in json.loads((world.state / "hooks.json").read_text()))
    found = look(world, monkeypatch)["hooks"]
    assert found.state == "ok"
    assert "compact 20" in found.found


def test_a_running_a_hung_and_a_refused_daemon(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each state with its own next step."""
    pid = world.start()
    assert look(world, monkeypatch)["daemon"].found.startswith(f"running, pid {pid}")
    os.kill(pid, signal.SIGSTOP)
    hung = look(world, monkeypatch)["daemon"]
    assert (hung.state, hung.next_step) == ("problem", "lcc-daemon restart")
    os.kill(pid, signal.SIGKILL)
    world.runtime.chmod(0o755)
    refused = look(world, monkeypatch)["daemon"]
    assert refused.state == "problem"
    assert f"chmod 700 {world.runtime}" in refused.found


def test_the_configuration(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken file, a switch that is off, a judge without a key: each is named."""
    file = world.root / "home" / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text("min_reduction = 3\n")
    broken = look(world, monkeypatch)["config"]
    assert broken.state == "problem"
    assert str(file) in broken.found
    file.write_text('enabled = false\nprovider = "jev"\n')
    checks = look(world, monkeypatch)
    assert checks["switch"].state == "problem"
    assert checks["judge"].state == "problem"
    assert "there is no key" in checks["judge"].found
    assert look(world, monkeypatch, TYPESAFE_API_KEY="secret-key")["judge"].state == "ok"


def test_no_check_shows_a_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed may be pasted into an issue."""
    monkeypatch.setenv("TYPESAFE_API_KEY", "secret-key")
    checks = look(world, monkeypatch, TYPESAFE_API_KEY="secret-key", LCC_PROVIDER="jev")
    assert "secret-key" not in render(list(checks.values()))


def test_the_plugins_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not yet, failed with its reason, of another build, ready: each is told apart."""
    from lcc_hook.places import needs

    assert "no session has started" in look(world, monkeypatch)["environment"].found
    data = world.root / "data"
    (data / "venv").mkdir(parents=True)
    world.runtime.mkdir(mode=0o700)
    (world.runtime / "plugin-data").write_text(f"{data}\n")
    assert "not there yet" in look(world, monkeypatch)["environment"].found
    (data / "setup-failed").write_text("no network\n")
    failed_one = look(world, monkeypatch)["environment"]
    assert (failed_one.state, failed_one.found) == ("problem", "could not be set up: no network")
    (data / "venv" / "bin").mkdir()
    (data / "venv" / "bin" / "python").symlink_to(sys.executable)
    (data / "venv" / "lcc-needs").write_text("other libraries\n")
    (data / "setup-failed").unlink()
    assert "made for another build" in look(world, monkeypatch)["environment"].found
    (data / "venv" / "lcc-needs").write_bytes(needs() + b"\n")
    assert look(world, monkeypatch)["environment"].state == "ok"


def test_the_folders(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state folder open to others, a stash that is unsafe, a socket path that had to move."""
    world.state.mkdir()
    world.state.chmod(0o755)
    stash = world.root / "stash"
    stash.mkdir()
    stash.chmod(0o777)
    long = str(world.root / ("deep-" * 30))
    checks = look(world, monkeypatch, LCC_STASH_DIR=str(stash), LCC_RUNTIME_DIR=long)
    assert checks["state folder"].next_step == f"chmod 700 {world.state}"
    assert checks["stash"].state == "problem"
    assert checks["socket"].state == "note"


def test_the_lines_and_the_json_say_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line for each check, the next step under it, and how many problems there are."""
    checks = list(look(world, monkeypatch).values())
    text = render(checks)
    assert all(check.found in text for check in checks)
    assert text.endswith("nothing stands in the way\n")
    assert [each["name"] for each in json.loads(as_json(checks))] == [check.name for check in checks]
    trouble = [Check("x", "problem", "broken", "mend it")]
    assert failed(trouble)
    assert render(trouble).splitlines()[-1] == "1 problem(s)"


def test_a_daemon_command_that_fails_is_a_problem(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package without its daemon is not taken for `not running`."""
    checks = doctor(world.env, lambda words: (1, "") if words[0] == sys.executable else run_program(words))
    assert {check.name: check.state for check in checks}["daemon"] == "problem"


def test_a_program_that_hangs_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """`claude --version` that never ends does not hang the doctor."""
    monkeypatch.setattr("lcc.doctor.ANSWER_SECONDS", 0.3)
    assert run_program(["/bin/sleep", "20"]) == (124, "")
    assert run_program([str(Path("/nowhere/claude"))]) == (127, "")
