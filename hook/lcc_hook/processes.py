"""Which process is the daemon, and how it is ended without ever ending another one. Used where no daemon answers.

A process is known by its number and the time it began: a number alone is given away again.
"""

import os
import signal
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

ON_LINUX: bool = sys.platform.startswith("linux")
PS = "/bin/ps"
TERM_WAIT = 2.0
"""Seconds that a daemon which does not answer gets between SIGTERM and SIGKILL."""


def end_process(pid: int, began: bytes, patience: float = TERM_WAIT) -> bool:
    """SIGTERM, and SIGKILL after ``patience`` seconds, to the process ``pid`` that began at ``began``."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 2.0)):
        if start_of(pid) != began:
            return True
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return True
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if start_of(pid) != began:
                return True
            time.sleep(0.02)
    return False


def peer_pid(line: "_socket.socket") -> "int | None":
    """Who made the socket listen: SO_PEERCRED on Linux, LOCAL_PEERPID (level 0, option 2) on macOS."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            found = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return int.from_bytes(found[:4], sys.byteorder)
        return line.getsockopt(0, 2)
    except OSError:
        return None


def progress_of(pid: int) -> "tuple[bytes, bytes]":
    """The process's state as one letter (T: stopped, R: at work or waiting for its turn) and the time it has used."""
    if ON_LINUX:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()
        except OSError:
            return b"", b""
        return words[0], b" ".join(words[11:13])
    state, _, used = ask_ps(pid, "stat", "time").partition(b" ")
    return state[:1], used.strip()


def is_stopped(pid: "int | None") -> bool:
    """Whether the process does nothing until somebody wakes it: Ctrl-Z, or a debugger."""
    return pid is not None and progress_of(pid)[0] in (b"T", b"t")


class Watch:
    """Looks at a process again and again: does it do anything? One that is not known does nothing."""

    def __init__(self, pid: "int | None") -> None:
        self.pid = pid
        self.seen = self.look()
        self.since = time.monotonic()

    def look(self) -> "tuple[bytes, bytes]":
        return (b"", b"") if self.pid is None else progress_of(self.pid)

    def is_hung(self, seconds: float) -> bool:
        """Whether it is stopped, or has neither worked nor waited for a processor for so long."""
        found = self.look()
        if found[0] in (b"T", b"t"):
            return True
        now = time.monotonic()
        if found != self.seen or found[0] == b"R":
            self.seen, self.since = found, now
        return now - self.since >= seconds


def lock_holder(path: bytes) -> "int | None":
    """Who holds the lock file ``path``, where the system tells (Linux); None where nobody does."""
    try:
        wanted = b":%d " % os.stat(path).st_ino
        with open("/proc/locks", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if len(words) > 5 and words[1] == b"FLOCK" and words[3] == b"WRITE" and wanted in line and words[4].isdigit():
            return int(words[4]) or None  # 0: a process of another container
    return None


def is_ours(pid: int) -> bool:
    """Whether a process is a daemon of this user's."""
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read()
    except OSError:
        return False
    return owner == os.geteuid() and (b"lcc_daemon" in words or b"lcc-daemon" in words)


def start_of(pid: int) -> bytes:
    """When the process began, in the system's own words; empty where it is gone or only waits to be buried."""
    if ON_LINUX:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()
        except OSError:
            return b""
        return b"" if words[0] in (b"Z", b"X") else words[19]
    state, _, began = ask_ps(pid, "stat", "lstart").partition(b" ")
    return b"" if state.startswith(b"Z") else began.strip()


def ask_ps(pid: int, *columns: str) -> bytes:
    """What the system's own `ps` says of a process, wherever PATH leads and whatever language is set; or nothing.

    Each column in a word of its own: on macOS all that stands behind an equals sign is the column's heading.
    """
    import subprocess

    try:
        shown = subprocess.run(
            [PS, *(word for column in columns for word in ("-o", f"{column}=")), "-p", str(pid)],
            env={"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return shown.stdout.strip()
