"""What others put where one of our files is expected: pipes, sockets, devices, links, and locks that nobody lets go."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

NOT_FILES = ("a folder", "a pipe", "a socket", "a device")

Holder: TypeAlias = Callable[[Path], "subprocess.Popen[str]"]
"""Starts a process that holds the lock of a file, or of a folder, until it is killed."""

_HOLD = """
import fcntl, os, sys, time
place = sys.argv[1]
flags = os.O_RDONLY if os.path.isdir(place) else os.O_RDWR | os.O_CREAT
fcntl.flock(os.open(place, flags, 0o600), fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


def in_place(kind: str, path: Path) -> None:
    """Put something that is no regular file at ``path``."""
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX) as made:  # by a short name: a socket's path may not be long
            made.bind(f"/proc/self/fd/{folder}/{path.name}" if sys.platform == "linux" else str(path))
        os.close(folder)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a link to nowhere":
        path.symlink_to("/nowhere")
    elif kind == "a terminal":
        path.symlink_to("/dev/tty")


@contextmanager
def small_disk(folder: Path, size: int = 512_000) -> Iterator[Callable[[], None]]:
    """A file system of its own for a folder, and what fills it to the last byte; skips where none can be made."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")

    def fill() -> None:
        for block in (4096, 1):
            with suppress(OSError), open(folder / f"filled{block}", "wb", buffering=0) as filler:
                while True:
                    filler.write(b"x" * block)

    try:
        yield fill
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@contextmanager
def holders() -> Iterator[Holder]:
    """Lets other processes hold locks, and ends them."""
    started: list[subprocess.Popen[str]] = []

    def hold(place: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", _HOLD, str(place)], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in started:
        process.kill()
        process.communicate()


@contextmanager
def never_waits(seconds: int = 20) -> Iterator[None]:
    """Whatever waits on a pipe, a device or a lock is interrupted, and so fails."""

    def too_long(number: int, frame: object) -> None:
        raise AssertionError("this waited")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
