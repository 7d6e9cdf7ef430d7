"""Running our own programs, each run in a process of its own."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PYTHON = sys.executable
"""The tests' own, whatever a test makes of `sys.executable`."""
BIN = Path(PYTHON).parent
LCC = BIN / "lcc"
"""The program as it is installed, for what a start of Python is part of."""
MODULES = {"lcc": "lcc.cli", "lcc-daemon": "lcc_daemon.cli"}
AT_START = ("PYTHON", "LC_", "LANG", "TZ", "TERMINAL_", "FORCE_", "PY_", "GITHUB_", "TYPER_", "_TYPER_")
"""How the variables begin that Python or a library reads once, when it starts."""


class Started:
    """A run that goes on: its process, which is no child of ours, and our ends of its pipes."""

    def __init__(self, args: list[str], status: int, stdin: int, stdout: int, stderr: int) -> None:
        self.args = args
        self._status = open(status, "rb", buffering=0)  # noqa: SIM115
        self._stdin = open(stdin, "wb", buffering=0)  # noqa: SIM115
        self._stdout = open(stdout, "rb", buffering=0)  # noqa: SIM115
        self._stderr = open(stderr, "rb", buffering=0)  # noqa: SIM115
        self.pid = int.from_bytes(self._status.read(4), "big")

    def send_signal(self, number: int) -> None:
        """A signal to it, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def has_ended(self) -> bool:
        """Whether it has; `wait` says how."""
        return bool(select.select([self._status], [], [], 0)[0])

    def wait(self) -> int:
        """The exit code once it has ended; below zero the signal that ended it."""
        return int.from_bytes(self._status.read(4), "big", signed=True)

    def communicate(self, stdin: bytes = b"") -> tuple[bytes, bytes]:
        """Give it its input, and read what it says to its end."""
        err: list[bytes] = []
        others = [
            threading.Thread(target=self._feed, args=(stdin,)),
            threading.Thread(target=lambda: err.append(self._stderr.readall())),
        ]
        for other in others:
            other.start()
        out = self._stdout.readall()
        for other in others:
            other.join()
        return out, err[0]

    def close(self) -> None:
        for file in (self._status, self._stdin, self._stdout, self._stderr):
            file.close()

    def _feed(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError), self._stdin:
            while data:
                data = data[self._stdin.write(data) :]


@contextlib.contextmanager
def start(
    program: str,
    *words: str | Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    terminal: int | None = None,
    timeout: float = 120,
) -> Iterator[Started]:
    """Start `lcc` or `lcc-daemon` with ``words``, in an environment of ``env`` alone; on a ``terminal``, or on pipes.

    The process is a fork of one where the libraries are loaded: what loads when is not tested with it, and neither
    is what depends on the seed of hashes, which forks share. A run of more than ``timeout`` seconds is killed.
    """
    args = [str(BIN / program), *map(str, words)]
    asked = {
        "module": MODULES[program],
        "argv": args,
        "env": dict(env),
        "cwd": str(cwd or Path.cwd()),
        "umask": _umask(),
        "timeout": timeout,
    }
    pipes = [os.pipe() for _ in range(4)]
    ours = [pipes[0][1], *(read for read, _ in pipes[1:])]
    theirs = [pipes[0][0], *(write for _, write in pipes[1:])]
    files = theirs if terminal is None else [terminal, terminal, terminal, theirs[3]]
    try:
        _warm_python(env).fork(json.dumps(asked).encode(), files)
    finally:
        for file in theirs:
            os.close(file)
    started = Started(args, ours[3], *ours[:3])
    try:
        yield started
    finally:
        started.close()


def run(
    program: str,
    *words: str | Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """The same to its end, with ``stdin`` as its input."""
    with start(program, *words, env=env, cwd=cwd, timeout=timeout) as started:
        out, err = started.communicate(stdin)
        return subprocess.CompletedProcess(started.args, started.wait(), out, err)


def run_text(
    program: str, *words: str | Path, env: Mapping[str, str], cwd: Path | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """The same without input, and with its output as text."""
    done = run(program, *words, env=env, cwd=cwd, timeout=timeout)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@dataclass(frozen=True)
class _WarmPython:
    """A process of `warm_python.py`, and the line to it."""

    process: subprocess.Popen[bytes]
    line: socket.socket
    lock: threading.Lock

    def fork(self, run: bytes, files: list[int]) -> None:
        with self.lock:
            socket.send_fds(self.line, [len(run).to_bytes(4, "big")], files)
            self.line.sendall(run)

    def end(self) -> None:
        self.line.close()
        self.process.wait()


_warm: dict[tuple[tuple[str, str], ...], _WarmPython] = {}


def _warm_python(env: Mapping[str, str]) -> _WarmPython:
    """The one for an environment: what is read at the start has to be there at its start."""
    key = tuple(sorted((name, value) for name, value in env.items() if name.startswith(AT_START)))
    if key not in _warm:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [PYTHON, Path(__file__).with_name("warm_python.py"), str(theirs.fileno())],
                env={"PATH": os.environ.get("PATH", os.defpath), **dict(key)},
                cwd="/",
                pass_fds=[theirs.fileno()],
            )
        _warm[key] = _WarmPython(process, ours, threading.Lock())
        atexit.register(_warm[key].end)
    return _warm[key]


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
