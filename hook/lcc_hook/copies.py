"""Files that hold what no text can show: the one it was read from, or a copy that is made here.

A copy stands where the client keeps such copies, in the session's folder ``tool-results``, which the agent may read
without asking. Imported only where a picture or a document must be kept. Runs on Python 3.8 and up.
"""

from __future__ import annotations

import binascii
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lcc_hook.live_branch import Row

SUFFIXES = {
    "application/pdf": ".pdf",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
}


def bytes_of(source: Row) -> bytes:
    """What a base64 source holds, as a file's bytes; none for one that does not carry them."""
    for key in ("data", "base64", "blob"):
        text = source.get(key)
        if isinstance(text, str):
            try:
                return binascii.a2b_base64(text)
            except ValueError:
                return b""
    return b""


def media_type(source: Row) -> str:
    """The media type that a source names, under one of the keys in use; empty where it names none."""
    for key in ("media_type", "mimeType", "type"):
        name = source.get(key)
        if isinstance(name, str) and "/" in name:
            return name
    return ""


def holds(path: str, data: bytes) -> bool:
    """Whether a regular file is there and holds exactly these bytes. Never waits for a pipe or a device."""
    if not data:
        return False
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            state = os.fstat(file.fileno())
            return stat.S_ISREG(state.st_mode) and state.st_size == len(data) and file.read(len(data) + 1) == data
    except (OSError, ValueError):
        return False


def keep_copy(folder: str, data: bytes, media: str) -> str:
    """Save the bytes under a name made of them, durable and read back, and return the path.

    Raises LookupError for no bytes and for a media type that no file can show, and OSError.
    """
    from hashlib import sha256

    if not data:
        raise LookupError("the session file does not hold it")
    if media not in SUFFIXES:
        raise LookupError(f"no file of the type {media!r} can be read again")
    path = os.path.join(folder, f"lcc-{sha256(data).hexdigest()[:16]}{SUFFIXES[media]}")
    if holds(path, data):
        return path
    os.makedirs(folder, mode=0o700, exist_ok=True)
    beside = f"{path}.{os.getpid()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError:
        os.unlink(beside)
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    if not holds(path, data):
        raise OSError(f"{path} does not read back as it was written")
    return path
