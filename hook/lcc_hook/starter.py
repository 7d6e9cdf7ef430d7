"""Starting the daemon: one way and one winner, whoever asks, a hook or ``lcc-daemon``.

Standard library only; runs on Python 3.8 and up.
"""

import fcntl
import os
import re
import select
import signal
import time

from lcc_hook.client import BUILD, GiveUpError, SilentError, name_of
from lcc_hook.files import is_locked, modified, read_small, remove, write_small
from lcc_hook.places import programs
from lcc_hook.processes import TERM_WAIT, Watch, end_process, is_stopped
from lcc_hook.reach import is_alive
from lcc_hook.runtime_files import LOOK_AGAIN, StartLock, file_of, known_process, make_folder, unusable

HOLDER_WAIT = 3.0
"""Seconds in which a daemon that has the place and cannot be reached must show that it does something."""
BACK_OFF = (3, 60.0, 300.0)
"""After so many crashes within so many seconds, stay down for so many seconds."""
KEPT_OUTPUT = 65536
"""Bytes of what a start prints that are kept, to say why it failed."""
KEPT_VARIABLES = (b"HOME", b"PATH", b"LANG", b"TZ", b"TMPDIR", b"USER", b"LOGNAME")
KEPT_PREFIXES = (b"LC_", b"LCC_", b"XDG_")
"""What a daemon has of the session that starts it: where its own files are, and no key, proxy or judge."""


def start_daemon(folder: bytes, env: "dict[bytes, bytes]", by_hand: bool = False) -> None:
    """Have a daemon that greets: whoever comes first starts it, the others wait for that.

    ``by_hand`` is a person's own start: it ends the pause after crashes. Raises GiveUpError with the reason,
    which for those who waited is the reason of the one they waited for.
    """
    make_folder(folder)
    came = time.time()
    try:
        with StartLock(folder) as lock:
            if is_alive(folder):
                return
            failure = file_of(folder, "failure")
            if lock.waited and modified(failure) >= came:
                raise GiveUpError("start-failed", read_small(failure).decode("utf-8", "replace"))
            if by_hand:
                remove(file_of(folder, "crashes"))
            refuse_after_crashes(folder, time.time())
            try:
                while not spawn_one_of(programs(folder, env), folder, env):
                    if serves_soon(folder):
                        return
            except GiveUpError as gave:
                write_small(failure, gave.say.encode("utf-8", "replace"))
                raise
    except OSError as error:
        raise unusable(folder, error) from None


def spawn_one_of(found: "list[list[bytes]]", folder: bytes, env: "dict[bytes, bytes]") -> bool:
    """`spawn` for the first that can be started; raises the last one's GiveUpError where none can."""
    for program in found[:-1]:
        try:
            return spawn(program, folder, env)
        except GiveUpError:
            continue
    return spawn(found[-1], folder, env)


def spawn(program: "list[bytes]", folder: bytes, env: "dict[bytes, bytes]") -> bool:
    """Start the daemon detached, and wait until it says through a pipe that it is ready, or why it is not.

    False: another one has the place.
    """
    clean = {key: value for key, value in env.items() if is_kept(key)}
    clean[b"LCC_RUNTIME_DIR"] = folder
    words = [*program, b"run", b"--ready-fd", b"3", b"--build", BUILD.encode()]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    kept = os.open(file_of(folder, "output"), flags, 0o600)
    reader, writer = os.pipe()
    prints, printed = os.pipe()
    first = os.fork()
    if not first:
        detach(words, clean, writer, printed)
    os.close(writer)
    os.close(printed)
    os.waitpid(first, 0)
    answer, said = hear(reader, prints)
    # Whoever still prints now is ended by its next word: nobody keeps what has no end.
    os.close(reader)
    os.close(prints)
    os.write(kept, said)
    os.close(kept)
    last = said.decode("utf-8", "replace").strip().split("\n")[-1]
    if answer.strip() == b"ready":
        return True
    if answer.strip() == b"taken":
        return False
    reason = answer.decode("utf-8", "replace").strip() or f"the daemon ended at once: {last or 'it said nothing'}"
    raise GiveUpError("start-failed", f"{reason} (see lcc-daemon logs)")


def hear(reader: int, prints: int) -> "tuple[bytes, bytes]":
    """The start's answer, a line of the pipe ``reader``, or what there is of it at its end; and what it printed.

    Of that the last bytes are kept; all of it is taken, since a full pipe would hold the start up.
    """
    answer = said = b""
    open_ends = [reader, prints]
    while not answer.endswith(b"\n") and reader in open_ends:
        for end in select.select(open_ends, [], [])[0]:
            got = os.read(end, 65536)
            if not got:
                open_ends.remove(end)
            elif end == reader:
                answer += got
            else:
                said = (said + got)[-KEPT_OUTPUT:]
    while prints in open_ends and select.select([prints], [], [], 0)[0]:
        got = os.read(prints, 65536)
        said = (said + got)[-KEPT_OUTPUT:]
        if not got or len(said) == KEPT_OUTPUT:
            break
    return answer, said


def is_kept(key: bytes) -> bool:
    return key in KEPT_VARIABLES or key.startswith(KEPT_PREFIXES)


def detach(words: "list[bytes]", env: "dict[bytes, bytes]", writer: int, said: int) -> None:
    """In the child: become a process of its own, away from the terminal, the session and its folders."""
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.umask(0o077)
        nothing = os.open(os.devnull, os.O_RDWR)
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 4) for fd in (nothing, said, said, writer)]
        for target, fd in enumerate(high):
            os.dup2(fd, target)
        writer = 3
        os.closerange(4, max(1024, *high) + 1)
        os.execve(words[0], words, env)
    except BaseException as error:
        os.write(
            writer,
            f"{name_of(words[0])} cannot be started: {getattr(error, 'strerror', error)}\n".encode("utf-8", "replace"),
        )
    os._exit(1)


def serves_soon(folder: bytes) -> bool:
    """Another daemon has the place and is not reached: True once it is, False once the place is free.

    It is about to begin, or to end. One that does neither, and nothing at all, is ended.
    """
    known = known_process(folder)
    watch = Watch(None if known is None else known[0])
    while is_locked(file_of(folder, "lock")):
        try:
            if is_alive(folder):
                return True
        except SilentError:
            pass
        if watch.is_hung(HOLDER_WAIT):
            if known is None:
                why = "another daemon holds its place and does not serve"
                raise GiveUpError("start-failed", f"{why}: run lcc-daemon restart")
            end_process(*known, patience=0.0 if is_stopped(known[0]) else TERM_WAIT)
        time.sleep(LOOK_AGAIN)
    return False


def refuse_after_crashes(folder: bytes, now: float) -> None:
    """Stay down for a while after crash upon crash. A daemon notes its predecessor's crash when it starts."""
    count, within, pause = BACK_OFF
    words = read_small(file_of(folder, "crashes")).split()[-count:]
    times = [float(word) for word in words if re.fullmatch(rb"\d{1,12}\.\d{3}", word)]
    if len(times) == count and times[-1] - times[0] <= within and 0 <= now - times[-1] < pause:
        left = int(pause - (now - times[-1]))
        raise GiveUpError(
            "crashed",
            f"the daemon crashed {count} times within {within:.0f} s and stays down for {left} s more: "
            "see lcc-daemon logs, or run lcc-daemon start",
        )
