"""What stands in the runtime folder of one build's daemon: its files, the lock of its start, and whose the place is.

Standard library only; runs on Python 3.8 and up.
"""

import fcntl
import os
import time

from lcc_hook.client import BUILD, PROTOCOL, GiveUpError, check_folder, name_of
from lcc_hook.files import read_small
from lcc_hook.processes import is_ours, is_stopped, lock_holder, start_of

LOOK_AGAIN = 0.03
"""Seconds between two looks at something that another process is about to change."""


def file_of(folder: bytes, kind: str) -> bytes:
    """A file of this build's daemon in the runtime folder: ``lock``, ``start``, ``pid``, ``crashes`` …"""
    return b"%s/d-%d-%s.%s" % (folder, PROTOCOL, BUILD.encode(), kind.encode())


def make_folder(folder: bytes) -> None:
    """Make a private folder and its missing parents, private too, and check it. What was there keeps its rights."""
    try:
        check_folder(folder)
        return
    except FileNotFoundError:
        pass
    before = os.umask(0o077)
    try:
        os.makedirs(folder, 0o700)  # that mode is the last one's alone: the others have the mask's
    except FileExistsError:
        pass
    except OSError as error:
        raise unusable(folder, error) from None
    finally:
        os.umask(before)
    check_folder(folder)


def unusable(folder: bytes, error: OSError) -> GiveUpError:
    """Why nothing can be done in the runtime folder, with the way out."""
    why = f"{name_of(folder)} cannot be used: {error.strerror or error}"
    return GiveUpError("runtime-folder", f"{why}; mend it, or set LCC_RUNTIME_DIR to a folder of yours")


class StartLock:
    """Held by the one who starts, or ends, the daemon. ``waited``: someone else held it when we came.

    It is waited for ``patience`` seconds, and not at all while its holder is stopped: it only keeps starts in order,
    and that there is one daemon is seen to by the daemon's own lock.
    """

    def __init__(self, folder: bytes, patience: float = 3600.0) -> None:
        path = file_of(folder, "start")
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        self.waited = False
        until = time.monotonic() + patience
        while not self.is_taken():
            self.waited = True
            if time.monotonic() > until or is_stopped(lock_holder(path)):
                break
            time.sleep(LOOK_AGAIN)

    def is_taken(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __enter__(self) -> "StartLock":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def known_process(folder: bytes) -> "tuple[int, bytes] | None":
    """The daemon that has the place: its process number and when it began. None where that is not sure.

    Both stand in its file. Where somebody removed that, the system may tell who holds the lock.
    """
    number, _, began = read_small(file_of(folder, "pid")).partition(b" ")
    if number:
        is_sure = number.isdigit() and len(number) < 10 and began and start_of(int(number)) == began
        return (int(number), began) if is_sure else None
    holder = lock_holder(file_of(folder, "lock"))
    return (holder, start_of(holder)) if holder is not None and is_ours(holder) else None
