"""The bytes that replacements saved, kept in the state folder of the sessions that they were saved in.

Several daemons (of two builds, for a while) may keep the same file; each adds to it under its lock. Somebody may hold
that lock for ever, and then what is to be added waits in memory.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import orjson

from lcc.private_files import locked, make_private_folder, read_bounded, write_private

LOCK_SECONDS = 1.0
"""A daemon holds the lock for milliseconds; longer means that it is stopped."""
_FILE_BYTES = 4096


class Saved(TypedDict):
    """Bytes of tool results that replacements took out of sessions."""

    today: int
    ever: int
    day: str


class SavedBytes:
    """The figures of one state folder. ``on_problem`` is told in words why they could not be written."""

    def __init__(self, state: Path, on_problem: Callable[[str], None] = lambda problem: None) -> None:
        self.file = state / "saved.json"
        self._on_problem = on_problem
        self._waiting = 0
        """Bytes that were saved and do not stand in the file yet."""
        self._guard = threading.Lock()

    def saved(self) -> Saved:
        """What the file says, and what still waits to be added to it; nothing where the file cannot be used."""
        try:
            found = _read(self.file)
        except OSError:
            found = _nothing()
        found["today"] += self._waiting
        found["ever"] += self._waiting
        return found

    def add(self, size: int) -> None:
        """Add ``size`` bytes to today's and to all that was ever saved; what cannot be written now is added later."""
        with self._guard:
            # Once the lock was waited for in vain, it is only asked for: nothing else shall wait for its holder.
            seconds = 0.0 if self._waiting else LOCK_SECONDS
            self._waiting += size
            self._write(seconds)

    def settle(self, seconds: float = LOCK_SECONDS) -> int:
        """Before the end: write what still waits. Returns how many bytes could not be counted."""
        with self._guard:
            if self._waiting:
                self._write(seconds)
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
            self._on_problem(f"{self.file.name}: {error.strerror}")


class SavedByState:
    """The figures of each state folder that a session named. Methods may be called from any thread."""

    def __init__(self, on_problem: Callable[[str], None]) -> None:
        self._on_problem = on_problem
        self._known: dict[Path, SavedBytes] = {}
        self._guard = threading.Lock()

    def add(self, state: Path, size: int) -> None:
        """Add ``size`` bytes to what was saved in ``state``."""
        with self._guard:
            saved = self._known.setdefault(state, SavedBytes(state, self._on_problem))
        saved.add(size)

    def settle(self) -> int:
        """Before the end: write what still waits, in a second for all. Returns how many bytes could not be counted."""
        until = time.monotonic() + LOCK_SECONDS
        return sum(saved.settle(max(0.0, until - time.monotonic())) for saved in list(self._known.values()))


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
    if found and not (isinstance(found, dict) and found.keys() & Saved.__annotations__.keys()):
        raise OSError(errno.EEXIST, "some other program's file", str(file))
    try:
        saved: Saved = {"today": int(found["today"]), "ever": int(found["ever"]), "day": str(found["day"])}
    except (ValueError, KeyError, TypeError):
        return _nothing()
    return saved if saved["day"] == _today() else {"today": 0, "ever": saved["ever"], "day": _today()}


def _nothing() -> Saved:
    return {"today": 0, "ever": 0, "day": _today()}


def _today() -> str:
    return time.strftime("%Y-%m-%d")
