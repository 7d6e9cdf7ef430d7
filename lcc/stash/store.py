"""Putting bytes into the stash, and getting exactly those bytes back."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lcc.stash.folder import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    flush,
    flush_folder,
    locked,
    make_folder,
    write_all,
)
from lcc.stash.objects import (
    MIN_ID_LENGTH,
    DamagedObjectError,
    StashError,
    is_whole_id,
    object_path,
    packed,
    read_object,
)
from lcc.stash.references import UNNAMED_SESSION, append_references

_ID = re.compile(rf"[0-9a-f]{{{MIN_ID_LENGTH},64}}")
WRITE_LOCK_SECONDS = 2.0  # gc holds the lock for milliseconds; longer means that its process is stopped
_BATCH = 64  # files held open at once while a batch is flushed
_counter = itertools.count()


class UnknownObjectError(StashError):
    """There is no object with that id, or the id is not one."""


class AmbiguousObjectError(StashError):
    """The id is the beginning of more than one object's."""


class Stored(NamedTuple):
    """One object that is durable: its address, its size in bytes, and whether this call wrote it."""

    sha256: str
    size: int
    new: bool


class Entry(NamedTuple):
    """One object as the folder shows it: the bytes it takes on disk, and when it was last put."""

    sha256: str
    stored_bytes: int
    modified_ns: int


def bytes_of_text(text: str) -> bytes:
    """UTF-8; a lone surrogate, which a transcript can hold, is kept as it is."""
    return text.encode("utf-8", "surrogatepass")


def text_of_bytes(content: bytes) -> str | None:
    """The text that ``bytes_of_text`` made ``content`` from; None when it is not text."""
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Stash:
    """The stash in ``folder``, used on behalf of ``session``, whose notes stand in the file ``source``.

    Building one touches nothing. The session and its file tell gc which notes are still alive; without a
    file, the session's objects are kept for a fixed time.
    """

    folder: Path
    session: str = UNNAMED_SESSION
    source: str | None = None

    def put(self, content: bytes) -> Stored:
        """Store ``content``; when this returns, it is durable and has been read back equal.

        Raises ``OSError`` when it cannot be stored (full disk, read-only folder, unsafe folder, too large).
        """
        outcome = self.put_many([content])[0]
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def put_many(self, contents: Sequence[bytes]) -> list[Stored | OSError]:
        """As ``put`` for several at once, flushed together: an outcome for each, in order. Raises nothing."""
        outcomes: list[Stored | OSError] = []
        try:
            for folder in (self.folder, self.folder / "objects", self.folder / "refs"):
                make_folder(folder)
            with locked(self.folder, exclusive=False, seconds=WRITE_LOCK_SECONDS):
                for start in range(0, len(contents), _BATCH):
                    outcomes += self._put_batch(contents[start : start + _BATCH])
                stored = [each.sha256 for each in outcomes if isinstance(each, Stored)]
                if stored:
                    append_references(self.folder, self.session, self.source, dict.fromkeys(stored), time.time())
        except OSError as error:
            return [error] * len(contents)
        return outcomes

    def reference(self, shas: Sequence[str]) -> None:
        """Record that this session's notes name ``shas`` too (a fork takes over its parent's notes).

        Raises ``OSError``, or ``UnknownObjectError`` for one that is not there.
        """
        if not shas:
            return
        make_folder(self.folder / "refs")
        with locked(self.folder, exclusive=False, seconds=WRITE_LOCK_SECONDS):
            for sha in shas:
                try:
                    os.utime(object_path(self.folder, sha))
                except FileNotFoundError:
                    raise self._unknown(sha) from None
            append_references(self.folder, self.session, self.source, shas, time.time())

    def get(self, object_id: str) -> bytes:
        """The bytes of the object whose id begins with ``object_id`` (12 to 64 hex digits), proven by sha256.

        Raises a ``StashError`` of its kind, or ``OSError`` when the file cannot be read.
        """
        sha256 = self.resolve(object_id)
        try:
            return read_object(object_path(self.folder, sha256), sha256)
        except FileNotFoundError:
            raise self._unknown(object_id) from None

    def resolve(self, object_id: str) -> str:
        """The full sha256 for an id of 12 or more hex digits. Raises as ``get``."""
        wanted = object_id.strip().lower()
        if not _ID.fullmatch(wanted):
            raise UnknownObjectError(
                object_id, f"{object_id!r} is not an id: give the {MIN_ID_LENGTH} to 64 hex digits of the note"
            )
        if is_whole_id(wanted):
            return wanted
        found = [name for name in self._names(wanted[:2]) if name.startswith(wanted[2:])]
        if len(found) > 1:
            ids = ", ".join(wanted[:2] + name for name in sorted(found))
            raise AmbiguousObjectError(object_id, f"{object_id} fits {len(found)} objects; give more digits: {ids}")
        if not found:
            raise self._unknown(object_id)
        return wanted[:2] + found[0]

    def entries(self) -> Iterator[Entry]:
        """Every object, folder by folder. One that is collected meanwhile is passed over."""
        for prefix in (name for name in _names_in(self.folder / "objects") if len(name) == 2):
            with os.scandir(self.folder / "objects" / prefix) as found:
                for each in found:
                    if not is_whole_id(prefix + each.name):
                        continue
                    try:
                        status = each.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    yield Entry(prefix + each.name, status.st_size, status.st_mtime_ns)

    def _names(self, prefix: str) -> list[str]:
        return [name for name in _names_in(self.folder / "objects" / prefix) if len(name) == 62]

    def _unknown(self, object_id: str) -> UnknownObjectError:
        return UnknownObjectError(
            object_id,
            f"the stash in {self.folder} has no object {object_id}: it was collected, or LCC_STASH_DIR is not "
            "what it was at the compaction",
        )

    def _put_batch(self, contents: Sequence[bytes]) -> list[Stored | OSError]:
        """Write beside, flush all, rename all, flush the folders, read all back. Under the shared lock."""
        writing = _Batch(self.folder)
        try:
            written = [writing.try_write(content) for content in contents]
            writing.finish()
        except OSError as error:
            return [error] * len(contents)
        finally:
            writing.abandon()
        return [
            each if isinstance(each, OSError) else _read_back(self.folder, content, *each)
            for content, each in zip(contents, written, strict=True)
        ]


class _Batch:
    """A few objects on their way to the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending: dict[str, tuple[int, Path]] = {}
        self._folders: set[Path] = set()

    def try_write(self, content: bytes) -> tuple[str, bool] | OSError:
        """Write ``content`` beside its place, unless it is there whole already; its sha256, and whether it is new."""
        try:
            return self._write(content)
        except OSError as error:
            return error

    def _write(self, content: bytes) -> tuple[str, bool]:
        sha256 = hashlib.sha256(content).hexdigest()
        path = object_path(self._folder, sha256)
        if sha256 in self._pending:
            return sha256, False
        if _is_whole(path, sha256):
            # The process that wrote it may not have flushed it yet; and gc goes by the time of the last put.
            self._adopt(path)
            return sha256, False
        stored = packed(content)
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(mode=PRIVATE_FOLDER)
        beside = path.with_name(f".{sha256[:12]}-{os.getpid()}-{next(_counter)}.tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(beside, flags, PRIVATE_FILE)
        try:
            write_all(descriptor, stored)
        except OSError:
            os.close(descriptor)
            beside.unlink(missing_ok=True)
            raise
        self._pending[sha256] = (descriptor, beside)
        self._folders |= {path.parent, path.parent.parent}
        return sha256, True

    def finish(self) -> None:
        """Flush what was written, give it its name, and flush the names."""
        for descriptor, _ in self._pending.values():
            flush(descriptor)
        for sha256, (_, beside) in self._pending.items():
            beside.replace(object_path(self._folder, sha256))
        for folder in self._folders:
            flush_folder(folder)

    def abandon(self) -> None:
        """Close everything, and remove what did not get its name."""
        for descriptor, beside in self._pending.values():
            os.close(descriptor)
            beside.unlink(missing_ok=True)

    def _adopt(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.utime(descriptor)
            flush(descriptor)
        finally:
            os.close(descriptor)
        self._folders.add(path.parent)


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        read_object(path, sha256)
    except (FileNotFoundError, DamagedObjectError):
        return False
    return True


def _read_back(folder: Path, content: bytes, sha256: str, new: bool) -> Stored | OSError:
    try:
        if read_object(object_path(folder, sha256), sha256) == content:
            return Stored(sha256, len(content), new)
    except OSError as error:
        return error
    except DamagedObjectError as error:
        return OSError(errno.EIO, str(error))
    return OSError(errno.EIO, f"the object {sha256[:12]} was not read back as it was written")


def _names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return sorted(each.name for each in found)
    except FileNotFoundError:
        return []
