"""One daemon, whoever asks for it, in every state that it can be in."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from daemon.daemon_world import CHECKOUT, PYTHON, World, is_running, make_event, read_frame, wait_until

from lcc_daemon.sources import are_others
from lcc_hook.client import BUILD, PROTOCOL


def test_status_of_a_daemon_that_never_ran_starts_nothing(world: World) -> None:
    """`status` says `not running` and leaves no folder, no socket and no process behind."""
    assert world.status()["state"] == "not running"
    assert not world.runtime.exists()
    assert world.processes() == []


def test_start_is_idempotent_and_stop_too(world: World) -> None:
    """A second start says that it runs already, with its pid; a second stop is fine; the process is gone at once."""
    first = world.cli("start")
    pid = world.pid()
    second = world.cli("start")
    assert first.stdout == f"lcc-daemon: started (pid {pid})\n"
    assert second.stdout == f"lcc-daemon: already running (pid {pid})\n"
    assert world.status()["pid"] == pid

    assert world.cli("stop").stdout == f"lcc-daemon: stopped (pid {pid})\n"
    assert not is_running(pid)
    again = world.cli("stop")
    assert (again.returncode, again.stdout) == (0, "lcc-daemon: not running\n")
    assert world.processes() == []


def test_a_stopped_daemon_leaves_no_socket_and_no_pid_file(world: World) -> None:
    """After a stop in good order nothing looks like a crash."""
    world.start()
    world.cli("stop")
    assert [file.name for file in world.runtime.iterdir() if file.suffix in (".sock", ".pid", ".crashes")] == []


def test_restart_gives_another_process(world: World) -> None:
    """`restart` ends the one and starts another, also where none ran."""
    pid = world.start()
    assert world.cli("restart").returncode == 0
    assert world.pid() != pid
    assert not is_running(pid)


def test_the_socket_and_every_file_are_private(world: World) -> None:
    """Folder 0700; socket, lock, pid file and log 0600."""
    world.start()
    assert world.runtime.stat().st_mode & 0o777 == 0o700
    assert world.state.stat().st_mode & 0o777 == 0o700
    for file in [*world.runtime.iterdir(), *world.state.glob("daemon*")]:
        assert file.stat().st_mode & 0o077 == 0, file


def test_fifty_first_starts_give_one_daemon(world: World) -> None:
    """Fifty clients at once, none of which finds a daemon: all are served, and one process serves them."""
    event = make_event(world)
    clients = [world.start_client("compact", event) for _ in range(50)]
    plans = [json.loads(client.communicate(timeout=90)[0]) for client in clients]
    assert [plan["action"] for plan in plans] == ["replace"] * 50
    assert len(world.processes()) == 1
    assert len({json.dumps(plan["results"], sort_keys=True) for plan in plans}) == 1


def test_parallel_starts_of_a_daemon_that_cannot_start_fail_once(world: World) -> None:
    """Those who waited for a start that failed are told its reason, and do not each try again."""
    broken = world.root / "python"
    count = world.root / "count"
    broken.write_text(f"#!/bin/sh\necho x >> {count}\nsleep 1\necho 'no module of that name' >&2\nexit 1\n")
    broken.chmod(0o755)
    event = make_event(world)
    clients = [world.start_client("compact", event, LCC_PYTHON=str(broken)) for _ in range(10)]
    plans = [json.loads(client.communicate(timeout=90)[0]) for client in clients]
    assert {plan["action"] for plan in plans} == {"hand-over"}
    assert all("no module of that name" in plan["say"] for plan in plans)
    assert count.read_text().count("x") < 10


def test_a_killed_daemon_is_replaced_by_the_next_call(world: World) -> None:
    """kill -9 leaves a socket that refuses; the next call starts another daemon and is served."""
    pid = world.start()
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_running(pid))
    assert world.status()["state"] == "not running"
    assert world.plan(make_event(world))["action"] == "replace"
    assert world.pid() != pid


def test_a_hung_daemon_is_ended_and_replaced_within_the_call(world: World) -> None:
    """A stopped process accepts and says nothing: it is ended, once it is sure that it is ours, and replaced."""
    pid = world.start()
    os.kill(pid, signal.SIGSTOP)
    found = world.status()
    assert (found["state"], found["pid"]) == ("unresponsive", pid)
    assert world.plan(make_event(world))["action"] == "replace"
    assert not is_running(pid)
    assert len(world.processes()) == 1


def test_a_daemon_that_is_only_slow_is_waited_for_and_not_killed(world: World) -> None:
    """It greets late, as on a machine that swaps: the same process serves the call."""
    pid = world.start()
    path, moved = world.socket_file, world.runtime / "moved.sock"
    path.rename(moved)
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(path))
    door.listen()

    def pass_on() -> None:
        near, _ = door.accept()
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(moved))
        threading.Thread(target=copy, args=(near, far), daemon=True).start()
        time.sleep(1.6)  # longer than a greeting may take, shorter than what a slow one gets on top
        copy(far, near)

    def copy(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    threading.Thread(target=pass_on, daemon=True).start()
    assert world.plan(make_event(world))["action"] == "replace"
    assert is_running(pid)
    assert world.processes() == [pid]
    door.close()


def test_many_clients_of_a_hung_daemon_end_it_once(world: World) -> None:
    """Twelve clients find it hung at the same time: one daemon is there afterwards, and all are served."""
    pid = world.start()
    os.kill(pid, signal.SIGSTOP)
    event = make_event(world)
    clients = [world.start_client("compact", event) for _ in range(12)]
    plans = [json.loads(client.communicate(timeout=90)[0]) for client in clients]
    assert {plan["action"] for plan in plans} == {"replace"}
    assert not is_running(pid)
    assert len(world.processes()) == 1


def test_stop_ends_a_hung_daemon(world: World) -> None:
    """`stop` of a process that does not answer ends it, and says so."""
    pid = world.start()
    os.kill(pid, signal.SIGSTOP)
    done = world.cli("stop")
    assert done.returncode == 0
    assert "did not answer" in done.stdout
    assert not is_running(pid)


def test_crash_upon_crash_makes_it_stay_down_and_say_so(world: World) -> None:
    """Three crashes within a minute: the next call hands over and says for how long; a start by hand ends that."""
    event = make_event(world)
    for _ in range(3):
        assert world.plan(event)["action"] == "replace"
        pid = world.pid()
        os.kill(pid, signal.SIGKILL)
        assert wait_until(lambda pid=pid: not is_running(pid))
    assert world.plan(event)["action"] == "replace"  # the third crash is noted by this start
    os.kill(world.pid(), signal.SIGKILL)
    assert wait_until(lambda: world.processes() == [])
    plan = world.plan(event)
    assert plan["reason"] == "crashed"
    assert "stays down" in str(plan["say"])
    assert world.start()


def test_a_daemon_whose_folder_was_removed_ends_by_itself(world: World) -> None:
    """`rm -rf` of the runtime folder: the old daemon notices that its socket is gone and ends; a new one serves."""
    pid = world.start(LCC_IDLE_MINUTES="0.05")
    for file in world.runtime.iterdir():
        file.unlink()
    world.runtime.rmdir()
    assert world.plan(make_event(world))["action"] == "replace"
    assert wait_until(lambda: not is_running(pid))
    assert "its socket is gone" in world.log()


def test_a_daemon_that_lost_its_socket_gives_way_within_the_call(world: World) -> None:
    """Only the socket file is gone: the daemon still holds the lock, notices, ends, and the same call is served."""
    pid = world.start()
    world.socket_file.unlink()
    assert world.plan(make_event(world))["action"] == "replace"
    assert not is_running(pid)
    assert "its socket is gone" in world.log()


def test_it_ends_when_idle_and_the_next_call_starts_it_again(world: World) -> None:
    """After the idle time it is gone without a trace, and nobody has to do anything."""
    pid = world.start(LCC_IDLE_MINUTES="0.02")
    assert wait_until(lambda: not is_running(pid))
    assert "stopped: idle" in world.log()
    assert world.status()["state"] == "not running"
    assert world.plan(make_event(world))["action"] == "replace"


def test_held_idle_connections_do_not_keep_it_up(world: World) -> None:
    """A connection that never asks anything is cut, and does not count as work."""
    pid = world.start(LCC_IDLE_MINUTES="0.02")
    line = world.connect()
    assert read_frame(line).startswith(b"lcc ")
    assert wait_until(lambda: not is_running(pid))
    line.close()


def test_idle_zero_means_never(world: World) -> None:
    """With `idle_minutes = 0` nothing counts down."""
    world.start(LCC_IDLE_MINUTES="0")
    assert world.status()["idle_stop_in_s"] is None


def test_sigterm_ends_it_in_good_order(world: World) -> None:
    """A logout or a shutdown sends SIGTERM: the log says so, and no crash is noted."""
    pid = world.start()
    os.kill(pid, signal.SIGTERM)
    assert wait_until(lambda: not is_running(pid))
    assert "stopped: SIGTERM" in world.log()
    assert not list(world.runtime.glob("*.pid"))


def test_a_runtime_folder_open_to_others_is_refused_with_the_fix(world: World) -> None:
    """The folder is the boundary: it is refused, never mended, and the message holds the command to run."""
    world.runtime.mkdir()
    world.runtime.chmod(0o770)
    plan = world.plan(make_event(world))
    assert plan["reason"] == "runtime-folder"
    assert f"chmod 700 {world.runtime}" in str(plan["say"])
    started = world.cli("start")
    assert started.returncode == 1
    assert f"chmod 700 {world.runtime}" in started.stderr
    assert world.status()["state"] == "refused"
    assert world.runtime.stat().st_mode & 0o777 == 0o770


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_runtime_folder_that_is_none_is_refused(world: World, kind: str) -> None:
    """A link is not followed, and a file is no folder."""
    if kind == "link":
        (world.root / "elsewhere").mkdir(mode=0o700)
        world.runtime.symlink_to(world.root / "elsewhere")
    else:
        world.runtime.write_text("")
    assert world.plan(make_event(world))["reason"] == "runtime-folder"
    assert world.status()["state"] == "refused"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be given another user's home")
def test_root_with_another_users_home_is_refused(world: World) -> None:
    """`sudo claude` must not leave folders that lock the user out."""
    os.chown(world.root / "home", 65534, 65534)
    plan = world.plan(make_event(world), LCC_RUNTIME_DIR="-")
    assert plan["reason"] == "foreign-home"
    assert not (world.root / "home" / ".cache").exists()


def test_a_long_socket_path_goes_to_a_short_place(world: World) -> None:
    """Over the system's limit the socket stands in a private folder under /tmp, and everything works."""
    long = world.root / ("deep-" * 30)
    try:
        assert world.plan(make_event(world), LCC_RUNTIME_DIR=str(long))["action"] == "replace"
        found = world.status(LCC_RUNTIME_DIR=str(long))
        assert str(found["socket"]).startswith(f"/tmp/lcc-{os.geteuid()}/")
        assert Path(str(found["socket"])).parent.stat().st_mode & 0o777 == 0o700
    finally:
        done = world.cli("stop", LCC_RUNTIME_DIR=str(long))
    assert done.stdout.startswith("lcc-daemon: stopped")


def test_missing_parents_of_the_runtime_folder_are_made_private(world: World) -> None:
    """A first start in an empty home makes what it needs, and closes none of what was there."""
    home = world.root / "home"
    home.chmod(0o755)
    assert world.plan(make_event(world), LCC_RUNTIME_DIR="-")["action"] == "replace"
    try:
        assert (home / ".cache" / "lcc" / "run").stat().st_mode & 0o777 == 0o700
        assert home.stat().st_mode & 0o777 == 0o755
    finally:
        world.cli("stop", LCC_RUNTIME_DIR="-")


def test_a_daemon_of_another_build_is_refused_with_the_reason(world: World) -> None:
    """An older package on PATH cannot serve this client, and says what to do."""
    done = world.cli("run", "--build", "9.9.9")
    assert done.returncode == 1
    assert re.search(r"has lcc \S+, and 9\.9\.9 is needed", done.stderr)


def plugin_of(build: str, folder: Path) -> Path:
    """The hook client of a copy of the plugin that is of another build."""
    for name in ("hook", "daemon", "lcc"):
        shutil.copytree(CHECKOUT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", folder)
    client = folder / "hook" / "lcc_hook" / "client.py"
    client.write_text(client.read_text().replace(f'BUILD = "{BUILD}"', f'BUILD = "{build}"'))
    return client


def test_daemons_of_two_builds_serve_side_by_side(world: World) -> None:
    """Sessions that began before an update go on beside new ones: neither ends what the other works with."""
    client = plugin_of("0.0.1", world.root / "older")
    event = make_event(world)
    world.extra["LCC_PYTHON"] = "-"

    def older() -> str:
        words = [PYTHON, "-I", "-S", "-E", str(client), "compact"]
        done = subprocess.run(words, input=event, capture_output=True, env=world.merged({}), check=False)
        return str(json.loads(done.stdout)["action"])

    assert older() == "replace"
    assert world.status()["state"] == "other version"
    assert world.plan(event)["action"] == "replace"
    pids = {file.name: file.read_text() for file in world.runtime.glob("d-*.pid")}
    assert sorted(pids) == [f"d-{PROTOCOL}-0.0.1.pid", f"d-{PROTOCOL}-{BUILD}.pid"]
    assert wait_until(lambda: bool(world.status()["warm"]))
    for _ in range(2):
        assert (older(), world.plan(event)["action"]) == ("replace", "replace")
    assert {file.name: file.read_text() for file in world.runtime.glob("d-*.pid")} == pids


def test_a_new_session_gets_its_own_plugins_code(world: World) -> None:
    """Two folders with one version and other sources: a session start of the second ends the daemon of the first."""
    folders = {name: world.root / name for name in ("first", "same", "second")}
    clients = {name: plugin_of(BUILD, folder) for name, folder in folders.items()}
    with (folders["second"] / "lcc" / "version.py").open("a") as file:
        file.write("# pulled since\n")
    world.extra["LCC_PYTHON"] = "-"

    def start(name: str) -> None:
        env = world.merged({"CLAUDE_PLUGIN_ROOT": str(folders[name])})
        words = [PYTHON, "-I", "-S", "-E", str(clients[name]), "session-start"]
        asked = b'{"session_id":"s","source":"startup"}'
        assert subprocess.run(words, input=asked, capture_output=True, env=env, check=False).returncode == 0

    def runs_from() -> str:
        words = Path(f"/proc/{world.pid()}/cmdline").read_bytes().split(b"\0")
        return next(name for name, folder in folders.items() if any(os.fsencode(folder) in word for word in words))

    start("first")
    assert wait_until(lambda: bool(list(world.runtime.glob("d-*.pid"))))
    pid = world.pid()
    assert not are_others(str(folders["same"]), folders["first"])
    assert not are_others(str(world.root), folders["first"])
    assert not are_others("relative", folders["first"])
    assert are_others(str(folders["second"]), folders["first"])
    start("same")
    assert world.status()["pid"] == pid
    start("second")
    assert wait_until(lambda: not is_running(pid))
    start("second")
    assert wait_until(lambda: bool(list(world.runtime.glob("d-*.pid"))) and runs_from() == "second")


def test_a_leftover_socket_of_another_build_is_removed_once_it_refuses(world: World) -> None:
    """What an older daemon left behind goes, since nobody listens there."""
    world.runtime.mkdir(mode=0o700)
    other = world.runtime / "d-1-0.0.1.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(other))
    stale.close()
    world.start()
    assert wait_until(lambda: not other.exists())


def test_run_in_the_foreground_serves_and_ends_on_interrupt(world: World) -> None:
    """`lcc-daemon run` is the same daemon without detaching."""
    words = [sys.executable, "-I", "-m", "lcc_daemon", "run"]
    process = subprocess.Popen(words, env=world.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert wait_until(lambda: world.status()["state"] == "running")
        second = world.cli("run")
        assert (second.returncode, second.stderr) == (0, "lcc-daemon: already running; see lcc-daemon status\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_detached_daemon_keeps_nothing_of_its_starter(world: World) -> None:
    """Its own session, its folder is the root, its streams lead nowhere, and secrets of the caller stay outside."""
    world.client("compact", make_event(world), SECRET_OF_THE_SHELL="x", AWS_SECRET_ACCESS_KEY="y")
    pid = world.pid()
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    assert stat[4] == "0"  # no controlling terminal
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"SECRET_OF_THE_SHELL" not in environment
    assert b"AWS_SECRET_ACCESS_KEY" not in environment


def test_the_client_does_not_wait_for_a_daemon_that_holds_its_pipes(world: World) -> None:
    """Claude Code reads a hook's output to its end: a daemon that kept the pipe open would hang the session."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(world.client, "compact", make_event(world)).result(60)
    assert done.returncode == 0
    assert is_running(world.pid())


def test_status_while_starting(world: World) -> None:
    """A start under way is `starting`, not `not running` and not `unresponsive`."""
    slow = world.root / "python"
    slow.write_text("#!/bin/sh\nexec sleep 4\n")
    slow.chmod(0o755)
    client = world.start_client("compact", make_event(world), LCC_PYTHON=str(slow), LCC_START_BUDGET_MS="6000")
    assert wait_until(lambda: world.status()["state"] == "starting", 5)
    client.communicate(timeout=60)


def test_an_upgrade_in_place_ends_the_old_program(world: World, tmp_path: Path) -> None:
    """When the package's files change under a running daemon it finishes and ends, instead of serving old code."""
    import shutil

    site = tmp_path / "site"
    for package in ("lcc", "daemon/lcc_daemon", "hook/lcc_hook"):
        folder = Path(__file__).parents[2] / package
        shutil.copytree(folder, site / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    command = f"import sys; sys.path.insert(0, {str(site)!r}); from lcc_daemon.cli import main; sys.exit(main(['run']))"
    env = {**world.env, "LCC_IDLE_MINUTES": "0.05"}
    process = subprocess.Popen([sys.executable, "-c", command], env=env, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: world.status()["state"] == "running")
        later = time.time() + 5
        os.utime(site / "lcc" / "__init__.py", (later, later))
        assert process.wait(30) == 0
        assert "another one now" in world.log()
    finally:
        process.kill()
        process.wait()
