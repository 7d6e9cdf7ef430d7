"""One daemon for each user and build: its lock, its socket, its files, and how it is ended.

Where things are and who may start one is decided in hook/lcc_hook (client.py, runtime_files.py, starter.py), which
every client uses too. In the runtime folder also write: the clients (start lock, `plugin-data`), other builds' daemons.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from dataclasses import dataclass

from lcc.private_files import HeldError, read_or_none, take_lock, write_private
from lcc_hook.client import GiveUpError, SilentError, check_folder, name_of, socket_path
from lcc_hook.processes import start_of
from lcc_hook.reach import is_alive
from lcc_hook.runtime_files import file_of, make_folder, unusable
from lcc_hook.starter import BACK_OFF

BACKLOG = 1024
_SMALL_BYTES = 4096


class TakenError(Exception):
    """Another daemon of this build runs already; for whoever wanted one, that is as good."""


class StartError(Exception):
    """Why the daemon cannot run here, in one line with the way out."""


@dataclass
class Instance:
    """The one daemon of this build in ``folder``, while it holds the lock."""

    folder: bytes
    lock: int
    path: bytes
    listener: socket.socket
    inode: tuple[int, int]

    def why_lost(self) -> str | None:
        """Why this place is not ours any more; somebody may have removed the runtime folder, or what is in it."""
        if _inode(self.path) != self.inode:
            return "its socket is gone"
        return None if self._holds_place() else "its lock is gone"

    def _holds_place(self) -> bool:
        held = os.fstat(self.lock)
        return _inode(file_of(self.folder, "lock")) == (held.st_dev, held.st_ino)

    def leave(self) -> None:
        """Give the place up, with no trace of a crash: no new client finds us, and a successor may come at once.

        While our lock stands at its path there is no successor, and the files are ours. Otherwise they are left alone.
        """
        if self.lock < 0:
            return
        with contextlib.suppress(OSError):
            if self._holds_place():
                if _inode(self.path) == self.inode:
                    os.unlink(self.path)
                os.unlink(file_of(self.folder, "pid"))
        os.close(self.lock)
        self.lock = -1


def take_place(folder: bytes) -> Instance:
    """Become the daemon of ``folder``: lock, note a predecessor's crash, bind. Raises TakenError, StartError."""
    try:
        make_folder(folder)
        try:
            lock = take_lock(file_of(folder, "lock"), "the daemon's lock", seconds=0)
        except HeldError:
            raise TakenError from None
        _note_crash(folder)
        path = socket_path(folder)
        make_folder(os.path.dirname(path))
        listener = _bind(folder, path)
        _write_small(file_of(folder, "pid"), b"%d %s" % (os.getpid(), start_of(os.getpid())))
    except GiveUpError as gave:
        raise StartError(gave.say) from None
    except OSError as error:
        named = error.filename if isinstance(error.filename, str | bytes) else folder
        raise StartError(unusable(os.fsencode(named), error).say) from None
    inode = _inode(path)
    if inode is None:
        raise StartError(f"{name_of(path)} went away while it was made")
    return Instance(folder, lock, path, listener, inode)


def _bind(folder: bytes, path: bytes) -> socket.socket:
    """Listen at ``path``. What is there is removed only once a connection has been refused: then nobody listens."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise StartError(f"{name_of(path)} is no socket: move it away")
        try:
            alive = is_alive(folder)
        except SilentError:
            alive = True
        if alive:
            raise StartError(f"{name_of(path)} is served by a process that does not hold the lock: end it first")
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(BACKLOG)
    return listener


def _inode(path: bytes) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read_small(path: bytes) -> bytes:
    """A small file of ours without its final newline; empty where there is none that can be used."""
    return (read_or_none(path, _SMALL_BYTES) or b"").rstrip(b"\n")


def _write_small(path: bytes, text: bytes) -> None:
    write_private(path, text + b"\n", durable=False)  # after a power cut there is no daemon that it tells of


def _note_crash(folder: bytes) -> None:
    """A pid file that is still there was left by a daemon that did not end in good order."""
    if _read_small(file_of(folder, "pid")):
        times = _read_small(file_of(folder, "crashes")).split()[1 - BACK_OFF[0] :]
        _write_small(file_of(folder, "crashes"), b" ".join([*times, b"%.3f" % time.time()]))


# ---------------------------------------------------------------- looking at a daemon from outside


def other_sockets(folder: bytes) -> list[bytes]:
    """Sockets of other builds in the runtime folder; what only has such a name is somebody else's."""
    try:
        check_folder(folder)
        names = sorted(os.listdir(folder))
    except (OSError, GiveUpError):
        return []
    own = socket_path(folder)
    found = (folder + b"/" + name for name in names if name.startswith(b"d-") and name.endswith(b".sock"))
    return [path for path in found if path != own and _is_socket(path)]


def _is_socket(path: bytes) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def refuses(path: bytes) -> bool:
    """Whether nobody listens at ``path``."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(0.1)
    try:
        probe.connect(path)
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    except OSError:
        return False
    finally:
        probe.close()
    return False
