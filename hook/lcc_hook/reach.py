"""Reaching a daemon that has the place: waiting for one that is slow, and ending one that hangs.

Standard library only; runs on Python 3.8 and up.
"""

import time

from lcc_hook.client import AbsentError, GiveUpError, SilentError, connect, greet, socket_path
from lcc_hook.processes import TERM_WAIT, Watch, end_process, is_stopped, peer_pid, start_of
from lcc_hook.runtime_files import LOOK_AGAIN, StartLock, known_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

SECOND_WAIT = 2.0
"""Seconds in which a silent daemon must show that it does something, unless the system says that it is stopped."""


def call(folder: bytes) -> "_socket.socket":
    """A line on which the daemon has greeted. Raises AbsentError where there is none, SilentError where it is hung."""
    try:
        line = connect(socket_path(folder))
        greet(line)
    except SilentError as silent:
        woken = wakes_up(silent, folder)
        if woken is None:
            raise
        return woken
    return line


def is_alive(folder: bytes) -> bool:
    """Whether a daemon of our build greets. Raises SilentError where one listens and is hung."""
    try:
        call(folder).close()
    except AbsentError:
        return False
    return True


def wakes_up(silent: SilentError, folder: bytes) -> "_socket.socket | None":
    """A greeted line to a silent daemon, if it greets after all; None where it is hung.

    On a machine with too much to do a daemon is slow, and must not be ended for it: while it works, or waits for
    a processor, it is waited for, and the alarm ends that. Raises AbsentError where it let go of the line.
    """
    pid = process_of(silent, folder)
    watch = Watch(pid)
    while not is_stopped(pid):
        try:
            return greeted(silent.line, folder, SECOND_WAIT)
        except SilentError:
            if watch.is_hung(SECOND_WAIT):
                break
    return None


def greeted(line: "_socket.socket | None", folder: bytes, seconds: float) -> "_socket.socket":
    """``line``, or a new one, once the daemon has greeted on it. Raises SilentError where it does not within that."""
    if line is None:
        until = time.monotonic() + seconds
        while line is None:
            try:
                line = connect(socket_path(folder))
            except SilentError:
                if time.monotonic() > until:
                    raise
                time.sleep(LOOK_AGAIN)
    greet(line, seconds)
    return line


def process_of(silent: SilentError, folder: bytes) -> "int | None":
    """The process that listens and does not greet."""
    if silent.line is not None:
        return peer_pid(silent.line)
    known = known_process(folder)
    return None if known is None else known[0]


def end_hung(folder: bytes, silent: SilentError) -> None:
    """End a daemon that does not answer, once it is sure which process it is: number and start time are known.

    One that answers others meanwhile is not hung, whatever became of our own line to it.
    """
    pid = process_of(silent, folder)
    with StartLock(folder):
        if pid is not None and not start_of(pid):
            return  # somebody else has ended it
        if not is_stopped(pid) and answers_others(folder):
            return
        known = known_process(folder)
        if known is None or known[0] != pid:
            raise GiveUpError("unresponsive", "the daemon does not answer: run lcc-daemon restart")
        # A stopped process hears no SIGTERM.
        if not end_process(*known, patience=0.0 if is_stopped(pid) else TERM_WAIT):
            raise GiveUpError("unresponsive", f"the daemon (pid {pid}) does not answer and cannot be ended")


def answers_others(folder: bytes) -> bool:
    """Whether a daemon greets somebody who comes now, or is gone; for one that is silent to us."""
    try:
        greeted(None, folder, 1.0).close()
    except SilentError:
        return False
    except AbsentError:
        pass
    return True
