"""What the commands share: one of each for the daemon's life. A command is a function of a request and these."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lcc.transcript import Transcript
from lcc_daemon.background import Background
from lcc_daemon.figures import TokenBook
from lcc_daemon.judge_clients import JudgeClients
from lcc_daemon.keepers import Keepers
from lcc_daemon.saved import SavedByState
from lcc_daemon.sessions import Sessions
from lcc_daemon.stats import Stats

SESSIONS_REMEMBERED = 1000
GIVE_WAY_SECONDS = 30.0
"""Work that nobody waits for stands back for so long at most: a pass may hang for ever on a dead disk."""


class Remembered:
    """The newest of the keys that were added. Methods may be called from any thread."""

    def __init__(self, most: int = SESSIONS_REMEMBERED) -> None:
        self._most = most
        self._keys: dict[Hashable, None] = {}
        self._guard = threading.Lock()

    def add(self, key: Hashable) -> None:
        with self._guard:
            self._keys.pop(key, None)
            self._keys[key] = None
            while len(self._keys) > self._most:
                del self._keys[next(iter(self._keys))]

    def take(self, key: Hashable) -> bool:
        """Forget a key; whether it was there."""
        with self._guard:
            return key in self._keys and self._keys.pop(key) is None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._keys


class Priority:
    """Lets whoever is served go before work that nobody waits for."""

    def __init__(self) -> None:
        self._serving: set[object] = set()
        self._endless: set[object] = set()
        """Those that such work has waited for in vain: it does so once."""
        self._changed = threading.Condition()

    @contextmanager
    def serving(self) -> Iterator[None]:
        """While a request is served."""
        request = object()
        with self._changed:
            self._serving.add(request)
        try:
            yield
        finally:
            with self._changed:
                self._serving.discard(request)
                self._endless.discard(request)
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait until nobody is served, with a limit."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._serving <= self._endless, GIVE_WAY_SECONDS):
                self._endless |= self._serving


@dataclass(frozen=True, eq=False)
class Services:
    """``folder`` is the runtime folder, ``env`` the daemon's own environment."""

    folder: bytes
    env: Mapping[str, str]
    log: logging.Logger
    stats: Stats
    saved: SavedByState
    background: Background
    keepers: Keepers
    book: TokenBook
    sessions: Sessions
    judges: JudgeClients
    priority: Priority
    compacted: Remembered
    """Session and agent of each conversation that a pass has compacted."""
    noted: Remembered
    """Of those, the ones that hold notes of the stash and have not been told yet how to follow them."""
    outdated: threading.Event
    """Set once a session has begun whose plugin has other sources: the next call is for a daemon of those."""

    @property
    def parts_folder(self) -> Path:
        """Where plans lie that are too long for stdout."""
        return Path(os.fsdecode(self.folder)) / "parts"


def build_services(folder: bytes, env: Mapping[str, str], stats: Stats, log: logging.Logger) -> Services:
    """All of them, with their threads started."""
    background, book, priority = Background(log), TokenBook(), Priority()

    def measure(session_id: str, transcript: Transcript) -> None:
        """A followed session's tokens, before a compaction asks for them; whoever is served meanwhile goes first."""
        book.measure(session_id, transcript, priority.give_way)

    return Services(
        folder=folder,
        env=env,
        log=log,
        stats=stats,
        saved=SavedByState(stats.error),
        background=background,
        keepers=Keepers(background, log),
        book=book,
        sessions=Sessions(log, measure),
        judges=JudgeClients(),
        priority=priority,
        compacted=Remembered(),
        noted=Remembered(),
        outdated=threading.Event(),
    )
