"""A Python in which our programs and their libraries are loaded, and which forks itself for each run of one of them.

Most of what a run of `lcc` costs is the start of Python and of its libraries. `programs.run` starts this once, and asks
it on a socket: four bytes of length with four files (standard input, output and error, and where its process id and its
exit status go), then the run as JSON. The fork is a process as any other: its own folder, environment, files, signals
and end.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import signal
import socket
import sys
import threading
import time
from typing import Any

LIBRARIES = ["httpx", "rich.console", "tokenizers", "typer.rich_utils", "watchfiles"]
PACKAGES = ["lcc", "lcc_daemon"]


def load() -> None:
    """Import whatever our programs may."""
    for library in LIBRARIES:
        importlib.import_module(library)
    for package in PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.endswith(".__main__"):
                importlib.import_module(module.name)


def serve(line: socket.socket) -> dict[str, Any] | None:
    """Fork for each run that is asked for. Returns the run in its fork, and None when nobody asks any more."""
    ended, wake = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    running: dict[int, tuple[int, float]] = {}
    while True:
        ready, _, _ = select.select([line, ended], [], [], 1.0 if running else None)
        if ended in ready:
            os.read(ended, 1 << 16)
        for pid, (status, until) in list(running.items()):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            done, how = os.waitpid(pid, os.WNOHANG)
            if done:
                del running[pid]
                os.write(status, os.waitstatus_to_exitcode(how).to_bytes(4, "big", signed=True))
                os.close(status)
        if line not in ready:
            continue
        length, files, _, _ = socket.recv_fds(line, 4, 4)
        if not length:
            return None
        run: dict[str, Any] = json.loads(receive(line, int.from_bytes(length, "big")))
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            become(run, files)
            return run
        os.write(files[3], pid.to_bytes(4, "big"))
        running[pid] = files[3], time.monotonic() + run["timeout"]
        for file in files[:3]:
            os.close(file)


def receive(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += line.recv(size - len(data))
    return data


def become(run: dict[str, Any], files: list[int]) -> None:
    """Make this process the one that was asked for."""
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.closerange(3, 4096)
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        mine = getattr(sys, name)
        fresh = open(number, mode, encoding=mine.encoding, errors=mine.errors)  # noqa: SIM115
        setattr(sys, name, fresh)
        setattr(sys, f"__{name}__", fresh)
    os.environ.clear()
    os.environ.update(run["env"])
    os.chdir(run["cwd"])
    os.umask(run["umask"])
    sys.argv[:] = run["argv"]
    random.seed()


def finish(code: object) -> None:
    """End this process as Python would, without taking a thousand modules apart first."""
    if not isinstance(code, int | None):
        sys.exit(code)  # type: ignore[arg-type]
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    gc.disable()
    load()
    gc.freeze()
    gc.enable()
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked:
        try:
            finish(importlib.import_module(asked["module"]).main())
        except SystemExit as end:
            finish(end.code)
