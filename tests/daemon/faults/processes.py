"""Rows: the daemon's process, its start, who listens at its socket, and what is answered there."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from daemon.daemon_world import frame, header, is_running, read_frame, wait_until
from daemon.faults.row import Call, Live, Table
from judge.system_one_server import answers, http, system_one
from odd_files import holders, in_place

from lcc_hook.client import BUILD, PROTOCOL

DAEMON = Table("daemon")
SOCKET = Table("socket")
ANSWER = Table("answer")
LOCK = Table("lock")

GREETING = frame(f"lcc {PROTOCOL} {BUILD} {os.getpid()}".encode())
PLAN = b'{"v":1,"action":"hand-over","reason":"disabled","say":"left to the built-in summary: a word"}'


# ---------------------------------------------------------------- the process


@DAEMON.row("none runs, in a home that lcc never saw", "replaced")
def first_call(live: Live) -> Iterator[Call]:
    yield Call()


@DAEMON.row("warm", "replaced")
def warm(live: Live) -> Iterator[Call]:
    live.start()
    yield Call()


@DAEMON.row("stopped in good order", "replaced")
def stopped(live: Live) -> Iterator[Call]:
    live.start()
    live.cli("stop")
    yield Call()


@DAEMON.row("killed between two calls", "replaced")
def killed(live: Live) -> Iterator[Call]:
    live.start()
    yield Call()
    os.kill(live.pid(), signal.SIGKILL)
    yield Call()


def while_it_asks(live: Live, act: Callable[[int], object], seconds: float = 300.0, **env: str) -> Call:
    """A call whose pass waits for a judge; once it does, something is done to the daemon's process."""
    pid = live.start()
    answer = lambda asked: [seconds, *http(200, answers(asked))]  # noqa: E731
    server = live.stack.enter_context(system_one(answer))
    judge = {"LCC_PROVIDER": "jev", "TYPESAFE_API_KEY": "k", "TYPESAFE_BASE_URL": server.url}

    def meanwhile(_: object) -> None:
        wait_until(lambda: len(server.asked) > 0)
        act(pid)

    return Call(env={**judge, "LCC_RULES_MODE": "lossless", **env}, meanwhile=meanwhile)


@DAEMON.row("killed in the middle of a request", "hand-over: daemon-died")
def killed_meanwhile(live: Live) -> Iterator[Call]:
    yield while_it_asks(live, lambda pid: os.kill(pid, signal.SIGKILL))
    yield while_it_asks(live, lambda pid: os.kill(pid, signal.SIGABRT))


@DAEMON.row("stopped by a signal (Ctrl-Z) before a call", "replaced")
def hung(live: Live) -> Iterator[Call]:
    os.kill(live.start(), signal.SIGSTOP)
    yield Call()


@DAEMON.row("stopped by a signal in the middle of a request", "hand-over: out-of-time")
def hung_meanwhile(live: Live) -> Iterator[Call]:
    # The judge's own time is added to the call's, so it is the shortest one.
    env = {"LCC_BUDGET_MS": "700", "LCC_JUDGE_TIMEOUT_S": "2"}
    yield while_it_asks(live, lambda pid: os.kill(pid, signal.SIGSTOP), **env)


@DAEMON.row("asked to end in the middle of a request", "skip: nothing-to-remove")
def ended_meanwhile(live: Live) -> Iterator[Call]:
    yield while_it_asks(live, lambda pid: os.kill(pid, signal.SIGTERM), 0.3)


@DAEMON.row("hung, and its pid file names another process", "hand-over: unresponsive")
def hung_unknown(live: Live) -> Iterator[Call]:
    pid = live.start()
    next(live.runtime.glob("d-*.pid")).write_text(f"{pid} 1\n")
    os.kill(pid, signal.SIGSTOP)
    yield Call()
    assert is_running(pid)


@DAEMON.row("hung, and its queue is full", "replaced")
def full_queue(live: Live) -> Iterator[Call]:
    os.kill(live.start(), signal.SIGSTOP)
    while True:
        line = live.stack.enter_context(socket.socket(socket.AF_UNIX))
        line.setblocking(False)
        try:
            line.connect(str(live.socket_file))
        except BlockingIOError:
            break
    yield Call()


@DAEMON.row("crashed four times within a minute", "hand-over: crashed")
def crashes(live: Live) -> Iterator[Call]:
    for _ in range(4):
        live.plan(live.event)
        pid = live.pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_running(pid))
    yield Call()


@DAEMON.row("its folder was emptied", "replaced")
def emptied(live: Live) -> Iterator[Call]:
    live.start()
    for file in live.runtime.glob("d-*"):
        file.unlink()
    yield Call()


@DAEMON.row("its folder was removed", "replaced")
def removed(live: Live) -> Iterator[Call]:
    live.start()
    shutil.rmtree(live.runtime)
    yield Call()


@DAEMON.row("all its connections are taken by silence", "replaced")
def silence(live: Live) -> Iterator[Call]:
    live.start()
    for _ in range(300):
        live.stack.enter_context(live.connect())
    yield Call()


@DAEMON.row("other calls are torn, slow and huge", "replaced")
def bad_neighbours(live: Live) -> Iterator[Call]:
    live.start()
    for data in (
        frame(header("compact"))[:9],
        frame(header("compact")) + (100_000_000).to_bytes(4, "big") + b"x",
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        frame(b"\0" * 1000) + frame(b""),
        frame(header("compact", protocol="99")) + frame(b"{}"),
    ):
        for _ in range(5):
            line = live.stack.enter_context(live.connect())
            read_frame(line)
            with suppress(OSError):
                line.sendall(data)
    yield Call()


# ---------------------------------------------------------------- its start


def program(live: Live, script: str) -> dict[str, str]:
    """An interpreter that is a script."""
    file = live.root / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return {"LCC_PYTHON": str(file)}


@DAEMON.row("its start fails with words", "hand-over: start-failed")
def start_fails(live: Live) -> Iterator[Call]:
    yield Call(env=program(live, "echo no module of that name >&2; exit 1"))


@DAEMON.row("its start says nothing and ends with 0", "hand-over: start-failed")
def start_is_silent(live: Live) -> Iterator[Call]:
    yield Call(env=program(live, "exit 0"))


@DAEMON.row("its start is killed", "hand-over: start-failed")
def start_is_killed(live: Live) -> Iterator[Call]:
    yield Call(env=program(live, "kill -9 $$"))


@DAEMON.row("its start never ends", "hand-over: out-of-time")
def start_hangs(live: Live) -> Iterator[Call]:
    yield Call(env={**program(live, "exec sleep 5"), "LCC_START_BUDGET_MS": "700"})


@DAEMON.row("its start says ready and is gone", "hand-over: start-failed")
def start_lies(live: Live) -> Iterator[Call]:
    yield Call(env=program(live, "printf ready; exit 0"))


@DAEMON.row("its start prints megabytes and never ends", "hand-over: out-of-time")
def start_floods(live: Live) -> Iterator[Call]:
    yield Call(env={**program(live, "head -c 9000000 /dev/zero; exec sleep 5"), "LCC_START_BUDGET_MS": "900"})


@DAEMON.row("its start prints without an end", "hand-over: out-of-time")
def start_prints_on(live: Live) -> Iterator[Call]:
    """It fills no disk meanwhile, and is ended when nobody waits for it any more."""
    mark = live.root / "pid"
    yield Call(env={**program(live, f"echo $$ > {mark}; exec yes"), "LCC_START_BUDGET_MS": "900"})
    assert wait_until(lambda: not is_running(int(mark.read_text())))
    assert all(file.stat().st_size < 100_000 for file in live.runtime.glob("d-*.output"))


@DAEMON.row("one of another build has the folder", "replaced")
def other_build(live: Live) -> Iterator[Call]:
    live.start()
    for file in live.runtime.glob("d-*"):
        file.rename(live.runtime / file.name.replace(BUILD, "0.0.1"))
    yield Call()


# ---------------------------------------------------------------- what stands at the socket's place


def at_socket(live: Live, kind: str = "sock") -> Path:
    """The place of the socket, or of another file of the daemon's, free."""
    live.runtime.mkdir(mode=0o700, exist_ok=True)
    return live.runtime / f"d-{PROTOCOL}-{BUILD}.{kind}"


@SOCKET.row("a file stands there", "hand-over: start-failed")
def file_there(live: Live) -> Iterator[Call]:
    at_socket(live).write_text("somebody's")
    yield Call()


@SOCKET.row("a pipe stands there", "hand-over: start-failed")
def pipe_there(live: Live) -> Iterator[Call]:
    in_place("a pipe", at_socket(live))
    yield Call()


@SOCKET.row("a folder stands there", "hand-over: start-failed")
def folder_there(live: Live) -> Iterator[Call]:
    path = at_socket(live)
    path.mkdir()
    (path / "mine").write_text("kept")
    yield Call()
    assert (path / "mine").read_text() == "kept"


@SOCKET.row("a link to nowhere stands there", "hand-over: start-failed")
def link_there(live: Live) -> Iterator[Call]:
    at_socket(live).symlink_to("/nowhere")
    yield Call()


@SOCKET.row("a socket that nobody listens at", "replaced")
def orphan(live: Live) -> Iterator[Call]:
    in_place("a socket", at_socket(live))
    yield Call()


@SOCKET.row("it was removed under the daemon", "replaced")
def socket_gone(live: Live) -> Iterator[Call]:
    live.start()
    live.socket_file.unlink()
    yield Call()


@SOCKET.row("it was removed, and the daemon is stopped by a signal", "replaced")
def socket_gone_and_hung(live: Live) -> Iterator[Call]:
    os.kill(live.start(), signal.SIGSTOP)
    live.socket_file.unlink()
    yield Call()


def listens(live: Live, talk: Callable[[socket.socket], object]) -> None:
    """Somebody of ours listens at the socket's place, and is no daemon."""
    path = at_socket(live)
    server = live.stack.enter_context(socket.socket(socket.AF_UNIX))
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        with suppress(OSError):  # closed at the row's end
            while True:
                line, _ = server.accept()
                threading.Thread(target=one, args=(line,), daemon=True).start()

    def one(line: socket.socket) -> None:
        with line, suppress(OSError, EOFError):
            talk(line)

    threading.Thread(target=serve, daemon=True).start()


@SOCKET.row("another program greets there", "hand-over: not-lcc")
def other_program(live: Live) -> Iterator[Call]:
    listens(live, lambda line: line.sendall(frame(b"HTTP/1.1 200 OK")))
    yield Call()
    assert at_socket(live).is_socket()


def another_process(live: Live, setup: str = "") -> None:
    """A process that listens at the socket's place and never says a word; what it does before it listens."""
    script = (
        "import os,socket,sys,time\n"
        "s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])\n"
        f"{setup}\n"
        "s.listen(); print(1,flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, at_socket(live)], stdout=subprocess.PIPE)
    live.stack.callback(process.wait)
    live.stack.callback(process.kill)
    assert process.stdout is not None
    process.stdout.readline()


@SOCKET.row("another program is silent there", "hand-over: unresponsive")
def silent_program(live: Live) -> Iterator[Call]:
    """A process of its own: one that does other work at the same time is not taken for hung."""
    another_process(live)
    yield Call()


@SOCKET.row("another program hangs up at once", "replaced")
def hangs_up(live: Live) -> Iterator[Call]:
    listens(live, lambda line: None)
    yield Call()


@SOCKET.row("another user listens there", "hand-over: foreign-daemon")
def other_user(live: Live) -> Iterator[Call]:
    another_process(live, "if not os.geteuid(): os.setuid(65534)")
    yield Call()


# ---------------------------------------------------------------- what is answered there


def answers_with(live: Live, *parts: bytes, pause: float = 0.0, holds: float = 0.0) -> None:
    """A daemon that takes the request and sends these, then hangs up."""

    def talk(line: socket.socket) -> None:
        line.sendall(GREETING)
        read_frame(line), read_frame(line)
        for part in parts:
            line.sendall(part)
            time.sleep(pause)
        time.sleep(holds)

    listens(live, talk)


WHOLE = frame(b"ok 0\n") + frame(PLAN)


@ANSWER.row("never comes", "hand-over: out-of-time")
def no_answer(live: Live) -> Iterator[Call]:
    answers_with(live, holds=30)
    yield Call(env={"LCC_BUDGET_MS": "500"})


@ANSWER.row("is torn in its middle", "hand-over: daemon-died")
def torn(live: Live) -> Iterator[Call]:
    answers_with(live, WHOLE[:-20])
    yield Call()


@ANSWER.row("is torn in the length of a frame", "hand-over: daemon-died")
def torn_length(live: Live) -> Iterator[Call]:
    answers_with(live, WHOLE[:2])
    yield Call()


@ANSWER.row("comes a byte at a time", "hand-over: disabled")
def byte_by_byte(live: Live) -> Iterator[Call]:
    answers_with(live, *(WHOLE[at : at + 1] for at in range(len(WHOLE))), pause=0.002)
    yield Call()


@ANSWER.row("comes slower than its time", "hand-over: out-of-time")
def too_slow(live: Live) -> Iterator[Call]:
    answers_with(live, *(WHOLE[at : at + 1] for at in range(len(WHOLE))), pause=0.1)
    yield Call(env={"LCC_BUDGET_MS": "600"})


@ANSWER.row("has a length of 4 GB", "hand-over: bad-answer")
def huge(live: Live) -> Iterator[Call]:
    answers_with(live, frame(b"ok 0\n"), b"\xff\xff\xff\xff", holds=5)
    yield Call()


@ANSWER.row("is rubbish", "hand-over: bad-answer")
def rubbish(live: Live) -> Iterator[Call]:
    answers_with(live, frame(b"\x00\xff\xfe no word of ours") + frame(b"x"))
    yield Call()


@ANSWER.row("asks for a time that is none", "hand-over: bad-answer")
def no_time(live: Live) -> Iterator[Call]:
    answers_with(live, frame(b"wait soon\n") + frame(b""), holds=5)
    yield Call()


@ANSWER.row("is an error of the daemon's", "hand-over: overloaded")
def error(live: Live) -> Iterator[Call]:
    answers_with(live, frame(b"error 0\noverloaded\nmore calls at once than connections") + frame(b""))
    yield Call()


# ---------------------------------------------------------------- locks that another process holds


def held(live: Live, kind: str, is_stopped: bool = True) -> None:
    """Somebody holds one of our lock files, and does not run."""
    hold = live.stack.enter_context(holders())
    process = hold(at_socket(live, kind))
    if is_stopped:
        os.kill(process.pid, signal.SIGSTOP)


@LOCK.row("of the start, by a process that is stopped", "replaced")
def stopped_start_lock(live: Live) -> Iterator[Call]:
    held(live, "start")
    yield Call()


@LOCK.row("of the start, by a process that goes on", "hand-over: out-of-time")
def start_lock(live: Live) -> Iterator[Call]:
    held(live, "start", is_stopped=False)
    yield Call(env={"LCC_START_BUDGET_MS": "500"})


@LOCK.row("of the daemon, by a process that is none", "hand-over: start-failed")
def daemon_lock(live: Live) -> Iterator[Call]:
    held(live, "lock", is_stopped=False)
    yield Call()


@LOCK.row("of the bytes saved", "replaced")
def saved_lock(live: Live) -> Iterator[Call]:
    hold = live.stack.enter_context(holders())
    live.state.mkdir(mode=0o700)
    os.kill(hold(live.state / "saved.json.lock").pid, signal.SIGSTOP)
    yield Call()
    yield Call()


@LOCK.row("of the log of requests", "replaced")
def log_lock(live: Live) -> Iterator[Call]:
    hold = live.stack.enter_context(holders())
    live.state.mkdir(mode=0o700)
    os.kill(hold(live.state / "requests.jsonl").pid, signal.SIGSTOP)
    yield Call(env={"LCC_REQUEST_LOG": "1"})


@LOCK.row("of the stash", "replaced")
def stash_lock(live: Live) -> Iterator[Call]:
    hold = live.stack.enter_context(holders())
    stash = live.root / "stash"
    stash.mkdir(mode=0o700)
    os.kill(hold(stash / "lock").pid, signal.SIGSTOP)
    yield Call(env={"LCC_STASH_DIR": str(stash), "LCC_RULES_MODE": "stashed"})
