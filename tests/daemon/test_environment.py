"""The plugin's own environment: set up once, in the background, whole or not at all, and said in one line."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest
from daemon.daemon_world import CHECKOUT, CLIENT, PYTHON, World, make_event, wait_until

from lcc_hook import builder, environment
from lcc_hook.client import BUILD

STARTUP = '{"session_id":"s","source":"startup"}'


def session_start(world: World, **env: str) -> str:
    """A session start of a plugin without an environment; returns what the user is shown."""
    data = world.root / "data"
    done = world.client("session-start", STARTUP, LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data), **env)
    assert done.returncode == 0
    return json.loads(done.stdout)["systemMessage"] if done.stdout else ""


def fake_python(world: World, pip: str = "exit 0") -> Path:
    """A python that makes an `environment` of a script, which runs the tests' own interpreter, and a pip."""
    program = world.root / "python3.13"
    program.write_text(
        f"""#!/bin/sh
if [ "$2" = venv ]; then
    mkdir -p "$3/bin"
    printf '#!/bin/sh\\nif [ "$3" = pip ]; then {pip}; fi\\nexec {PYTHON} "$@"\\n' > "$3/bin/python"
    chmod +x "$3/bin/python"
    exit 0
fi
exec {PYTHON} "$@"
"""
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def build(world: World, monkeypatch: pytest.MonkeyPatch) -> object:
    """Runs the builder in this process, with the fake python; returns the data folder."""

    def run(pip: str = "exit 0") -> Path:
        data = world.root / "data"
        monkeypatch.setattr(builder.sys, "executable", str(fake_python(world, pip)))
        for key in list(os.environ):
            if key.startswith("LCC_"):
                monkeypatch.delenv(key)
        monkeypatch.setenv("HOME", str(world.root / "home"))
        before = os.umask(0o022)
        try:
            builder.main(str(data), str(CHECKOUT), str(world.runtime))
        finally:
            os.umask(before)
        return data

    return run


def test_a_whole_environment_is_put_in_place_and_the_daemon_runs(world: World, build) -> None:  # type: ignore[no-untyped-def]
    """Marked with its build, behind one link, and a daemon of it is started at once."""
    data = build()
    assert (data / "venv").is_symlink()
    assert (data / "venv" / "lcc-build").read_text() == f"{BUILD}\n"
    assert not (data / "setup-failed").exists()
    assert world.processes() != []
    assert world.plan(make_event(world), LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data))["action"] == "replace"


def test_an_environment_that_is_there_is_not_built_again(world: World, build) -> None:  # type: ignore[no-untyped-def]
    """A second builder finds it ready and changes nothing."""
    data = build()
    before = os.readlink(data / "venv")
    build("exit 1")
    assert os.readlink(data / "venv") == before
    assert not (data / "setup-failed").exists()


def test_an_update_builds_beside_and_swaps(world: World, build) -> None:  # type: ignore[no-untyped-def]
    """The old environment stays whole until the new one is, and once more after that: a daemon may run from it."""
    data = build()
    old = os.readlink(data / "venv")
    (data / "venv" / "lcc-build").write_text("0.0.1\n")
    (data / old).rename(data / "venv-0.0.1-1")
    (data / "venv").unlink()
    (data / "venv").symlink_to("venv-0.0.1-1")
    (data / "venv-0.0.0-1").mkdir()
    build()
    assert (data / "venv" / "lcc-build").read_text() == f"{BUILD}\n"
    assert (data / "venv-0.0.1-1").is_dir()
    assert not (data / "venv-0.0.0-1").exists()


def test_a_failed_update_leaves_the_old_one(world: World, build) -> None:  # type: ignore[no-untyped-def]
    """Nothing is half replaced."""
    data = build()
    (data / "venv" / "lcc-build").write_text("0.0.1\n")
    before = os.readlink(data / "venv")
    build("echo broken wheel; exit 1")
    assert os.readlink(data / "venv") == before
    assert (data / "setup-failed").read_text() == "the package failed: broken wheel\n"
    assert "broken wheel" in (data / "setup.log").read_text()


def test_without_a_network_the_reason_is_said_once(world: World, build, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """The start after a failure says that there is no network; the ones after it nothing, and each tries again."""
    data = build('echo "NewConnectionError: Temporary failure in name resolution"; exit 1')
    world.runtime.mkdir(mode=0o700)
    tries: list[bytes] = []
    monkeypatch.setattr(environment, "begin", lambda data, folder, env: tries.append(data))
    env = {b"CLAUDE_PLUGIN_DATA": os.fsencode(data)}
    folder = os.fsencode(world.runtime)
    said = json.loads(environment.prepare(folder, env))["systemMessage"]
    assert "the package index cannot be reached (no network?)" in said
    assert str(data / "setup.log") in said
    assert environment.prepare(folder, env) == b""
    assert len(tries) == 2


def test_a_build_under_way_is_said_and_not_started_twice(world: World) -> None:
    """Another session starts meanwhile: it is told where the log is."""
    data = world.root / "data"
    data.mkdir()
    hold = os.open(data / "setup.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(hold, fcntl.LOCK_EX)
    assert session_start(world) == f"lcc is still setting up its Python environment (log: {data}/setup.log)"
    plan = world.plan(make_event(world), LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data))
    assert "is still being set up; try again in a minute" in str(plan["say"])
    os.close(hold)
    (data / "setup-failed").write_text("no network\n")
    plan = world.plan(make_event(world), LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data))
    assert "could not be set up: no network; a new session tries again" in str(plan["say"])


def test_a_real_environment_without_a_network(world: World) -> None:
    """The real venv and the real pip against an index that refuses: the reason is that there is no network."""
    said = session_start(world, PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0", PIP_CONFIG_FILE="/dev/null")
    data = world.root / "data"
    assert said.startswith("lcc is setting up its Python environment in the background")
    assert wait_until((data / "setup-failed").exists, 240), (data / "setup.log").read_text()
    assert (data / "setup-failed").read_text() == "the package index cannot be reached (no network?)\n"
    assert not (data / "venv").exists()
    assert world.plan(make_event(world), LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data))["reason"] == "not-installed"


def test_no_python_is_said_with_what_to_install(world: World, build, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """A system whose Python is too old, or cannot make environments."""
    monkeypatch.setattr(builder, "OLDEST", (9, 9))
    monkeypatch.setattr(builder, "OLDEST_NAME", "9.9")
    monkeypatch.setenv("PATH", str(world.root))
    data = build()
    assert (data / "setup-failed").read_text().startswith("no Python 9.9 or newer with its venv module is on PATH")


def test_it_can_be_forbidden(world: World) -> None:
    """LCC_NO_SETUP=1: nothing is built and nothing is said."""
    assert session_start(world, LCC_NO_SETUP="1") == ""
    assert not (world.root / "data").exists()


def test_two_builders_do_not_meet(world: World) -> None:
    """The second one finds the lock held and leaves."""
    data = world.root / "data"
    data.mkdir()
    hold = os.open(data / "setup.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(hold, fcntl.LOCK_EX)
    done = subprocess.run(
        [PYTHON, "-I", CLIENT.parent / "builder.py", data, CHECKOUT, world.runtime],
        env=world.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(hold)
    assert done.returncode == 0
    assert [path.name for path in data.iterdir()] == ["setup.lock"]
