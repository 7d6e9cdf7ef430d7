"""The stash's folder: where it is, whether it is safe to use, its lock, and writes that last.

Other lcc processes of the same user work in the folder at the same time; nobody else may write in it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
_POLL_SECONDS = 0.01


class StashFolderError(PermissionError):
    """The folder cannot be used safely, or told. The message names it and the way out."""

    def __str__(self) -> str:
        where = f"{self.filename}: " if self.filename else ""
        return f"{where}{self.strerror}"


def stash_folder(env: Mapping[str, str] | None = None) -> Path:
    """The user's stash: ``$LCC_STASH_DIR``, else the configuration's ``stash_dir``, else below the data folder.

    The data folder is ``$XDG_DATA_HOME`` where that is absolute, as the XDG specification asks, else
    ``~/.local/share``. Raises ``StashFolderError`` when the configuration file cannot be used.
    """
    from lcc.config import ConfigError, load_config

    env = os.environ if env is None else env
    override = env.get("LCC_STASH_DIR")
    if override:
        return Path(override).expanduser().absolute()
    try:
        configured = load_config(env).stash_dir
    except ConfigError as error:
        raise StashFolderError(errno.EINVAL, f"{error}; mend it; lcc doctor shows what is set") from None
    if configured:
        return Path(configured)
    data_home = env.get("XDG_DATA_HOME", "")
    base = Path(data_home) if data_home.startswith("/") else Path(env.get("HOME") or "~").expanduser() / ".local/share"
    return base / "lcc" / "stash"


def check_folder(folder: Path) -> None:
    """Refuse a folder that is another user's, or that others may write in. Rights are never changed here.

    Raises ``FileNotFoundError`` when there is none, ``NotADirectoryError`` for a file in its place, and
    ``StashFolderError`` for one that is not safe.
    """
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(folder))
    if found.st_uid != os.geteuid():
        raise StashFolderError(
            errno.EACCES,
            f"the folder belongs to user {found.st_uid}; set LCC_STASH_DIR to a folder of your own",
            str(folder),
        )
    if found.st_mode & 0o022:
        raise StashFolderError(
            errno.EACCES,
            f"others may write in the folder (mode {stat.S_IMODE(found.st_mode):o}); "
            "run chmod go-w on it, or set LCC_STASH_DIR to another",
            str(folder),
        )


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its missing parents, private, each durable in its parent; then check it."""
    try:
        check_folder(folder)
        return
    except FileNotFoundError:
        pass
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        try:
            each.mkdir(mode=PRIVATE_FOLDER)
        except FileExistsError:
            continue
        flush_folder(each.parent)
    check_folder(folder)


def flush(descriptor: int) -> None:
    """Return only when the file's bytes are on the disk itself (macOS needs more than ``fsync``)."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(descriptor, full)
            return
        except OSError:
            pass
    os.fsync(descriptor)


def flush_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, however often the system takes only a part."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def locked(folder: Path, *, exclusive: bool, seconds: float) -> Iterator[None]:
    """Hold the stash's lock. Writers share it; gc takes it alone while it deletes.

    The kernel releases it when the holder dies, however it dies. Raises ``TimeoutError`` after ``seconds``,
    so that a stopped process never makes another one hang.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / "lock", flags, PRIVATE_FILE)
    try:
        _acquire(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, seconds, folder)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, kind: int, seconds: float, folder: Path) -> None:
    give_up = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= give_up:
                raise TimeoutError(
                    errno.ETIMEDOUT, "another lcc process holds the stash's lock", str(folder / "lock")
                ) from None
            time.sleep(_POLL_SECONDS)
