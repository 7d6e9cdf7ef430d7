"""`lcc-daemon` from outside: start, stop, restart, and a status that answers in every state and starts nothing."""

from __future__ import annotations

import _socket
import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any

import orjson

from lcc.config import ConfigError, config_file, load_config, state_folder
from lcc_daemon.keepers import read_hook_times
from lcc_daemon.lifecycle import other_sockets
from lcc_daemon.protocol import BUILD, HEADER_LIMIT, HOOKS, PROTOCOL, frame
from lcc_daemon.saved import SavedBytes
from lcc_hook.client import (
    AbsentError,
    GiveUpError,
    SilentError,
    check_folder,
    connect,
    greet,
    name_of,
    receive,
    socket_path,
)
from lcc_hook.files import is_locked
from lcc_hook.places import environment_state
from lcc_hook.processes import end_process, peer_pid, start_of
from lcc_hook.reach import call
from lcc_hook.runtime_files import StartLock, file_of, known_process, unusable
from lcc_hook.starter import start_daemon

ANSWER_SECONDS = 5.0
STOP_SECONDS = 20.0
"""Longer than a daemon takes for its end, which has a limit of its own."""
START_LOCK_SECONDS = 5.0

Status = dict[str, Any]


def status(folder: bytes, env: Mapping[str, str]) -> Status:
    """The daemon's state, and all that is known of it and of the hooks, for `lcc doctor` too.

    Never starts anything; the caller's alarm bounds it.
    """
    state = state_folder(env)
    times, saved = read_hook_times(state), SavedBytes(state).saved()
    found: Status = {
        "state": "not running",
        "build": BUILD,
        "protocol": PROTOCOL,
        "socket": name_of(socket_path(folder)),
        "runtime_folder": name_of(folder),
        "log": name_of(os.fsencode(state / "daemon.log")),
        "config": name_of(os.fsencode(config_file(env))),
        "config_problem": _config_problem(env),
        "hooks": {command: times[command] for command in HOOKS if command in times},
        "bytes_saved": {"today": saved["today"], "ever": saved["ever"]},
        "environment": environment_state(folder, {os.fsencode(key): os.fsencode(env[key]) for key in env}),
    }
    try:
        check_folder(folder)
    except FileNotFoundError:
        return found
    except GiveUpError as gave:
        return {**found, "state": "refused", "problem": gave.say}
    try:
        return {**found, **_ask_status(folder)}
    except SilentError:
        return {**found, "state": "unresponsive", "problem": "it accepts and does not answer", **_process(folder)}
    except GiveUpError as gave:
        return {**found, "state": "unresponsive", "problem": gave.say, **_process(folder)}
    except AbsentError:
        pass
    if is_locked(file_of(folder, "start")) or is_locked(file_of(folder, "lock")):
        return {**found, "state": "starting", **_process(folder)}
    for path in other_sockets(folder):
        other = greeting_of(path)
        if other is not None:
            return {**found, "state": "other version", "other": other, "other_socket": name_of(path)}
    return found


def _config_problem(env: Mapping[str, str]) -> str | None:
    try:
        load_config(env)
    except ConfigError as error:
        return name_of(str(error).encode("utf-8", "surrogateescape"))
    return None


def _ask_status(folder: bytes) -> Status:
    line = call(folder)
    line.settimeout(ANSWER_SECONDS)
    try:
        body = _simple_request(line, "status")
    except TimeoutError:
        raise SilentError(line) from None
    finally:
        line.close()
    answer = orjson.loads(body)
    if not isinstance(answer, dict):
        raise GiveUpError("bad-answer", "the daemon's status is no object")
    return answer


def _process(folder: bytes) -> Status:
    known = known_process(folder)
    return {} if known is None else {"pid": known[0]}


def _simple_request(line: _socket.socket, command: str) -> bytes:
    """A managing command; the line's own time-out bounds it."""
    header = f"protocol={PROTOCOL}\0build={BUILD}\0command={command}".encode()
    line.sendall(frame(header) + frame(b""))
    receive(line, HEADER_LIMIT)
    return bytes(receive(line, HEADER_LIMIT * 16))


def greeting_of(path: bytes) -> str | None:
    """The build and protocol of whoever greets at ``path``; None where nobody does."""
    try:
        line = connect(path)
        line.settimeout(1.0)
        words = bytes(receive(line, HEADER_LIMIT)).split()
        line.close()
    except (AbsentError, GiveUpError, OSError):
        return None
    if len(words) < 4 or words[0] != b"lcc":
        return None
    return f"build {name_of(words[2])}, protocol {name_of(words[1])}, pid {name_of(words[3])}"


def ask_to_stop(path: bytes) -> tuple[str, int | None]:
    """Ask the daemon at ``path``, of whatever build, to finish its work and go. Returns what and which it is."""
    try:
        line = connect(path)
        line.settimeout(ANSWER_SECONDS)
        words = bytes(receive(line, HEADER_LIMIT))
        pid = peer_pid(line)
        _simple_request(line, "stop")
        line.close()
    except (AbsentError, SilentError, GiveUpError, OSError) as error:
        return f"no answer ({type(error).__name__})", None
    return name_of(words), pid


def start(folder: bytes, env: Mapping[bytes, bytes]) -> tuple[str, int]:
    """Start it where it is not running. Returns what happened in words, and its pid. Raises GiveUpError."""
    before = known_process(folder)
    with contextlib.suppress(FileNotFoundError):
        check_folder(folder)
    try:
        start_daemon(folder, dict(env), by_hand=True)
    except SilentError:
        raise GiveUpError("unresponsive", "a daemon is there and does not answer: run lcc-daemon restart") from None
    now = known_process(folder)
    pid = now[0] if now else 0
    return ("already running" if before is not None and before == now else "started"), pid


def stop(folder: bytes, everything: bool = False) -> str:
    """End the daemon, and return only when its process is gone. Fine when there is none. Raises GiveUpError.

    ``everything``: those of other builds too. Bounded: what does not end when it is asked to is killed.
    """
    try:
        check_folder(folder)
    except FileNotFoundError:
        return "not running"
    if everything:
        pids = [pid for _, pid in map(ask_to_stop, other_sockets(folder)) if pid is not None]
        for pid, began in [(pid, start_of(pid)) for pid in pids]:
            _wait_until_gone(pid, began)
    try:
        with StartLock(folder, START_LOCK_SECONDS):  # nobody starts one while this one is ended
            return _stop_ours(folder)
    except OSError as error:
        raise unusable(folder, error) from None


def _stop_ours(folder: bytes) -> str:
    known = known_process(folder)
    try:
        line = connect(socket_path(folder))
        pid = greet(line)
        began = start_of(pid)
        line.settimeout(ANSWER_SECONDS)
        _simple_request(line, "stop")
        line.close()
    except AbsentError:
        if known is None:
            return "not running"
        return _end(known, "was on its way out")  # it has lost its socket, or takes no more calls
    except (SilentError, TimeoutError):
        if known is None:
            raise GiveUpError("unresponsive", "it does not answer, and its process is not known") from None
        return _end(known, "did not answer")
    if _wait_until_gone(pid, began):
        return f"stopped (pid {pid})"
    return _end((pid, began), "took too long to finish")


def _end(known: tuple[int, bytes], why: str) -> str:
    if end_process(*known):
        return f"ended (pid {known[0]}, which {why})"
    raise GiveUpError("unresponsive", f"pid {known[0]} {why} and cannot be ended")


def _wait_until_gone(pid: int, began: bytes) -> bool:
    until = time.monotonic() + STOP_SECONDS
    while start_of(pid) == began and began:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
