"""The hook client: what it imports, what it says when it cannot be served, and that it never fails a session."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from daemon.daemon_world import CHECKOUT, CLIENT, World, frame, make_event, make_large_event, read_frame, wait_until

from lcc_hook.places import needs

ALLOWED_IMPORTS = {"_signal", "_socket", "posix", "time"}
"""Beside what a bare `python3 -I -S -E -c pass` loads."""
HOOK_FILES = sorted(path.name for path in CLIENT.parent.glob("*.py"))
HOOK_COMMANDS = ("session-start", "pre-compact", "session-end")


def imported(words: list[str | Path], world: World, stdin: bytes) -> set[str]:
    """The modules that one run of Python loads, as `-X importtime` lists them."""
    env = {name: value for name, value in world.env.items() if "BUDGET" not in name}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        input=stdin, capture_output=True, env=env, timeout=60, check=False,
    )  # fmt: skip
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines[1:]}


def test_a_warm_call_imports_next_to_nothing(world: World) -> None:
    """No json, no os, no site: only the socket, the alarm and the system calls."""
    world.start()
    event = make_event(world)
    bare = imported(["-I", "-S", "-E", "-c", "pass"], world, b"")
    warm = imported(["-I", "-S", "-E", CLIENT, "compact"], world, event)
    assert "_socket" in warm
    assert warm - bare <= ALLOWED_IMPORTS


def test_the_hook_folder_imports_nothing_of_ours_and_nothing_installed() -> None:
    """Every file that Claude Code's python3 may run gets by with the standard library."""
    import ast

    for name in HOOK_FILES:
        tree = ast.parse((CLIENT.parent / name).read_text())
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for each in names:
                top = each.partition(".")[0]
                assert top == "lcc_hook" or top in sys.stdlib_module_names, (name, each)


def test_the_build_is_the_projects_version() -> None:
    """The build stands in the socket's name: it must change with every release, and with nothing else."""
    import tomllib

    from lcc_hook.client import BUILD

    with open(CHECKOUT / "pyproject.toml", "rb") as file:
        assert tomllib.load(file)["project"]["version"] == BUILD
    plugin = json.loads((CHECKOUT / ".claude-plugin" / "plugin.json").read_text())
    assert plugin["version"] == BUILD


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_older_and_newer_pythons_compile_the_hook_files(version: str, world: World) -> None:
    """`python3` is whatever the system has: the syntax is that of 3.8."""
    import ast

    major, minor = map(int, version.split("."))
    for name in HOOK_FILES:
        ast.parse((CLIENT.parent / name).read_text(), feature_version=(major, minor))


def test_without_any_daemon_compact_says_what_to_run(world: World) -> None:
    """Nothing installed, nothing on PATH, no sources: a hand-over in one line that names the way out, and exit 0."""
    plan = world.plan_alone(make_event(world), LCC_PYTHON="-")
    assert (plan["action"], plan["reason"]) == ("hand-over", "not-installed")
    assert "pipx install " in str(plan["say"])
    assert "\n" not in str(plan["say"])


def test_the_sources_alone_are_enough_for_the_rules(world: World) -> None:
    """No environment and nothing on PATH: a Python without a single library gives the same plan as the whole one."""
    event = make_event(world)
    plain = world.plan(event, LCC_PYTHON="-")
    assert b"-S" in (Path("/proc") / str(world.pid()) / "cmdline").read_bytes().split(b"\0")
    world.cli("stop")
    whole = world.plan(event)
    assert b"-S" not in (Path("/proc") / str(world.pid()) / "cmdline").read_bytes().split(b"\0")
    assert (plain["action"], plain["results"], plain["dropped"]) == ("replace", whole["results"], whole["dropped"])


def test_what_cannot_be_started_gives_way_to_the_next(world: World) -> None:
    """A broken environment, and an `lcc-daemon` on PATH that is of another build: the sources alone do it."""
    data = plugin_data(world)
    (data / "venv" / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    (world.root / "bin").mkdir()
    program = world.root / "bin" / "lcc-daemon"
    program.write_text("#!/bin/sh\necho another build >&2\nexit 1\n")
    program.chmod(0o755)
    found = {"LCC_PYTHON": "-", "CLAUDE_PLUGIN_DATA": str(data), "PATH": f"{world.root}/bin:/usr/bin:/bin"}
    assert world.plan(make_event(world), **found)["action"] == "replace"


def test_lcc_daemon_on_path_is_found(world: World) -> None:
    """The package installed with pipx: its `lcc-daemon` is the one to start."""
    (world.root / "bin").mkdir()
    program = world.root / "bin" / "lcc-daemon"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -m lcc_daemon "$@"\n')
    program.chmod(0o755)
    plan = world.plan(make_event(world), LCC_PYTHON="-", PATH=f"{program.parent}:/usr/bin:/bin")
    assert plan["action"] == "replace"


def test_a_relative_path_entry_is_never_searched(world: World) -> None:
    """`.` on PATH with a program of that name in the project is not run."""
    program = world.project / "lcc-daemon"
    program.write_text('#!/bin/sh\ntouch "$HOME/was-run"\n')
    program.chmod(0o755)
    plan = world.plan_alone(make_event(world), LCC_PYTHON="-", PATH=".::/usr/bin:/bin")
    assert plan["reason"] == "not-installed"
    assert not (world.root / "home" / "was-run").exists()


def test_the_plugins_own_environment_is_found_by_whoever_is_not_told(world: World) -> None:
    """The module's process gets no CLAUDE_PLUGIN_DATA: the place that a session start left is used."""
    data = plugin_data(world)
    world.runtime.mkdir(mode=0o700)
    (world.runtime / "plugin-data").write_text(f"{data}\n")
    assert world.plan(make_event(world), LCC_PYTHON="-")["action"] == "replace"


def test_an_environment_of_another_build_gives_its_libraries(world: World) -> None:
    """After the plugin's update the old environment is used with the new sources, until a new one is there."""
    data = plugin_data(world)
    (data / "venv" / "lcc-needs").write_text("other libraries\n")
    assert world.plan(make_event(world), LCC_PYTHON="-", CLAUDE_PLUGIN_DATA=str(data))["action"] == "replace"
    assert str(data / "venv" / "bin" / "python") in (data / "was-run").read_text()


def plugin_data(world: World) -> Path:
    """A data folder whose environment is the tests' own interpreter."""
    data = world.root / "data"
    (data / "venv" / "bin").mkdir(parents=True)
    python = data / "venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\necho "$0" >> {data}/was-run\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (data / "venv" / "lcc-needs").write_bytes(needs() + b"\n")
    return data


def test_a_session_start_leaves_the_data_folder_for_the_module(world: World) -> None:
    """With a daemon that runs, and without one."""
    data = plugin_data(world)
    world.start()
    hook = json.dumps({"session_id": "s", "source": "startup"})
    world.client("session-start", hook, CLAUDE_PLUGIN_DATA=str(data))
    assert (world.runtime / "plugin-data").read_text() == f"{data}\n"
    world.cli("stop")
    (world.runtime / "plugin-data").unlink()
    world.client("session-start", hook, CLAUDE_PLUGIN_DATA=str(data), LCC_PYTHON="-")
    assert (world.runtime / "plugin-data").read_text() == f"{data}\n"
    assert wait_until(lambda: world.processes() != [])


def test_a_session_start_does_not_wait_for_the_daemon(world: World) -> None:
    """The daemon is started behind it: the hook is back while a start that hangs is still under way."""
    slow = world.root / "python"
    slow.write_text("#!/bin/sh\nexec sleep 8\n")
    slow.chmod(0o755)
    began = time.monotonic()
    done = world.client("session-start", '{"source":"startup"}', LCC_PYTHON=str(slow))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - began < 7


@pytest.mark.parametrize("command", ["no-such-command", "session-end"])
def test_news_of_an_end_starts_no_daemon(world: World, command: str) -> None:
    """Nobody is started to be told that a session has ended."""
    done = world.client(command, "{}")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert world.processes() == []


@pytest.mark.parametrize("command", [*HOOK_COMMANDS, "compact", "", "no-such"])
@pytest.mark.parametrize("stdin", [b"", b"\x00\xff garbage", b"[]", b"{}", b'{"messages": 7}'])
def test_any_command_with_any_input_exits_0(world: World, command: str, stdin: bytes) -> None:
    """A hook never fails and never blocks: exit 0, no traceback, and `compact` always prints a plan."""
    done = world.client(command, stdin, LCC_PYTHON="-")
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    if command == "compact":
        assert json.loads(done.stdout)["action"] == "hand-over"


def test_broken_input_with_a_running_daemon_is_a_hand_over_with_its_place(world: World) -> None:
    """The daemon says what is wrong with an event, without quoting it."""
    world.start()
    for stdin, reason in [
        (b"", "bad-event"),
        (b"\xff\xfe", "bad-event"),
        (b"[]", "bad-event"),
        (b'{"messages": []}', "bad-event"),
        (make_event(world, trigger="precompute"), "unknown-trigger"),
        (make_event(world, cwd=""), "bad-event"),
        (make_event(world, messages=[{"role": "nobody", "text": "x", "toolUses": []}]), "bad-transcript"),
    ]:
        plan = world.plan(stdin)
        assert (plan["action"], plan["reason"]) == ("hand-over", reason)


class FakeDaemon:
    """Listens at the daemon's place and says what a test wants."""

    def __init__(self, world: World, *parts: bytes, hold: bool = False) -> None:
        from lcc_hook.client import socket_path

        world.runtime.mkdir(mode=0o700, exist_ok=True)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(socket_path(os.fsencode(world.runtime)))
        self.server.listen(8)
        self.parts = parts
        self.hold = hold
        self.request: list[bytes] = []
        self.done = threading.Event()
        threading.Thread(target=self.talk, daemon=True).start()

    def talk(self) -> None:
        from lcc_hook.client import BUILD, PROTOCOL

        line, _ = self.server.accept()
        with line:
            line.sendall(frame(f"lcc {PROTOCOL} {BUILD} 1".encode()))
            self.request = [read_frame(line), read_frame(line)]
            for part in self.parts:
                line.sendall(part)
            if self.hold:
                self.done.wait(30)

    def close(self) -> None:
        self.done.set()
        self.server.close()


def test_more_time_is_given_when_the_daemon_asks_for_it(world: World) -> None:
    """`wait` moves the alarm: a judge may take longer than the budget."""
    fake = FakeDaemon(world, frame(b"wait 8000\n") + frame(b""), hold=True)

    def answer_later() -> None:
        time.sleep(1.5)
        fake.done.set()

    threading.Thread(target=answer_later, daemon=True).start()
    plan = world.plan(make_event(world), LCC_BUDGET_MS="700")
    fake.close()
    assert plan["reason"] == "daemon-died"  # it waited beyond its budget, until the daemon left


def test_the_daemon_gets_stdin_untouched_and_the_sessions_variables(world: World) -> None:
    """Bytes go as they are; the variables that say where things are go along, of a secret only its name."""
    fake = FakeDaemon(world, frame(b"ok 0\n") + frame(b"{}"))
    stdin = b'\x00\xff not json \r\n {"a": 1}'
    done = world.client("compact", stdin, TYPESAFE_API_KEY="key", AWS_SECRET="no", LCC_RULES_MODE="lossless")
    fake.close()
    assert done.stdout == b"{}"
    header, body = fake.request
    fields = header.split(b"\0")
    assert body == stdin
    assert b"command=compact" in fields
    assert {b"env.LCC_RULES_MODE=lossless", b"lends=TYPESAFE_API_KEY"} <= set(fields)
    assert b"=key" not in header
    assert b"AWS_SECRET" not in header


def test_nobody_reads_the_answer(world: World) -> None:
    """Claude Code went away: the client ends with 0, without a word."""
    world.start()
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-I", "-S", "-E", CLIENT, "compact"],
        input=make_event(world), stdout=write, stderr=subprocess.PIPE, env=world.env, timeout=60, check=False,
    )  # fmt: skip
    os.close(write)
    assert process.returncode == 0
    assert b"Traceback" not in process.stderr


def test_a_session_start_that_fails_is_shown_and_not_put_into_the_context(world: World) -> None:
    """Plain stdout of SessionStart goes to the model; the user's line must not."""
    world.runtime.mkdir()
    world.runtime.chmod(0o755)
    done = world.client("session-start", '{"source":"startup"}')
    assert done.returncode == 0
    assert set(json.loads(done.stdout)) == {"systemMessage"}
    assert "chmod 700" in json.loads(done.stdout)["systemMessage"]


def test_a_large_plan_comes_in_private_parts(world: World) -> None:
    """Over 4 MiB the plan stands in files of 0600, each under the limit, that are the plan when read in order."""
    done = world.client("compact", make_large_event(world))
    answer = json.loads(done.stdout)
    assert answer["action"] == "parts", (len(done.stdout), len(answer.get("results", ())))
    assert len(answer["parts"]) > 1
    texts = []
    for part in map(Path, answer["parts"]):
        found = part.stat()
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert found.st_size <= 3_500_000
        texts.append(part.read_text(encoding="utf-8"))
    plan = json.loads("".join(texts))
    assert plan["action"] == "replace"
    assert len(plan["results"]) > 3900
    assert stat.S_IMODE(Path(answer["parts"][0]).parent.stat().st_mode) == 0o700


def test_the_client_runs_from_a_read_only_folder_and_leaves_nothing_there(world: World) -> None:
    """The plugin's folder is Claude Code's: no __pycache__ appears in it."""
    copy = world.root / "plugin" / "hook" / "lcc_hook"
    shutil.copytree(CLIENT.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(path.name for path in copy.iterdir())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-E", copy / "client.py", "compact"],
        input=make_event(world), capture_output=True, env=world.env, timeout=60, check=False,
    )  # fmt: skip
    assert json.loads(done.stdout)["action"] == "replace"
    assert sorted(path.name for path in copy.iterdir()) == before
