"""Small private files that clients and daemons leave for each other in the runtime and data folders."""

import contextlib
import fcntl
import os


def read_small(path: bytes) -> bytes:
    """The first 4 KiB of a small file of ours, without the final newline; empty where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096).rstrip(b"\n")
    except OSError:
        return b""
    finally:
        os.close(fd)


def write_small(path: bytes, text: bytes) -> None:
    """Write a small private file in one step: whoever reads it sees the old text or the new.

    Raises OSError (a full disk): then the old one stays, and nothing beside it.
    """
    beside = b"%s.%d" % (path, os.getpid())
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            os.write(fd, text + b"\n")
        finally:
            os.close(fd)
        os.rename(beside, path)
    except OSError:
        remove(beside)
        raise


def remove(path: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def modified(path: bytes) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def is_locked(path: bytes) -> bool:
    """Whether somebody holds the lock file ``path``."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
