"""Reading what a command is given, and writing what it makes.

Who else writes these files: a client appends to a session while it is read, so a file is read once and what
was read is what counts. Files that a command writes are its own: each is written beside its place under a
name of its own, synced, and then renamed over it, so that whoever looks finds the old file or the new one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from pathlib import Path
from types import TracebackType

MAX_INPUT_BYTES = 1 << 30
STREAM = "-"

written: list[str] = []
"""The files that this process has put in their places, for whoever stops it and asks what was changed."""

_CHUNK = 1 << 20
_PRIVATE = 0o600
_SESSION_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class InputError(Exception):
    """Something named on the command line that cannot be used: exit 2."""


class WriteError(Exception):
    """A file that could not be written although it was named well: exit 1."""


def read_input(name: str, limit: int = MAX_INPUT_BYTES) -> bytes:
    """The bytes of a regular file, or of standard input for ``-``. Never waits on a pipe or device by name.

    Raises ``InputError`` for what is missing, no regular file, not readable or longer than ``limit``.
    """
    if name == STREAM:
        return _read_stdin(limit)
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise InputError(f"{name}: {_words(error)}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise InputError(f"{name}: {what}; to read a pipe, give it as standard input and name it -")
        if status.st_size > limit:
            raise InputError(f"{name}: {status.st_size:,} bytes, and the limit is {limit:,}")
        return _read_all(handle, limit, name, status.st_size)
    except OSError as error:
        raise InputError(f"{name}: {_words(error)}") from None
    finally:
        os.close(handle)


def named_session(name: str) -> str:
    """The file of the session that has the id ``name``, among the client's; ``name`` itself where it is no such id.

    A file of that very name comes first. The client keeps a session in the folder of one project.
    """
    if not _SESSION_ID.fullmatch(name) or os.path.lexists(name):
        return name
    from lcc.sessions.listing import config_folder

    found = sorted((config_folder(os.environ) / "projects").glob(f"*/{name}.jsonl"))
    if not found:
        raise InputError(f"{name}: neither a file nor the id of a session of Claude Code; see lcc sessions")
    if len(found) > 1:
        raise InputError(f"{name}: sessions of {len(found)} projects have this id; name the file: {found[0]}, …")
    return str(found[0])


def _read_stdin(limit: int) -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("-: there is no standard input")
    if sys.stdin.isatty():
        raise InputError("-: standard input is a terminal; pipe the file in, or name it")
    return _read_all(sys.stdin.fileno(), limit, STREAM, 0)


def _read_all(handle: int, limit: int, name: str, expected: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    # One byte more than stat told, so that the end of an unchanged file is seen with the first read.
    wanted = max(expected + 1, _CHUNK)
    while part := os.read(handle, min(wanted, 1 << 30)):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise InputError(f"{name}: more than {limit:,} bytes")
        wanted = _CHUNK
    return parts[0] if len(parts) == 1 else b"".join(parts)


class OutputFile:
    """A file to be written whole or not at all. Opening it proves that it can be written; it is no file yet.

    A new file is private (0600); one that is replaced keeps its rights. A link is followed, so that the file
    it names is replaced and the link stays. Use as a context: what was written and not committed is removed.
    """

    def __init__(self, name: str, option: str) -> None:
        self.name = name
        self._mode = _PRIVATE
        self._beside: Path | None = None
        self._nowhere = False
        try:
            self.path = Path(os.path.realpath(name))
            status = os.stat(self.path)
        except FileNotFoundError:
            status = None
        except (OSError, ValueError) as error:
            raise InputError(f"{option} {name}: {_words(error)}") from None
        if status is not None and str(self.path) == os.devnull and stat.S_ISCHR(status.st_mode):
            self._nowhere = True  # what is written there is gone at once, and the device stays as it is
            return
        if status is not None:
            if not stat.S_ISREG(status.st_mode):
                what = "a folder; name a file in it" if stat.S_ISDIR(status.st_mode) else "not a regular file"
                raise InputError(f"{option} {name}: {what}; for standard output name it -")
            self._mode = stat.S_IMODE(status.st_mode)
        folder = self.path.parent
        if not folder.is_dir():
            raise InputError(f"{option} {name}: there is no folder {folder}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{option} {name}: the folder {folder} cannot be written to")

    def same_as(self, other: str | Path) -> bool:
        """Whether ``other`` is this very file, by whatever name."""
        try:
            return os.path.samefile(self.path, other)
        except (OSError, ValueError):
            return os.path.realpath(other) == str(self.path)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._discard()

    def write(self, content: bytes) -> None:
        """Writes ``content`` beside the file and syncs it. Called again, it replaces what was written."""
        self._discard()
        if self._nowhere:
            return
        try:
            # Named before it is made, so that a signal at any moment finds what there is to take away.
            self._beside = self.path.with_name(f".{self.path.name[:100]}.{secrets.token_hex(8)}.part")
            handle = os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
            with open(handle, "wb", buffering=0) as file:
                view = memoryview(content)
                while view:
                    view = view[file.write(view[: 1 << 30]) :]
                os.fchmod(file.fileno(), self._mode)
                os.fsync(file.fileno())
        except OSError as error:
            self._discard()
            raise WriteError(f"{self.name}: {_words(error)}; nothing was changed") from None

    def commit(self) -> None:
        """Puts what was written in the file's place, and makes that last."""
        if self._nowhere:
            return
        if self._beside is None:
            raise ValueError(f"{self.name}: nothing was written")
        try:
            written.append(self.name)
            os.replace(self._beside, self.path)
            self._beside = None
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise WriteError(f"{self.name}: {_words(error)}") from None

    def _discard(self) -> None:
        if self._beside is not None:
            with contextlib.suppress(OSError):
                self._beside.unlink()
            self._beside = None


def _words(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.ENXIO:
        return "not a regular file"
    return (error.strerror or str(error)).lower()
