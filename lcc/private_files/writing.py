"""Writing a file whole or not at all, making folders, and removing what is ours from them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from types import TracebackType

from lcc.private_files.reading import AnyPath, usable_path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700

_MOST_AT_ONCE = 1 << 30  # a system may take no more than 2 GiB with one call
_MOST_OF_A_NAME = 230
_LEFT_BESIDE = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp", re.DOTALL)
_LEFT_SECONDS = 3600.0
"""A file beside its place that is older belongs to a process that was killed."""
_NO_SYNC_OF_FOLDERS = (errno.EINVAL, errno.ENOTSUP)


class Beside:
    """A file that is written beside its place and takes it whole, or not at all.

    Use it as a context: what was not committed is removed. ``mode`` are the rights of the file; ``durable`` says
    whether it must outlive a power cut, and is False only for what is worthless after one.
    """

    def __init__(self, path: AnyPath, *, mode: int = PRIVATE_FILE, durable: bool = True) -> None:
        self.path = usable_path(path)
        folder, name = os.path.split(self.path)
        self._folder = folder or "."
        # Cut in bytes: a name may be 255 of them long, however many characters that are.
        start = os.fsdecode(os.fsencode(name)[:_MOST_OF_A_NAME])
        self._beside = os.path.join(folder, f".{start}.{os.urandom(8).hex()}.tmp")
        self._mode = mode
        self._durable = durable
        self._descriptor = -1
        self._is_there = False

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def write(self, content: bytes) -> None:
        """Append ``content`` to what has been written. Raises ``OSError``."""
        if self._descriptor < 0:
            self._is_there = True  # said before it is true, so that a signal at any moment finds what to take away
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with self._named_in_errors():
                self._descriptor = os.open(self._beside, flags, PRIVATE_FILE)
        write_all(self._descriptor, content)

    def finish(self) -> None:
        """Everything is written: give the file its rights, and make its bytes last. Raises ``OSError``."""
        if self._descriptor < 0:
            self.write(b"")
        if self._mode != PRIVATE_FILE:
            os.fchmod(self._descriptor, self._mode)
        if self._durable:
            sync(self._descriptor)
        self._close()

    def commit(self) -> None:
        """Put the file in its place, and make that last. Raises ``OSError``."""
        if self._descriptor >= 0 or not self._is_there:
            self.finish()
        with self._named_in_errors():
            os.replace(self._beside, self.path)
        self._is_there = False
        if self._durable:
            sync_folder(self._folder)

    def discard(self) -> None:
        """Remove what has not been committed. Raises nothing."""
        self._close()
        if self._is_there:
            with contextlib.suppress(OSError):
                os.unlink(self._beside)
            self._is_there = False

    @contextlib.contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        """An error names the file, and not what stands beside its place."""
        try:
            yield
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from None

    def _close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def write_private(path: AnyPath, content: bytes, *, durable: bool = True) -> None:
    """Write a file (0600) in one step, its missing folders (0700) too: a reader sees the old bytes or the new.

    Raises ``OSError``; then the old file stands as it was, and nothing is left beside it.
    """
    make_private_folder(os.path.dirname(os.fsdecode(path)) or ".")
    with Beside(path, durable=durable) as file:
        file.write(content)
        file.commit()


def make_private_folder(folder: AnyPath) -> None:
    """Make ``folder`` and its missing parents, closed to others, each durable in its parent. Raises ``OSError``.

    (``os.makedirs`` gives its mode to the last one alone.) What is there already is left as it is.
    """
    path = usable_path(folder)
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")
    if parent != path:
        make_private_folder(parent)
    try:
        os.mkdir(path, PRIVATE_FOLDER)
    except FileExistsError:
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", path) from None
        return
    sync_folder(parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however often the system takes only a part. Raises ``OSError``."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view[:_MOST_AT_ONCE]) :]


def sync(descriptor: int) -> None:
    """Return only when the bytes are on the disk itself (macOS needs more than ``fsync``). Raises ``OSError``."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def sync_folder(folder: AnyPath) -> None:
    """Make the names in ``folder`` last, where the file system has such a thing. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC_OF_FOLDERS:
            raise
    finally:
        os.close(descriptor)


def remove_own(folder: AnyPath, names: re.Pattern[str], *, keep: int = 0, older_than: float = 0.0) -> None:
    """Of the regular files in ``folder`` whose whole name fits ``names``, remove all but the last ``keep`` by name.

    ``older_than`` (seconds since it was written) spares the younger ones. Whatever else is in the folder is not ours.
    What a killed process left beside the place of such a file goes too. Raises nothing: what cannot be removed stays.
    """
    with contextlib.suppress(OSError), os.scandir(os.fsdecode(folder)) as found:
        entries = list(found)
        own = sorted((entry for entry in entries if names.fullmatch(entry.name)), key=lambda entry: entry.name)
        for entry in own[: max(0, len(own) - keep)]:
            _remove_when_older(entry, older_than)
        for entry in entries:
            beside = _LEFT_BESIDE.fullmatch(entry.name)
            if beside is not None and names.fullmatch(beside[1]):
                _remove_when_older(entry, _LEFT_SECONDS)


def _remove_when_older(entry: os.DirEntry[str], seconds: float) -> None:
    with contextlib.suppress(OSError):
        is_old = time.time() - entry.stat(follow_symlinks=False).st_mtime >= seconds
        if is_old and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)
