"""Locks between processes, none of which is waited for without an end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator

from lcc.private_files.reading import AnyPath, open_regular, usable_path

_POLL_SECONDS = 0.01


class HeldError(TimeoutError):
    """A lock that somebody else holds, and did not let go in the time that there was."""


def take_lock(path: AnyPath, what: str, *, seconds: float, exclusive: bool = True, is_folder: bool = False) -> int:
    """A descriptor that holds the lock file ``path``, made where it is missing, until it is closed.

    With ``is_folder`` the lock is on a folder itself, which is there. ``what`` names the lock in the error, as in "the
    stash's lock". The kernel releases a lock when its holder dies, however it dies; a holder that is stopped keeps
    it. So there is an end: raises ``HeldError`` after ``seconds`` (0 asks once), and ``OSError``.
    """
    if is_folder:
        descriptor = os.open(usable_path(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    else:
        descriptor = open_regular(path, flags=os.O_RDWR | os.O_CREAT, follow=False)
    try:
        _wait_for_lock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, time.monotonic() + seconds)
    except BlockingIOError:
        os.close(descriptor)
        raise HeldError(errno.ETIMEDOUT, f"another lcc process holds {what}", os.fspath(path)) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def locked(
    path: AnyPath, what: str, *, seconds: float, exclusive: bool = True, is_folder: bool = False
) -> Iterator[None]:
    """Hold a lock for a while. Arguments and errors are those of `take_lock`."""
    descriptor = take_lock(path, what, seconds=seconds, exclusive=exclusive, is_folder=is_folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, kind: int, end: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
            time.sleep(_POLL_SECONDS)
