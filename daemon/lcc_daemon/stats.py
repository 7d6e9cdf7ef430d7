"""What the daemon has done since its start: counts and times, in memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

MEASURED = 1000
"""Latencies are those of the newest so many requests."""


class Latency(TypedDict):
    """Milliseconds from the whole request to the whole answer; null before the first one."""

    p50: float | None
    p95: float | None
    p99: float | None


@dataclass
class Stats:
    """Counts since the daemon's start."""

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


def _at(times: Sequence[float], share: float) -> float | None:
    if not times:
        return None
    return round(times[min(len(times) - 1, int(len(times) * share))], 2)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
