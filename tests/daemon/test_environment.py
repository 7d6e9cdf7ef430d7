"""The plugin's own environment: set up once, in the background, whole or not at all, and said in one line."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from daemon.daemon_world import CHECKOUT, CLIENT, PYTHON, World, is_running, make_event, wait_until
from odd_files import small_disk

from lcc_hook import builder, environment, places
from lcc_hook.places import needs

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
    assert (data / "venv" / "lcc-needs").read_bytes() == needs() + b"\n"
    assert not [path.name for path in data.iterdir() if path.name in ("setup-failed", "setup-step", "setup-tries")]
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
    (data / "venv" / "lcc-needs").write_text("other libraries\n")
    (data / old).rename(data / "venv-0.0.1-1")
    (data / "venv").unlink()
    (data / "venv").symlink_to("venv-0.0.1-1")
    (data / "venv-0.0.0-1").mkdir()
    build()
    assert (data / "venv" / "lcc-needs").read_bytes() == needs() + b"\n"
    assert (data / "venv-0.0.1-1").is_dir()
    assert not (data / "venv-0.0.0-1").exists()


def test_a_failed_update_leaves_the_old_one(world: World, build) -> None:  # type: ignore[no-untyped-def]
    """Nothing is half replaced."""
    data = build()
    (data / "venv" / "lcc-needs").write_text("other libraries\n")
    before = os.readlink(data / "venv")
    build("echo broken wheel; exit 1")
    assert os.readlink(data / "venv") == before
    assert (data / "setup-failed").read_text() == "fetching the libraries failed: broken wheel\n"
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
    """Another session starts meanwhile: it is told how far it is, and where the log is."""
    data = world.root / "data"
    data.mkdir()
    hold = os.open(data / "setup.lock", os.O_RDWR | os.O_CREAT)
    os.write(hold, b"%d" % (time.time() - 40))
    fcntl.flock(hold, fcntl.LOCK_EX)
    (data / "setup-step").write_text("step 2 of 3: fetching its libraries")
    said = session_start(world)
    assert said.startswith("lcc compacts by its rules. Now its Python environment is being set up for 4")
    assert said.endswith(f" s (step 2 of 3: fetching its libraries) (log: {data}/setup.log)")
    elsewhere = {"LCC_PYTHON": "-", "CLAUDE_PLUGIN_DATA": str(data), "LCC_RUNTIME_DIR": str(world.root / "none")}
    plan = world.plan_alone(make_event(world), **elsewhere)
    assert "(step 2 of 3: fetching its libraries); try again in a minute" in str(plan["say"])
    os.close(hold)
    (data / "setup-failed").write_text("no network\n")
    plan = world.plan_alone(make_event(world), **elsewhere, LCC_NO_SETUP="1")
    assert "could not be set up: no network" in str(plan["say"])


def test_a_build_that_died_is_not_taken_for_one_that_runs(world: World, build, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """Killed in the middle: the next start says so and tries again, and what was left goes; not at each start."""
    data = world.root / "data"
    (data / "venv-0.0.1-7" / "unpacked").mkdir(parents=True)
    (data / "setup-step").write_text("step 2 of 3: fetching its libraries")
    (data / "setup.lock").write_text("1")
    world.runtime.mkdir(mode=0o700)
    tries: list[bytes] = []
    monkeypatch.setattr(environment, "begin", lambda data, folder, env: tries.append(data))
    env = {b"CLAUDE_PLUGIN_DATA": os.fsencode(data)}
    said = json.loads(environment.prepare(os.fsencode(world.runtime), env))["systemMessage"]
    assert "it ended in the middle (step 2 of 3: fetching its libraries)" in said
    for _ in range(5):
        environment.prepare(os.fsencode(world.runtime), env)
    assert len(tries) == environment.TRIES
    os.utime(data / "setup-tries", (1, 1))
    environment.prepare(os.fsencode(world.runtime), env)
    assert len(tries) == environment.TRIES + 1
    build()
    assert not (data / "venv-0.0.1-7").exists()
    assert (data / "venv").is_symlink()


@pytest.mark.parametrize("where", ["plugins/cache/lcc/lcc/0.1.0", "plugins/cache/lcc", "work/checkout"])
def test_a_copied_environment_goes_from_the_clients_copy_alone(tmp_path: Path, where: str) -> None:
    """Installed from a checkout, the plugin has that one's `.venv` in it; a checkout itself keeps its own."""
    root = tmp_path / where
    for name in (".venv", "venv"):
        (root / name / "bin").mkdir(parents=True)
        (root / name / "pyvenv.cfg").write_text("home = /usr/bin\n")
    builder.drop_copied_environment(str(root))
    assert (root / ".venv").exists() is (where != "plugins/cache/lcc/lcc/0.1.0")
    assert (root / "venv").exists()


def test_a_disk_without_room_is_left_alone(world: World, build, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    """Nothing is begun that cannot end, and it is said how much is needed."""
    monkeypatch.setattr(places, "ROOM", 10**18)
    data = build()
    assert "MB are needed" in (data / "setup-failed").read_text()
    assert [path.name for path in data.iterdir() if path.is_dir()] == []


def test_a_disk_without_a_free_byte_ends_in_a_line(world: World) -> None:
    """No traceback, nothing half is left, the next start does not take it for one that runs, and the reason is said."""
    data = world.root / "data"
    with small_disk(data) as fill:
        fill()
        before = sorted(path.name for path in data.iterdir())
        for _ in range(2):
            done = subprocess.run(
                [PYTHON, "-I", builder.__file__, str(data), str(CHECKOUT), str(world.runtime)],
                env={"HOME": str(world.root / "home"), "PATH": "/usr/bin:/bin"},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        left = {path.name: path.stat().st_size for path in data.iterdir() if path.name not in before}
        assert left == {"setup.lock": 0, "setup.log": 0}
        told = session_start(world)
        assert f"0 MB are free in {data}, and 400 MB are needed" in told
        assert "could not be set up" in told
        assert not [name for name in os.listdir(data) if name.startswith("setup-")]


def test_a_disk_that_fills_up_is_given_its_room_back(world: World, build) -> None:  # type: ignore[no-untyped-def]
    """pip's own words for a full disk; what was made so far is removed."""
    data = build(
        'dd if=/dev/zero of=$0.part bs=1k count=64; echo "OSError: [Errno 28] No space left on device"; exit 1'
    )
    assert (data / "setup-failed").read_text() == f"the disk of {data} is full\n"
    assert [path.name for path in data.iterdir() if path.is_dir()] == []


def test_a_daemon_without_libraries_gives_way_to_the_environment(world: World, build) -> None:  # type: ignore[no-untyped-def]
    """The first compaction is by the sources alone; once the environment is there, its daemon serves."""
    assert world.plan(make_event(world), LCC_PYTHON="-")["action"] == "replace"
    plain = world.pid()
    data = build()
    assert wait_until(lambda: not is_running(plain))
    assert world.plan(make_event(world), LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data))["action"] == "replace"
    assert world.pid() != plain


def test_a_running_daemon_asks_for_the_set_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session start that a daemon answers tries again, where the environment could not be made before."""
    world.plan(make_event(world), LCC_PYTHON="-")
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": "/dev/null"}
    said = session_start(world, **nowhere)
    assert said.startswith("lcc compacts by its rules. It is setting up its Python environment in the background")
    assert wait_until((world.root / "data" / "setup.lock").exists)


def test_a_real_environment_without_a_network(world: World) -> None:
    """The real venv and the real pip against an index that refuses: the reason is that there is no network."""
    said = session_start(world, PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="0", PIP_CONFIG_FILE="/dev/null")
    data = world.root / "data"
    assert said.startswith("lcc compacts by its rules. It is setting up its Python environment in the background")
    assert wait_until((data / "setup-failed").exists, 240), (data / "setup.log").read_text()
    assert (data / "setup-failed").read_text() == "the package index cannot be reached (no network?)\n"
    assert not (data / "venv").exists()
    assert world.plan(make_event(world), LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data))["action"] == "replace"


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
