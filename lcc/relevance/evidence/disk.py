"""Reading the files that a proof needs, and nothing else (the seed's section 5, form `disk`).

Another process may write, replace or remove any of these files at any moment. Each is opened once for a
decision and once more right before the answer is given; a link is not followed out of its folder, and a
FIFO, device or socket is never opened, so nothing here can block.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from lcc.contract.reasons import (
    KEEP_DISK_MISSING,
    KEEP_DISK_NOT_REGULAR,
    KEEP_DISK_OUTSIDE_ROOT,
    KEEP_DISK_TOO_LARGE,
    KEEP_DISK_UNREADABLE,
    Reason,
)

DISK_MAX_BYTES = 4 * 1024 * 1024

_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class DiskFile(NamedTuple):
    """A regular file as it was when it was read: its resolved path and all of its bytes."""

    real: str
    data: bytes

    def sha256(self) -> str:
        """The digest of the bytes, 64 hex digits."""
        return hashlib.sha256(self.data).hexdigest()


def read_file(path: str) -> DiskFile | Reason:
    """The file at ``path`` (absolute), or the reason why it is no proof of anything. Never raises, never blocks."""
    if ".." in path.split("/"):
        return KEEP_DISK_OUTSIDE_ROOT
    try:
        return _read_regular(path)
    except ValueError:  # a NUL or a lone surrogate: no file can have that name
        return KEEP_DISK_MISSING
    except OSError as error:
        return KEEP_DISK_MISSING if error.errno in _MISSING else KEEP_DISK_UNREADABLE


def changed_files(digests: Iterable[tuple[str, str]]) -> set[str]:
    """Of files given as (path, sha256 at the check), the paths whose bytes are no longer those."""
    changed = set()
    for path, digest in digests:
        found = read_file(path)
        if isinstance(found, Reason) or found.sha256() != digest:
            changed.add(path)
    return changed


def _read_regular(path: str) -> DiskFile | Reason:
    named = os.lstat(path)
    real = os.path.realpath(path, strict=True)
    if stat.S_ISLNK(named.st_mode) and not _inside(real, os.path.realpath(os.path.dirname(path), strict=True)):
        return KEEP_DISK_OUTSIDE_ROOT
    if not stat.S_ISREG(os.lstat(real).st_mode):
        return KEEP_DISK_NOT_REGULAR
    descriptor = os.open(real, _OPEN_FLAGS)
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return KEEP_DISK_NOT_REGULAR
        if opened.st_size > DISK_MAX_BYTES:
            return KEEP_DISK_TOO_LARGE
        data = _read_all(descriptor, opened.st_size)
    finally:
        os.close(descriptor)
    return KEEP_DISK_TOO_LARGE if len(data) > DISK_MAX_BYTES else DiskFile(real, data)


def _read_all(descriptor: int, expected: int) -> bytes:
    """All bytes of an open regular file, one more than the limit at most (it may grow while it is read)."""
    chunks = []
    left = DISK_MAX_BYTES + 1
    want = expected + 1
    while left > 0:
        chunk = os.read(descriptor, min(want, left))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
        want = 65536
    return b"".join(chunks)


def _inside(real: str, folder: str) -> bool:
    return real.startswith(folder if folder.endswith("/") else folder + "/")
