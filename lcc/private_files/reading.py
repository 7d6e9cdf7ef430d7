"""Opening a regular file, and nothing else, without waiting; reading it up to a limit."""

from __future__ import annotations

import errno
import os
import stat
from typing import TypeAlias

AnyPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

_NEVER_WAIT = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = 0o600
_CHUNK = 1 << 16
_LARGE_CHUNK = 1 << 20
"""Where nobody knows how much there is."""
_MOST_AT_ONCE = 1 << 30  # a system may give no more than 2 GiB with one call
_NOT_REGULAR = "not a regular file"


class NotRegularError(OSError):
    """Something else than a regular file stands there. ``kind`` says what, as in "a folder"."""

    def __init__(self, path: AnyPath, mode: int) -> None:
        code, words = (errno.ELOOP, os.strerror(errno.ELOOP)) if stat.S_ISLNK(mode) else (errno.EINVAL, _NOT_REGULAR)
        super().__init__(code, words, os.fspath(path))
        self.kind = next((words for test, words in _KINDS if test(mode)), "something else")


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class TooLargeError(OSError):
    """More bytes than were asked for at most. ``size`` is how many there are, where that is known."""

    def __init__(self, limit: int, size: int | None = None, path: AnyPath = "") -> None:
        super().__init__(errno.EFBIG, f"larger than {limit:,} bytes", os.fspath(path))
        self.size = size


class ForeignFileError(PermissionError):
    """A file that belongs to another user."""


class ExposedFileError(PermissionError):
    """A file that should be private, and that others can read or write."""


def open_regular(
    path: AnyPath, *, flags: int = os.O_RDONLY, follow: bool = True, own: bool = False, private: bool = False
) -> int:
    """A descriptor of the regular file at ``path``; never waits, and never opens what is none.

    ``flags`` are those of ``os.open`` (a file that ``O_CREAT`` makes has mode 0600). Without ``follow`` a link in the
    last place is refused. ``own`` asks that the file belongs to this user, ``private`` that nobody else may use it.

    Raises ``NotRegularError``, ``ForeignFileError``, ``ExposedFileError``, and any other ``OSError`` as it comes.
    """
    return _open_regular(path, flags, follow, own, private)[0]


def _open_regular(path: AnyPath, flags: int, follow: bool, own: bool, private: bool) -> tuple[int, os.stat_result]:
    """The descriptor, and what the opened file is."""
    try:
        _refuse_irregular(path, os.stat(path, follow_symlinks=follow))
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    except ValueError:
        raise _no_name(path) from None
    descriptor = os.open(path, flags | _NEVER_WAIT | (0 if follow else os.O_NOFOLLOW), _NEW_FILE)
    try:
        found = os.fstat(descriptor)  # what stood there a moment ago may have been replaced
        _refuse_irregular(path, found)
        if own and found.st_uid != os.geteuid():
            raise ForeignFileError(errno.EACCES, "belongs to another user", os.fspath(path))
        if private and found.st_mode & 0o077:
            raise ExposedFileError(errno.EACCES, "can be read by others", os.fspath(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found


def read_bounded(path: AnyPath, limit: int, *, follow: bool = True, own: bool = False, private: bool = False) -> bytes:
    """All bytes of a regular file of at most ``limit`` bytes. Arguments and errors are those of `open_regular`.

    Raises ``TooLargeError`` too, without having read a file whose size says so.
    """
    descriptor, found = _open_regular(path, os.O_RDONLY, follow, own, private)
    try:
        if found.st_size > limit:
            raise TooLargeError(limit, found.st_size, path)
        return read_all(descriptor, limit, found.st_size)
    finally:
        os.close(descriptor)


def read_or_none(path: AnyPath, limit: int, *, follow: bool = False) -> bytes | None:
    """As `read_bounded`; None where there is no such file, or none that can be used."""
    try:
        return read_bounded(path, limit, follow=follow)
    except OSError:
        return None


def read_all(descriptor: int, limit: int, expected: int = 0) -> bytes:
    """What is left to read, ``expected`` bytes if nothing has changed. Raises ``TooLargeError`` above ``limit``."""
    parts: list[bytes] = []
    size = 0
    chunk = _CHUNK if expected else _LARGE_CHUNK
    wanted = expected + 1 if expected else chunk
    while part := os.read(descriptor, min(wanted, limit + 1 - size, _MOST_AT_ONCE)):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise TooLargeError(limit)
        wanted = chunk
    return parts[0] if len(parts) == 1 else b"".join(parts)


def usable_path(path: AnyPath) -> str:
    """``path`` as text. Raises ``OSError`` for what no file can be called: a NUL, a lone surrogate."""
    name = os.fsdecode(path)
    try:
        if b"\0" not in os.fsencode(name):
            return name
    except ValueError:
        pass
    raise _no_name(path)


def _no_name(path: AnyPath) -> OSError:
    return OSError(errno.EINVAL, "no file can have this name", os.fspath(path))


def _refuse_irregular(path: AnyPath, found: os.stat_result) -> None:
    if stat.S_IFMT(found.st_mode) != stat.S_IFREG:
        raise NotRegularError(path, found.st_mode)
