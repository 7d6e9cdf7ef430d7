"""Reading what a command is given, and writing what it makes.

Who else writes these files: a client appends to a session while it is read, so a file is read once and what
was read is what counts. Files that a command writes are its own: each is written beside its place under a
name of its own, synced, and then renamed over it, so that whoever looks finds the old file or the new one.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from types import TracebackType

from lcc.private_files import PRIVATE_FILE, Beside, NotRegularError, TooLargeError, read_all, read_bounded

MAX_INPUT_BYTES = 1 << 30
STREAM = "-"

written: list[str] = []
"""The files that this process has put in their places, for whoever stops it and asks what was changed."""

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
        return read_bounded(name, limit)
    except NotRegularError as error:
        what = "a folder" if error.kind == "a folder" else "not a regular file"
        raise InputError(f"{name}: {what}; to read a pipe, give it as standard input and name it -") from None
    except TooLargeError as error:
        known = f"{error.size:,} bytes, and the limit is {limit:,}" if error.size else f"more than {limit:,} bytes"
        raise InputError(f"{name}: {known}") from None
    except OSError as error:
        raise InputError(f"{name}: {_words(error)}") from None


def named_session(name: str) -> str:
    """The file of the session that has the id ``name``, among the client's; ``name`` itself where it is no such id.

    A file of that very name comes first. The client keeps a session in the folder of one project; a copy of the
    profile has it too, and then the first profile counts, which is this shell's.
    """
    if not _SESSION_ID.fullmatch(name) or os.path.lexists(name):
        return name
    from lcc.client_folders import project_folders

    found = [path for folder in project_folders(os.environ) if (path := folder / f"{name}.jsonl").is_file()]
    if not found:
        raise InputError(f"{name}: neither a file nor the id of a session of Claude Code; see lcc sessions")
    found = [path for path in found if path.parents[1] == found[0].parents[1]]
    if len(found) > 1:
        raise InputError(f"{name}: sessions of {len(found)} projects have this id; name the file: {found[0]}, …")
    return str(found[0])


def _read_stdin(limit: int) -> bytes:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("-: there is no standard input")
    if sys.stdin.isatty():
        raise InputError("-: standard input is a terminal; pipe the file in, or name it")
    try:
        return read_all(sys.stdin.fileno(), limit)
    except TooLargeError:
        raise InputError(f"{STREAM}: more than {limit:,} bytes") from None
    except OSError as error:
        raise InputError(f"{STREAM}: {_words(error)}") from None


class OutputFile:
    """A file to be written whole or not at all. Opening it proves that it can be written; it is no file yet.

    A new file is private (0600); one that is replaced keeps its rights. A link is followed, so that the file
    it names is replaced and the link stays. Use as a context: what was written and not committed is removed.
    """

    def __init__(self, name: str, option: str) -> None:
        self.name = name
        self._mode = PRIVATE_FILE
        self._beside: Beside | None = None
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
            self._beside = Beside(self.path, mode=self._mode)
            self._beside.write(content)
            self._beside.finish()
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
            self._beside.commit()
            self._beside = None
        except OSError as error:
            raise WriteError(f"{self.name}: {_words(error)}") from None

    def _discard(self) -> None:
        if self._beside is not None:
            self._beside.discard()
            self._beside = None


def _words(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    return (error.strerror or str(error)).lower()
