"""The stash's folder: where it is, whether it is safe to use, and its lock.

Other lcc processes of the same user work in the folder at the same time; nobody else may write in it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from lcc import private_files
from lcc.folders import named_place, xdg_folder


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
        return named_place(override, env)
    try:
        configured = load_config(env).stash_dir
    except ConfigError as error:
        raise StashFolderError(errno.EINVAL, f"{error}; mend it; lcc doctor shows what is set") from None
    if configured:
        return Path(configured)
    return xdg_folder(env, "XDG_DATA_HOME", ".local/share") / "lcc" / "stash"


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
    private_files.make_private_folder(folder)
    check_folder(folder)


def locked(folder: Path, *, exclusive: bool, seconds: float) -> AbstractContextManager[None]:
    """Hold the stash's lock. Writers share it; gc takes it alone while it deletes.

    The kernel releases it when the holder dies, however it dies. Raises ``TimeoutError`` after ``seconds``,
    so that a stopped process never makes another one hang.
    """
    return private_files.locked(folder / "lock", "the stash's lock", seconds=seconds, exclusive=exclusive)
