"""The threads that requests are worked on in: a few at a time, and one that waits takes nobody's turn.

A pass may wait for a judge, or hang for ever on a dead disk. Work that has gone on for long is not counted any more,
and another thread takes what is waiting.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")

AT_ONCE = 4
SLOW_SECONDS = 1.0
"""A pass over a large session takes less, where it has the processor; what takes longer mostly waits."""
MOST_THREADS = 64


class Workers(Generic[T]):
    """Runs jobs in the order in which they come. Methods may be called from any thread."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._waiting: deque[tuple[Future[T], Callable[[], T]]] = deque()
        self._begun: dict[threading.Thread, float] = {}
        """When each thread that works began its job."""
        self._threads = 0
        self._changed = threading.Condition()

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Have ``job`` done. Its result or exception is the future's, which can be cancelled until it begins."""
        future: Future[T] = Future()
        with self._changed:
            self._waiting.append((future, job))
            self._changed.notify()
            self._add_threads()
        return future

    def look_after(self) -> None:
        """Called a while after a job came: have what still waits taken, where those before it have become slow."""
        with self._changed:
            self._add_threads()

    def _add_threads(self) -> None:
        now = time.monotonic()
        slow = sum(now - begun >= SLOW_SECONDS for begun in self._begun.values())
        free = self._threads - len(self._begun)
        wanted = min(len(self._waiting) - free, self._at_once - (self._threads - slow))
        for _ in range(min(wanted, MOST_THREADS - self._threads)):
            try:
                threading.Thread(target=self._work, name="lcc-work", daemon=True).start()
            except RuntimeError:  # the system has no more: those that there are will come to it
                return
            self._threads += 1

    def _work(self) -> None:
        me = threading.current_thread()
        while True:
            with self._changed:
                has_job = self._changed.wait_for(lambda: bool(self._waiting), None if self._is_needed() else 1.0)
                if not has_job:
                    self._threads -= 1
                    return
                future, job = self._waiting.popleft()
                self._begun[me] = time.monotonic()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(job())
                except BaseException as error:  # it is the future's, whoever asks for that
                    future.set_exception(error)
            del future, job  # they hold a session: nothing keeps it while the thread waits
            with self._changed:
                del self._begun[me]

    def _is_needed(self) -> bool:
        return self._threads <= self._at_once
