"""What the daemon has done: counts and times in memory, and the bytes it saved, which outlive it.

Several daemons (of two builds, for a while) may keep the same file; each adds to it under its lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import orjson

MEASURED = 1000
"""Latencies are those of the newest so many requests."""


class Saved(TypedDict):
    """Bytes of tool results that replacements took out of sessions."""

    today: int
    ever: int
    day: str


class Latency(TypedDict):
    """Milliseconds from the whole request to the whole answer; null before the first one."""

    p50: float | None
    p95: float | None
    p99: float | None


@dataclass
class Stats:
    """Counts since the daemon's start. ``file`` holds what is saved over all of its lives."""

    file: Path
    started: float = field(default_factory=time.time)
    requests: int = 0
    refused: int = 0
    failed: int = 0
    last_error: dict[str, str] | None = None
    _times: deque[float] = field(default_factory=lambda: deque(maxlen=MEASURED))

    def served(self, milliseconds: float) -> None:
        self.requests += 1
        self._times.append(milliseconds)

    def error(self, what: str) -> None:
        """Remember what went wrong last, in words without content."""
        self.last_error = {"at": _now(), "what": what}

    def latency(self) -> Latency:
        times = sorted(self._times)
        return {"p50": _at(times, 0.50), "p95": _at(times, 0.95), "p99": _at(times, 0.99)}

    def saved(self) -> Saved:
        found = _read(self.file)
        if found["day"] != _today():
            found["today"], found["day"] = 0, _today()
        return found

    def add_saved(self, size: int) -> None:
        """Add ``size`` bytes to today's and to all that was ever saved. What cannot be written is not counted."""
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.open(f"{self.file}.lock", flags, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                found = self.saved()
                found["today"] += size
                found["ever"] += size
                write_private(self.file, orjson.dumps(found))
            finally:
                os.close(lock)


def write_private(file: Path, data: bytes) -> None:
    """Write a private file in one step, and make it last: a reader sees the old bytes or the new."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.{time.monotonic_ns()}")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(fd)
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _read(file: Path) -> Saved:
    try:
        found = orjson.loads(file.read_bytes())
        return {"today": int(found["today"]), "ever": int(found["ever"]), "day": str(found["day"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"today": 0, "ever": 0, "day": _today()}


def _at(times: Sequence[float], share: float) -> float | None:
    if not times:
        return None
    return round(times[min(len(times) - 1, int(len(times) * share))], 2)


def _today() -> str:
    return time.strftime("%Y-%m-%d")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
