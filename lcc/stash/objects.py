"""One object on disk: its file's form, and reading it so that nothing but the stored bytes is returned."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import zlib
from pathlib import Path

MAX_OBJECT_BYTES = 64 * 1024 * 1024
MIN_ID_LENGTH = 12
_MAGIC = b"LCS1"
_SIZE = slice(4, 12)  # of the content, big-endian
_CHECK = slice(12, 16)  # CRC-32 of what follows: deflate has bits that its own checksum does not cover
_HEADER = 16
_LEVEL = 3  # half of the time of zlib's default for a few percent more bytes
_WHOLE_ID = re.compile(r"[0-9a-f]{64}")


class StashError(Exception):
    """What went wrong with an object, in words for the user. ``object_id`` is the id that was asked for."""

    def __init__(self, object_id: str, problem: str) -> None:
        super().__init__(problem)
        self.object_id = object_id


class DamagedObjectError(StashError):
    """The object's file does not hold the bytes that were stored."""


def is_whole_id(value: str) -> bool:
    """Whether ``value`` is a full sha256 in lower-case hex."""
    return _WHOLE_ID.fullmatch(value) is not None


def object_path(folder: Path, sha256: str) -> Path:
    """Where the object ``sha256`` stands below the stash's folder."""
    return folder / "objects" / sha256[:2] / sha256[2:]


def packed(content: bytes) -> bytes:
    """The file's bytes for ``content``. Raises ``OSError`` (EFBIG) above ``MAX_OBJECT_BYTES``."""
    if len(content) > MAX_OBJECT_BYTES:
        raise OSError(errno.EFBIG, f"larger than the stash's limit of {MAX_OBJECT_BYTES} bytes")
    body = zlib.compress(content, _LEVEL)
    return _MAGIC + len(content).to_bytes(8, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def read_object(path: Path, sha256: str) -> bytes:
    """The stored bytes, proven by their sha256.

    Raises ``FileNotFoundError`` when there is none, ``DamagedObjectError`` when what is there is something else.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _damaged(path, sha256, "its file is not a regular file")
        stored = file.read(MAX_OBJECT_BYTES + 1024 * 1024)
    return _unpacked(path, sha256, stored)


def _unpacked(path: Path, sha256: str, stored: bytes) -> bytes:
    if len(stored) < _HEADER or not stored.startswith(_MAGIC):
        raise _damaged(path, sha256, "its file has no valid header")
    size = int.from_bytes(stored[_SIZE], "big")
    if size > MAX_OBJECT_BYTES:
        raise _damaged(path, sha256, "its header names an impossible size")
    if zlib.crc32(stored[_HEADER:]) != int.from_bytes(stored[_CHECK], "big"):
        raise _damaged(path, sha256, "its compressed bytes have changed")
    unpacker = zlib.decompressobj()
    try:
        # One byte more than stated is enough to see a lie, and bounds what a forged file can unpack to.
        content = unpacker.decompress(stored[_HEADER:], size + 1)
    except zlib.error:
        raise _damaged(path, sha256, "its bytes cannot be decompressed") from None
    if len(content) != size or not unpacker.eof or unpacker.unused_data:
        raise _damaged(path, sha256, "its file is cut off or too long")
    if hashlib.sha256(content).hexdigest() != sha256:
        raise _damaged(path, sha256, "its bytes do not have the sha256 that names them")
    return content


def _damaged(path: Path, sha256: str, how: str) -> DamagedObjectError:
    return DamagedObjectError(sha256, f"the object {sha256[:12]} is damaged: {how} ({path}). It is not returned.")
