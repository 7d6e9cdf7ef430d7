"""The daemon as a process: no core dumps, enough file descriptors, nothing printed for ever, and an end in time."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO

WANTED_FILES = 4096
SPARE_FILES = 64
"""Descriptors that connections never take: the work on them needs some too."""


def forbid_core_dumps() -> None:
    """A core holds sessions. Where the system hands cores to a program, no limit holds: that gets an empty one."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/coredump_filter", "w", encoding="ascii") as file:
        file.write("0")


def raise_file_limit() -> int:
    """Have as many descriptors as are wanted and allowed. Returns how many connections that is enough for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    most = WANTED_FILES if soft == resource.RLIM_INFINITY else soft
    return max(8, min(most - SPARE_FILES, most // 2))


def fall_silent() -> None:
    """From now on nothing is printed: whatever would be goes to a file that nobody looks at and that only grows."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def end_within(seconds: float, last: Callable[[], None], faults: TextIO | None) -> None:
    """The process is gone in so many seconds, whatever hangs. ``last`` is tried before that; it may hang too."""

    def end() -> None:
        time.sleep(seconds)
        threading.Thread(target=last, daemon=True).start()
        time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=end, name="lcc-end", daemon=True).start()
    # Also where no thread of ours runs any more.
    faulthandler.dump_traceback_later(seconds + 2, exit=True, file=faults or sys.__stderr__ or sys.stderr)
