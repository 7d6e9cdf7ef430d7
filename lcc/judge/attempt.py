"""An attempt to ask a judge: until when it may go on, and what it ended with. Nothing here needs an HTTP client."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request got no answer. ``connected`` is False when the server could not be reached at all."""

    text: str
    refused: bool = False
    """The server refuses this key: no other request will do better."""
    connected: bool = True
    consequence: bool = False
    """It was given up because of another failure, or of the time."""


class Stop:
    """When to give up: a moment of `time.monotonic`, or a call of ``now``. Safe to use from several threads."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._event = threading.Event()

    def now(self) -> None:
        self._event.set()

    @property
    def remaining(self) -> float:
        """Seconds that are left; 0 when the time is over or the pass was stopped."""
        return 0.0 if self._event.is_set() else max(0.0, self._deadline - time.monotonic())

    def wait(self, seconds: float) -> bool:
        """Wait; False when the pass was stopped, or would be over, before the time has passed."""
        return seconds < self.remaining and not self._event.wait(seconds)
