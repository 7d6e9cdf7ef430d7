"""Sending the batches of a pass: several at once, results in the order of the batches, and an end in time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from lcc.judge.answers import Reply
from lcc.judge.attempt import Failure, Stop

if TYPE_CHECKING:
    from lcc.judge.client import SystemOneClient

FAILURES_IN_A_ROW = 3
"""After so many failed batches with no success between them the rest are not sent: the server is down."""
_TIME_OVER = Failure("given up, because the time for the judge was over", consequence=True)
_KEY_REFUSED = Failure("given up, because the server refuses the key", consequence=True)
_SERVER_DOWN = Failure(
    f"given up, because {FAILURES_IN_A_ROW} requests in a row had failed", connected=False, consequence=True
)


class _Done(NamedTuple):
    request: int
    outcome: Reply | Failure


def send_all(
    client: SystemOneClient,
    count: int,
    body_of: Callable[[int], bytes],
    *,
    max_workers: int,
    stop: Stop,
    progress: Callable[[int, int], None] | None = None,
    abandon: Callable[[], None] | None = None,
) -> list[Reply | Failure]:
    """The outcome of each of ``count`` requests, in their order, whatever order they were answered in.

    ``body_of`` gives the body of a request by its index, just before it is sent: all together may be large.
    ``progress`` is called in this thread with (batches done, batches). When the time is over the requests
    under way are given up at once: their threads end by themselves, and ``abandon`` (which closes a client
    that is this pass's own) makes them end sooner.
    """
    outcomes: list[Reply | Failure | None] = [None] * count
    done: queue.SimpleQueue[_Done] = queue.SimpleQueue()
    waiting = iter(range(count))
    lock = threading.Lock()

    def work() -> None:
        while stop.remaining > 0:
            with lock:
                index = next(waiting, None)
            if index is None:
                return
            try:
                outcome = client.ask(body_of(index))
            except Exception as error:  # a thread that died in silence would hold up the pass
                outcome = Failure(f"the request could not be made ({type(error).__name__})")
            done.put(_Done(index, outcome))
            if isinstance(outcome, Failure) and outcome.refused:
                stop.now()  # here, and not where it is collected: another request may be about to go out

    for _ in range(min(max_workers, count)):
        # Daemon threads: one that hangs in a read must not hold up the end of the process.
        threading.Thread(target=work, name="lcc-judge", daemon=True).start()
    rest = _collect(outcomes, done, stop, progress)
    if any(outcome is None for outcome in outcomes):
        stop.now()
        if abandon is not None:
            abandon()
    return [rest if outcome is None else outcome for outcome in outcomes]


def _collect(
    outcomes: list[Reply | Failure | None],
    done: queue.SimpleQueue[_Done],
    stop: Stop,
    progress: Callable[[int, int], None] | None,
) -> Failure:
    """Fill ``outcomes`` until all are there or the pass ends early; returns what the missing ones then say."""
    in_a_row = 0
    try:
        for count in range(1, len(outcomes) + 1):
            request, outcome = done.get(timeout=max(stop.remaining, 0.001))
            outcomes[request] = outcome
            if progress is not None:
                progress(count, len(outcomes))
            if not isinstance(outcome, Failure):
                in_a_row = 0
                continue
            in_a_row += 1
            if outcome.refused:
                return _KEY_REFUSED
            if in_a_row >= FAILURES_IN_A_ROW:
                return _SERVER_DOWN
    except queue.Empty:
        pass
    except BaseException:
        stop.now()  # Ctrl-C, or a progress display that failed: no request goes on behind the caller's back
        raise
    return _TIME_OVER
