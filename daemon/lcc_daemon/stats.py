"""What the daemon has done: counts and times in memory, and the bytes it saved, which outlive it.

Several daemons (of two builds, for a while) may keep the same file; each adds to it under its lock. Somebody may hold
that lock for ever, and then what is to be added waits in memory.
"""

from __future__ import annotations

import errno
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import orjson

from lcc.private_files import locked, make_private_folder, read_bounded, write_private

MEASURED = 1000
"""Latencies are those of the newest so many requests."""
LOCK_SECONDS = 1.0
"""A daemon holds the lock for milliseconds; longer means that it is stopped."""
_FILE_BYTES = 4096


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
    _waiting: int = 0
    """Bytes that were saved and do not stand in the file yet."""
    _guard: threading.Lock = field(default_factory=threading.Lock)

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
        """What the file says, and what still waits to be added to it; nothing where the file cannot be used."""
        try:
            found = _read(self.file)
        except OSError:
            found = _nothing()
        found["today"] += self._waiting
        found["ever"] += self._waiting
        return found

    def add_saved(self, size: int) -> None:
        """Add ``size`` bytes to today's and to all that was ever saved; what cannot be written now is added later."""
        with self._guard:
            # Once the lock was waited for in vain, it is only asked for: nothing else shall wait for its holder.
            seconds = 0.0 if self._waiting else LOCK_SECONDS
            self._waiting += size
            self._write(seconds)

    def settle(self) -> int:
        """Before the end: write what still waits. Returns how many bytes could not be counted."""
        with self._guard:
            if self._waiting:
                self._write(LOCK_SECONDS)
            return self._waiting

    def _write(self, seconds: float) -> None:
        try:
            make_private_folder(self.file.parent)
            with locked(f"{self.file}.lock", "the lock of the bytes saved", seconds=seconds):
                found = _read(self.file)
                found["today"] += self._waiting
                found["ever"] += self._waiting
                write_private(self.file, orjson.dumps(found))
                self._waiting = 0
        except OSError as error:
            self.error(f"{self.file.name}: {error.strerror}")


def _read(file: Path) -> Saved:
    """What is saved as the file has it, nothing for a damaged one. Raises OSError for one that is not ours."""
    try:
        content = read_bounded(file, _FILE_BYTES, follow=False)
    except FileNotFoundError:
        return _nothing()
    try:
        found = orjson.loads(content)
    except ValueError:
        return _nothing()
    if isinstance(found, dict) and found and not found.keys() & Saved.__annotations__.keys():
        raise OSError(errno.EEXIST, "some other program's file", str(file))
    try:
        saved: Saved = {"today": int(found["today"]), "ever": int(found["ever"]), "day": str(found["day"])}
    except (ValueError, KeyError, TypeError):
        return _nothing()
    return saved if saved["day"] == _today() else {"today": 0, "ever": saved["ever"], "day": _today()}


def _nothing() -> Saved:
    return {"today": 0, "ever": 0, "day": _today()}


def _at(times: Sequence[float], share: float) -> float | None:
    if not times:
        return None
    return round(times[min(len(times) - 1, int(len(times) * share))], 2)


def _today() -> str:
    return time.strftime("%Y-%m-%d")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
