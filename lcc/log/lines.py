"""Files of lcc's own that grow by a line: JSON objects, one a line, private, bounded, and safe with several writers.

A line is one write to a file opened for appending, so lines of the daemon and of `lcc` never mix. A full file is set
aside under its name with ``.1``, in the place of an older one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from lcc.private_files import (
    PRIVATE_FILE,
    ForeignFileError,
    HeldError,
    NotRegularError,
    locked,
    make_private_folder,
    open_regular,
    read_bounded,
)

if TYPE_CHECKING:
    from lcc.transcript import Json

VERSION = 1
_START = b'{"v":'
"""What every line begins with: an entry's first key."""


class LogError(OSError):
    """A log cannot be written or read safely; the text names the file and what is wrong with it."""


def append_line(path: Path, entry: Mapping[str, Json], most: int) -> None:
    """Add ``entry`` to the log at ``path``, which is made with mode 0600 where it is missing.

    A file of more than ``most`` bytes is set aside first. Raises LogError where the file is a link, no plain file,
    or belongs to someone else, and where it cannot be written. A caller must not let that change its answer.
    """
    line = orjson.dumps({"v": VERSION, **entry}) + b"\n"
    try:
        make_private_folder(path.parent)
        descriptor = _open_ours(path, os.O_CREAT)
        if os.fstat(descriptor).st_size > most:
            os.close(descriptor)
            _set_aside(path, most)
            descriptor = _open_ours(path, os.O_CREAT)
        try:
            os.fchmod(descriptor, PRIVATE_FILE)
            if os.write(descriptor, line) != len(line):
                raise LogError(f"{path}: the line was written in part (is the disk full?)")
        finally:
            os.close(descriptor)
    except LogError:
        raise
    except OSError as error:
        raise LogError(f"{path}: {_words(error, 'written')}") from None


def read_lines(path: Path, most: int) -> Iterator[dict[str, Json]]:
    """The log's entries, oldest first, the file set aside before the current one. Damaged lines are left out.

    Raises LogError where a file is there and cannot be read; a missing log has no entries.
    """
    for file in (path.with_name(path.name + ".1"), path):
        try:
            content = read_bounded(file, 2 * most, follow=False, own=True)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise LogError(f"{file}: {_words(error, 'read')}") from None
        for line in content.split(b"\n"):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict) and value.get("v") == VERSION:
                yield value


def _words(error: OSError, done: str) -> str:
    if isinstance(error, NotRegularError):
        return "not a plain file"
    if isinstance(error, ForeignFileError):
        return "belongs to another user"
    return f"cannot be {done} ({error.strerror})"


def _open_ours(path: Path, flags: int = 0) -> int:
    """A descriptor of the log. Raises OSError, also for a file that holds something else than a log's lines."""
    descriptor = open_regular(path, flags=os.O_RDWR | os.O_APPEND | flags, follow=False, own=True)
    if _START.startswith(os.pread(descriptor, len(_START), 0)):
        return descriptor
    os.close(descriptor)
    raise LogError(f"{path}: some other program's file; name a folder of lcc's own in LCC_STATE_DIR")


def _set_aside(path: Path, most: int) -> None:
    """Rename a full log, unless another process does. Of two who found it full, the later would rename a new one."""
    older = path.with_name(path.name + ".1")
    with contextlib.suppress(FileNotFoundError):
        os.close(_open_ours(older))
    # Missing: another has just set it aside, and its own line comes after.
    with contextlib.suppress(HeldError, FileNotFoundError), locked(path, "the lock of a log", seconds=0):
        if path.lstat().st_size > most:
            path.replace(older)
