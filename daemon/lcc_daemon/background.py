"""What is done after the answer is on its way: in order, and nobody ever waits for it without a limit."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import ParamSpec

from lcc_daemon.logs import failure_of

P = ParamSpec("P")

MOST_WAITING = 256
"""Jobs that may wait. A disk that hangs lets no more of them pile up; what comes then is not done."""
STUCK_SECONDS = 10.0
"""A job that takes longer hangs on one session's disk, and those behind it are done without waiting for it."""
MOST_STUCK = 8


class Background:
    """Runs jobs one after the other, in a thread that is left behind where it gets stuck. Safe from any thread."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._jobs: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._begun: float | None = None
        """When the job that is being done began; None between jobs."""
        self._worker = self._new_worker()
        self._stuck: list[threading.Thread] = []

    def submit(self, job: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have ``job`` done with its arguments. What it raises goes to the log."""
        with self._changed:
            if len(self._jobs) >= MOST_WAITING:
                self._log.warning("not done, since %d jobs wait already: %s", MOST_WAITING, job.__name__)
                return
            self._jobs.append(lambda: job(*args, **kwargs))
            self._changed.notify_all()

    def look_after(self) -> None:
        """Called now and then: leave a thread behind that has been doing one job for too long."""
        with self._changed:
            if self._begun is None or time.monotonic() - self._begun < STUCK_SECONDS:
                return
            self._stuck = [thread for thread in self._stuck if thread.is_alive()]
            if len(self._stuck) < MOST_STUCK:
                self._log.warning("a job in the background does not end: going on without it")
                self._stuck.append(self._worker)
                self._worker = self._new_worker()

    def close(self, seconds: float) -> bool:
        """Finish what waits, for so many seconds at most. Returns whether all of it was done."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            worker = self._worker
        worker.join(seconds)
        return not worker.is_alive() and not any(thread.is_alive() for thread in self._stuck)

    def _new_worker(self) -> threading.Thread:
        self._begun = None
        worker = threading.Thread(target=self._run, name="lcc-later", daemon=True)
        worker.start()
        return worker

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if not self._jobs or not self._is_mine():
                    return
                job = self._jobs.popleft()
                self._begun = time.monotonic()
            try:
                job()
            except Exception as error:
                self._log.error("in the background: %s", failure_of(error))
            with self._changed:
                if not self._is_mine():
                    return
                self._begun = None

    def _is_mine(self) -> bool:
        """Whether this thread is the one that does the jobs. The caller holds the condition."""
        worker = getattr(self, "_worker", None)  # the first thread may run before it has its name
        return worker is None or worker is threading.current_thread()
