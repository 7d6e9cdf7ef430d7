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
from lcc.private_files import NotRegularError, TooLargeError, read_bounded

DISK_MAX_BYTES = 4 * 1024 * 1024

_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}


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
    try:
        return DiskFile(real, read_bounded(real, DISK_MAX_BYTES, follow=False))
    except NotRegularError:
        return KEEP_DISK_NOT_REGULAR
    except TooLargeError:  # it may grow while it is read
        return KEEP_DISK_TOO_LARGE


def _inside(real: str, folder: str) -> bool:
    return real.startswith(folder if folder.endswith("/") else folder + "/")
