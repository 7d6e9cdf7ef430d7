"""Faults of the live path, each made for real: processes, sockets, signals, limits. Nothing hangs, leaks or is lost."""

from __future__ import annotations

import json
import logging
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from daemon.daemon_world import (
    CLIENT,
    PYTHON,
    World,
    frame,
    header,
    is_running,
    make_event,
    read_frame,
    wait_until,
    write_session,
)
from judge.system_one_server import http, system_one

from lcc_daemon import background as background_module
from lcc_daemon import workers as workers_module
from lcc_daemon.background import Background
from lcc_daemon.logs import WriteBehind
from lcc_daemon.services import Priority
from lcc_daemon.workers import Workers

LOG = logging.getLogger("lcc_daemon.tests")


def start_with(world: World, before: Callable[[], object], **env: str) -> int:
    """Start a daemon in a process that ``before`` was called in."""
    words = [PYTHON, "-I", "-m", "lcc_daemon", "start"]
    done = subprocess.run(words, env=world.merged(env), preexec_fn=before, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return world.pid()


def files(most: int) -> Callable[[], object]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# ---------------------------------------------------------------- who listens


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process can be made by root alone")
def test_nothing_is_sent_to_another_users_process(world: World) -> None:
    """Whoever put a socket of theirs in our folder hears nothing: not the session, not a variable."""
    world.start()
    path = str(world.socket_file)
    world.cli("stop")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    heard, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setuid(65534)
            listener.listen(8)
            os.write(tell, b"ready\n")
            line, _ = listener.accept()
            line.sendall(frame(b"lcc 1 0.1.0 %d" % os.getpid()))
            line.settimeout(5)
            try:
                os.write(tell, b"heard %d\n" % len(line.recv(100)))
            except ConnectionResetError:  # it went without having read the greeting
                os.write(tell, b"heard 0\n")
        finally:
            os._exit(0)
    os.close(tell)
    assert os.read(heard, 100) == b"ready\n"
    plan = world.plan(make_event(world))
    os.waitpid(child, 0)
    assert (plan["action"], plan["reason"]) == ("hand-over", "foreign-daemon")
    assert os.read(heard, 100) == b"heard 0\n"


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o777])
def test_every_folder_that_is_made_is_private_whatever_the_umask(world: World, mask: int) -> None:
    """Not the runtime folder alone: whoever can write in a parent can put another one in its place."""
    folder = world.root / "a" / "b" / "run"
    words = [PYTHON, "-I", "-S", "-E", str(CLIENT), "compact"]
    env = world.merged({"LCC_RUNTIME_DIR": str(folder)})
    done = subprocess.run(
        words, input=make_event(world), env=env, preexec_fn=lambda: os.umask(mask), capture_output=True, check=False
    )
    world.extra["LCC_RUNTIME_DIR"] = str(folder)
    world.cli("stop")
    assert json.loads(done.stdout)["action"] == "replace"
    for each in (folder, *folder.parents[:2]):
        assert each.stat().st_mode & 0o777 == 0o700, each
    for each in (world.state, world.state / "reports"):
        assert each.stat().st_mode & 0o777 == 0o700, each


# ---------------------------------------------------------------- a daemon that cannot finish


def test_a_daemon_that_finishes_gives_its_place_up_at_once(world: World) -> None:
    """Its last call goes on; who comes meanwhile is served by a successor, whose files the old one leaves alone."""
    old = world.start()
    with system_one(lambda asked: [300.0, *http(200, {})]) as server:
        env = {"LCC_PROVIDER": "jev", "TYPESAFE_API_KEY": "k", "TYPESAFE_BASE_URL": server.url}
        env |= {"LCC_JUDGE_TIMEOUT_S": "60", "LCC_RULES_MODE": "lossless"}
        client = world.start_client("compact", make_event(world), **env)
        assert wait_until(lambda: len(server.asked) > 0)
        os.kill(old, signal.SIGTERM)
        assert wait_until(lambda: not list(world.runtime.glob("d-*.pid")))
        assert world.plan(make_event(world))["action"] == "replace"
        assert is_running(old)
        new = world.pid()
        assert new != old
        assert wait_until(lambda: not is_running(old), 25)
        assert json.loads(client.communicate(timeout=30)[0])["reason"] == "daemon-died"
    assert world.pid() == new
    assert world.status()["pid"] == new


@pytest.mark.parametrize("what_is_left", ["pid", "nothing"])
def test_a_lock_without_a_socket_is_healed(world: World, what_is_left: str) -> None:
    """A daemon that does nothing, cannot be reached and holds the place: the next call ends it and is served."""
    old = world.start()
    os.kill(old, signal.SIGSTOP)
    world.socket_file.unlink()
    if what_is_left == "nothing":
        next(world.runtime.glob("d-*.pid")).unlink()
    assert world.plan(make_event(world))["action"] == "replace"
    assert not is_running(old)
    assert world.pid() != old


def test_a_process_that_is_no_daemon_of_ours_is_never_ended(world: World) -> None:
    """Somebody else holds the lock file: the call is handed over with the way out, and nobody is killed."""
    world.start()
    world.cli("stop")
    lock = next(world.runtime.glob("d-*.lock"))
    holder = hold(lock)
    plan = world.plan(make_event(world))
    assert (plan["action"], plan["reason"]) == ("hand-over", "start-failed")
    assert "lcc-daemon restart" in str(plan["say"])
    assert holder.poll() is None
    holder.kill()
    holder.wait()


def hold(file: Path) -> subprocess.Popen[bytes]:
    """A process that holds a lock file."""
    program = "import fcntl,sys,time; f=open(sys.argv[1],'a'); fcntl.flock(f,2); print(1,flush=True); time.sleep(99)"
    process = subprocess.Popen([sys.executable, "-c", program, file], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.mark.parametrize("whole_folder", [True, False])
def test_a_successors_files_are_its_own(world: World, whole_folder: bool) -> None:
    """Somebody emptied the runtime folder: the old daemon ends, and takes nothing of the new one's with it."""
    old = world.start()
    if whole_folder:
        shutil.rmtree(world.runtime)
    else:
        for file in world.runtime.glob("d-*"):
            file.unlink()
    assert world.plan(make_event(world))["action"] == "replace"
    new = world.pid()
    assert wait_until(lambda: not is_running(old))
    assert {file.suffix for file in world.runtime.glob("d-*")} >= {".sock", ".pid", ".lock"}
    assert world.pid() == new
    os.kill(new, signal.SIGSTOP)
    assert world.plan(make_event(world))["action"] == "replace"


def test_a_lock_file_that_was_removed_ends_the_daemon(world: World) -> None:
    """It could no longer tell whether it is alone."""
    pid = world.start()
    next(world.runtime.glob("d-*.lock")).unlink()
    assert wait_until(lambda: not is_running(pid))
    assert world.plan(make_event(world))["action"] == "replace"


def test_work_that_nobody_waits_for_waits_once_for_a_call_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hung pass does not hold up everything that stands back for passes."""
    monkeypatch.setattr("lcc_daemon.services.GIVE_WAY_SECONDS", 0.05)
    priority = Priority()
    with priority.serving():
        began = time.monotonic()
        for _ in range(1000):
            priority.give_way()
        assert time.monotonic() - began < 5


def test_a_job_that_hangs_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one session's dead disk holds up is not what others are waiting for; the end does not wait for it."""
    monkeypatch.setattr(background_module, "STUCK_SECONDS", 0.05)
    jobs = Background(LOG)
    never, done = threading.Event(), threading.Event()
    jobs.submit(never.wait)
    jobs.submit(done.set)
    assert wait_until(lambda: jobs.look_after() is None and done.is_set(), 10)
    assert not jobs.close(0.2)
    never.set()


def test_jobs_are_done_in_order_and_all_of_them_before_the_end() -> None:
    """Also those behind one that failed."""
    jobs = Background(LOG)
    done: list[int] = []
    jobs.submit(lambda: 1 // 0)
    for number in range(100):
        jobs.submit(done.append, number)
    assert jobs.close(30)
    assert done == list(range(100))


def test_a_log_whose_disk_hangs_holds_nobody_up() -> None:
    """Lines wait in memory, and the end waits for them only so long."""
    free = threading.Event()

    class Hanging(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            free.wait()

    behind = WriteBehind(Hanging())
    for _ in range(20_000):
        behind.handle(logging.makeLogRecord({"msg": "a line"}))
    behind.flush(0.05)
    free.set()


# ---------------------------------------------------------------- too much at once


def test_calls_that_wait_take_nobodys_turn(world: World) -> None:
    """Seven sessions wait for a judge that never answers, and the eighth is served meanwhile."""
    world.start()
    with system_one(lambda asked: [300.0, *http(200, {})]) as server:
        env = {"LCC_PROVIDER": "jev", "TYPESAFE_API_KEY": "k", "TYPESAFE_BASE_URL": server.url}
        env |= {"LCC_JUDGE_TIMEOUT_S": "60", "LCC_RULES_MODE": "lossless"}
        event = make_event(world)
        waiting = [world.start_client("compact", event, **env) for _ in range(7)]
        assert wait_until(lambda: len(server.asked) >= 7)
        assert world.plan(event)["action"] == "replace"
        assert all(client.poll() is None for client in waiting)
        for client in waiting:
            client.kill()
            client.communicate()


def test_workers_do_all_jobs_in_their_order_a_few_at_a_time() -> None:
    """Results and exceptions are their futures'; what was cancelled before its turn is never begun."""
    workers: Workers[int] = Workers(at_once=2)
    free, at_once, most = threading.Event(), 0, 0
    guard = threading.Lock()

    def job(number: int) -> int:
        nonlocal at_once, most
        with guard:
            at_once += 1
            most = max(most, at_once)
        free.wait(30)
        with guard:
            at_once -= 1
        return number if number % 10 else 1 // 0

    futures = [workers.submit(lambda number=number: job(number)) for number in range(100)]
    assert futures[99].cancel()
    assert wait_until(lambda: at_once == 2)
    free.set()
    for number, future in enumerate(futures[:99]):
        if number % 10:
            assert future.result(30) == number
        else:
            assert isinstance(future.exception(30), ZeroDivisionError)
    assert most == 2


def test_workers_that_hang_are_joined_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that never ends does not keep what came after it from its turn; the threads that came go again."""
    monkeypatch.setattr(workers_module, "SLOW_SECONDS", 0.02)
    workers: Workers[bool] = Workers(at_once=2)
    never = threading.Event()
    hung = [workers.submit(lambda: never.wait(60)) for _ in range(10)]
    last = workers.submit(lambda: True)
    assert wait_until(lambda: workers.look_after() is None and last.done(), 20)
    never.set()
    assert all(future.result(30) for future in hung)
    assert wait_until(lambda: sum(thread.name == "lcc-work" for thread in threading.enumerate()) <= 2 + 2, 20)


def test_connections_that_ask_for_nothing_give_way(world: World) -> None:
    """A daemon with all its connections taken by silence serves who asks, and is not taken for hung."""
    pid = start_with(world, files(200))
    idle = [world.connect() for _ in range(160)]
    assert world.plan(make_event(world), LCC_BUDGET_MS="4000")["action"] == "replace"
    assert world.status()["pid"] == pid
    for line in idle:
        line.close()


def test_a_daemon_with_too_much_to_do_says_so_and_is_not_ended(world: World) -> None:
    """All of its connections have asked for something: the next one is told, and the daemon goes on."""
    pid = start_with(world, files(200))
    busy = []
    for _ in range(100):
        line = world.connect()
        read_frame(line)
        line.sendall(frame(header("compact")) + (1000).to_bytes(4, "big"))
        busy.append(line)
    plan = world.plan(make_event(world), LCC_BUDGET_MS="4000")
    assert (plan["action"], plan["reason"]) == ("hand-over", "overloaded")
    assert is_running(pid)
    for line in busy:
        line.close()
    assert wait_until(lambda: world.plan(make_event(world))["action"] == "replace")
    assert world.status()["pid"] == pid


def test_out_of_descriptors_the_daemon_still_looks_after_itself(world: World) -> None:
    """After they have all been in use it is served from, ends when its socket goes, and says little in its log."""
    pid = start_with(world, files(64))
    for _ in range(5):
        lines = []
        for _ in range(200):
            line = socket.socket(socket.AF_UNIX)
            line.settimeout(0.5)
            try:
                line.connect(str(world.socket_file))
            except OSError:
                break
            lines.append(line)
        for line in lines:
            line.close()
    assert world.plan(make_event(world))["action"] == "replace"
    world.socket_file.unlink()
    assert wait_until(lambda: not is_running(pid))
    assert world.log().count("refused") < 20


@pytest.mark.parametrize("text", ["model = " + "[" * 2000 + "]" * 2000, "preserve_recent = " + "9" * 10_000])
def test_a_configuration_that_cannot_be_read_stops_no_watch(world: World, text: str) -> None:
    """It is named to whoever asks; the daemon still sees that its socket went, and that it is idle."""
    pid = world.start()
    file = world.root / "home" / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    time.sleep(2.5)  # a look at it
    plan = world.plan(make_event(world))
    assert (plan["reason"], str(file) in str(plan["say"])) == ("config", True)
    file.write_text("idle_minutes = 0.01\n")
    assert wait_until(lambda: not is_running(pid))


# ---------------------------------------------------------------- stop, and its neighbours


@pytest.mark.parametrize("is_stopped", [True, False])
def test_stop_and_restart_end_whoever_holds_the_start(world: World, is_stopped: bool) -> None:
    """A start that was stopped with Ctrl-Z, or that hangs, holds up neither."""
    world.start()
    holder = hold(next(world.runtime.glob("d-*.start")))
    if is_stopped:
        holder.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    stopped = world.cli("stop")
    assert (stopped.returncode, time.monotonic() - began < 20) == (0, True), stopped.stderr
    if is_stopped:
        assert world.cli("restart").returncode == 0
        assert world.plan(make_event(world))["action"] == "replace"
    holder.kill()
    holder.wait()


@contextmanager
def full_queue(world: World) -> Iterator[None]:
    """So many calls wait before a stopped daemon that it takes no more."""
    with ExitStack() as stack:
        while True:
            line = stack.enter_context(socket.socket(socket.AF_UNIX))
            line.setblocking(False)
            try:
                line.connect(str(world.socket_file))
            except BlockingIOError:
                break
        yield


def test_stop_ends_a_daemon_whose_queue_is_full(world: World) -> None:
    """Stopped, with so many calls before it that it takes no more: connecting itself would wait for ever."""
    pid = world.start()
    os.kill(pid, signal.SIGSTOP)
    with full_queue(world):
        done = world.cli("stop")
    assert done.returncode == 0, done.stderr
    assert not is_running(pid)


def test_a_full_log_fills_nothing_else(world: World) -> None:
    """What cannot be written to the log is lost: it is not printed where it would fill memory."""
    start_with(world, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    for _ in range(40):
        assert world.client("ping").returncode == 0
    assert next(world.runtime.glob("d-*.output")).stat().st_size == 0
    assert (world.state / "daemon.log").stat().st_size <= 4096
    assert world.status()["state"] == "running"


def test_a_daemon_leaves_no_core(world: World) -> None:
    """The limit is zero, and a program that the system hands cores to gets an empty one."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    pid = start_with(world, lambda: resource.setrlimit(resource.RLIMIT_CORE, unlimited))
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    assert next(line.split()[4:6] for line in limits if line.startswith("Max core")) == ["0", "0"]
    assert int(Path(f"/proc/{pid}/coredump_filter").read_text(), 16) == 0


# ---------------------------------------------------------------- an answer in time


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
@pytest.mark.parametrize("is_warm", [True, False])
def test_there_is_always_a_plan_however_short_the_time(world: World, budget: int, is_warm: bool) -> None:
    """Wherever the alarm rings, a whole plan or a whole hand-over is printed."""
    if is_warm:
        world.start()
    env = {"LCC_BUDGET_MS": str(budget), "LCC_START_BUDGET_MS": str(budget)}
    for _ in range(3):
        assert world.plan(make_event(world, files=2), **env)["action"] in ("replace", "hand-over")


def test_a_hand_over_comes_at_once_where_even_that_takes_too_long(world: World, tmp_path: Path) -> None:
    """The time ran out while the reason was put into words: the alarm rings again, and prints."""
    folder = world.root / "plugin" / "hook" / "lcc_hook"
    shutil.copytree(CLIENT.parent, folder)
    begun, endless = "    if isinstance(error, GiveUpError):\n", "    while True:\n        pass\n"
    for name, found, put in (
        ("client.py", "LAST_WORDS = 2.0", "LAST_WORDS = 0.2"),
        ("unserved.py", begun, endless + begun),
    ):
        text = (folder / name).read_text()
        assert found in text
        (folder / name).write_text(text.replace(found, put, 1))
    words = [PYTHON, "-I", "-S", "-E", str(folder / "client.py"), "compact"]
    env = world.merged({"LCC_BUDGET_MS": "1", "LCC_START_BUDGET_MS": "1"})
    done = subprocess.run(words, input=b"{}", env=env, capture_output=True, check=False, timeout=30)
    assert json.loads(done.stdout)["reason"] == "out-of-time"


@pytest.mark.parametrize("name", ["LCC_BUDGET_MS", "LCC_START_BUDGET_MS"])
@pytest.mark.parametrize("value", ["2s", "-5", "1e3", "99999999999", "1.5", "nan"])
def test_a_time_that_is_none_is_named(world: World, name: str, value: str) -> None:
    """The variable, what it holds, and what it may hold."""
    plan = world.plan(make_event(world), **{name: value})
    assert (plan["action"], plan["reason"]) == ("hand-over", "config")
    assert f"{name} is '{value}'" in str(plan["say"])


# ---------------------------------------------------------------- what lies about


def test_a_home_that_is_no_utf8(world: World) -> None:
    """Served, shown in both forms of the status and by the doctor, and its reports are kept."""
    home = os.fsencode(world.root) + b"/caf\xe9\xff"
    os.mkdir(home)
    project = home + b"/project"
    os.mkdir(project)
    world.extra |= {"HOME": os.fsdecode(home), "LCC_STATE_DIR": "-"}
    assert world.plan(make_event(world))["action"] == "replace"
    assert world.cli("status").stdout.startswith("lcc-daemon 0.1.0: running")
    assert "caf\\xe9\\xff" in str(world.status()["log"]).replace("\\udce9\\udcff", "\\xe9\\xff")
    reports = Path(os.fsdecode(home)) / ".local" / "state" / "lcc" / "reports"
    assert wait_until(lambda: len(list(reports.glob("*.json"))) == 1)
    path = write_session(world)
    stdin = json.dumps({"session_id": "s", "transcript_path": str(path), "cwd": str(world.project)})
    assert world.client("pre-compact", stdin).stdout != b""
    log = (reports.parent / "daemon.log").read_text(errors="replace")
    assert "ERROR" not in log
    assert "not kept" not in log


def test_a_fault_log_that_cannot_be_written_is_done_without(world: World) -> None:
    """A folder in its place: no crash, and none is counted."""
    (world.state / "daemon-fault.log").mkdir(parents=True)
    assert world.plan(make_event(world))["action"] == "replace"
    world.cli("restart")
    assert not list(world.runtime.glob("d-*.crashes"))
