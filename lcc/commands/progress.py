"""A word on stderr about what takes longer than a second, on a terminal only."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_QUIET_SECONDS = 1.0
_STEP_SECONDS = 0.2
_CLEAR = "\r\x1b[K"


class Progress:
    """What is being done now; set ``doing`` from the thread that does it."""

    def __init__(self, doing: str) -> None:
        self.doing = doing
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True) if sys.stderr.isatty() else None

    def start(self) -> None:
        """Begin to watch; nothing is shown for the first second."""
        if self._thread is not None:
            self._thread.start()

    def stop(self) -> None:
        """Take away what was shown."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def counted(self, done: int, total: int) -> None:
        """``done`` of ``total`` requests to a judge are answered."""
        self.doing = f"asking the judge: {done} of {total}"

    def _show(self) -> None:
        started = time.monotonic()
        if self._done.wait(_QUIET_SECONDS):
            return
        while not self._done.wait(_STEP_SECONDS):
            line = f"lcc: {self.doing} … {time.monotonic() - started:.0f} s"
            # A line that the terminal folds could not be taken away again.
            sys.stderr.write(_CLEAR + line[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


@contextmanager
def progress(doing: str) -> Iterator[Progress]:
    """Shows ``doing`` and the seconds while the block runs, when it runs for more than a second."""
    shown = Progress(doing)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
