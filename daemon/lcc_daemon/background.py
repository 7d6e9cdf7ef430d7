"""What is done after the answer is on its way: one thread, in order, and nobody ever waits for it without a limit."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import ParamSpec

from lcc_daemon.logs import failure_of

P = ParamSpec("P")

MOST_WAITING = 256
"""Jobs that may wait. A disk that hangs lets no more of them pile up; what comes then is not done."""


class Background:
    """Runs jobs one after the other. Methods may be called from any thread."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._jobs: queue.Queue[Callable[[], object] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="lcc-later", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have ``job`` done with its arguments. What it raises goes to the log."""
        try:
            self._jobs.put_nowait(lambda: job(*args, **kwargs))
        except queue.Full:
            self._log.warning("not done, since %d jobs wait already: %s", MOST_WAITING, job.__name__)

    def close(self, seconds: float) -> bool:
        """Finish what waits, for so many seconds at most. Returns whether all of it was done."""
        try:
            self._jobs.put(None, timeout=seconds)
        except queue.Full:
            return False
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception as error:
                self._log.error("in the background: %s", failure_of(error))
