"""One daemon for each user and build: its lock, its socket, its files, and how it is ended.

Where things are and who may start one is decided in hook/lcc_hook (client.py, starter.py), which every client
uses too. In the runtime folder also write: the clients (start lock, `plugin-data`), other builds' daemons.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import time
from dataclasses import dataclass

from lcc.private_files import HeldError, read_or_none, take_lock, write_private
from lcc_hook.client import AbsentError, GiveUpError, SilentError, check_folder, name_of, socket_path
from lcc_hook.files import is_locked
from lcc_hook.processes import start_of
from lcc_hook.starter import BACK_OFF, file_of, is_alive, make_folder

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

    def is_still_ours(self) -> bool:
        """Whether the socket's path still leads to us; somebody may have removed the runtime folder."""
        return _inode(self.path) == self.inode

    def close_door(self) -> None:
        """Take the socket away, so that no new client finds a daemon that is about to end."""
        if self.is_still_ours():
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    def leave(self) -> None:
        """The end in good order: whoever starts next finds no trace of a crash."""
        with contextlib.suppress(OSError):
            os.unlink(file_of(self.folder, "pid"))
        os.close(self.lock)


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
        listener = _bind(path)
        _write_small(file_of(folder, "pid"), b"%d %s" % (os.getpid(), start_of(os.getpid())))
    except GiveUpError as gave:
        raise StartError(gave.say) from None
    except OSError as error:
        named = error.filename if isinstance(error.filename, str | bytes) else folder
        raise StartError(f"{name_of(os.fsencode(named))}: {error.strerror}") from None
    inode = _inode(path)
    if inode is None:
        raise StartError(f"{name_of(path)} went away while it was made")
    return Instance(folder, lock, path, listener, inode)


def _bind(path: bytes) -> socket.socket:
    """Listen at ``path``. What is there is removed only once a connection has been refused: then nobody listens."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise StartError(f"{name_of(path)} is no socket: move it away")
        try:
            alive = is_alive(path)
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


def is_held(folder: bytes, kind: str) -> bool:
    """Whether somebody holds the lock file ``kind`` (`lock`: a daemon's life; `start`: a start under way)."""
    return is_locked(file_of(folder, kind))


def process_on_file(folder: bytes) -> tuple[int, bytes] | None:
    """The daemon's process number and its start as its pid file says, when such a process really runs."""
    number, _, began = _read_small(file_of(folder, "pid")).partition(b" ")
    if not number.isdigit() or not began or start_of(int(number)) != began:
        return None
    return int(number), began


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


__all__ = [
    "AbsentError",
    "Instance",
    "StartError",
    "TakenError",
    "is_held",
    "other_sockets",
    "process_on_file",
    "refuses",
    "take_place",
]
