"""What the hook client does when no daemon answers: start one, end a hung one, say what is missing.

Loaded by ``client.py`` only then, and used by ``lcc-daemon`` too, so that there is one way to start a daemon and
one winner, whoever asks. Standard library only; runs on Python 3.8 and up.
"""

import fcntl
import os
import re
import signal
import time

from lcc_hook.client import (
    BUILD,
    PROTOCOL,
    AbsentError,
    GiveUpError,
    SilentError,
    arm,
    ask,
    check_folder,
    connect,
    greet,
    name_of,
    runtime_folder,
    socket_path,
)
from lcc_hook.files import is_locked, modified, read_small, remove, write_small
from lcc_hook.places import programs
from lcc_hook.processes import (
    TERM_WAIT,
    Watch,
    end_process,
    is_ours,
    is_stopped,
    lock_holder,
    peer_pid,
    start_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

SECOND_WAIT = 2.0
"""Seconds in which a silent daemon must show that it does something, unless the system says that it is stopped."""
HOLDER_WAIT = 3.0
"""The same, for one that has the place and cannot be reached."""
LOOK_AGAIN = 0.03
BACK_OFF = (3, 60.0, 300.0)
"""After so many crashes within so many seconds, stay down for so many seconds."""
STARTING_COMMANDS = ("compact", "session-start", "pre-compact", "allow-recall")
"""The others only tell something to a daemon that runs: none is started to hear that a session has ended."""
KEPT_VARIABLES = (b"HOME", b"PATH", b"LANG", b"TZ", b"TMPDIR", b"USER", b"LOGNAME")
KEPT_PREFIXES = (b"LC_", b"LCC_", b"XDG_")
"""What a daemon has of the session that starts it: where its own files are, and no key, proxy or judge."""


def serve(
    command: str,
    folder: bytes,
    env: "dict[bytes, bytes]",
    header: bytes,
    chunks: "list[bytes]",
    silent: "SilentError | None",
    budget: float,
) -> "tuple[str, bytes | bytearray]":
    """Finish a call that no daemon answered, within ``budget`` seconds. ``silent``: one is there and does not greet."""
    if command not in STARTING_COMMANDS:
        return "", b""
    words = b""
    if command == "session-start":
        from lcc_hook.environment import prepare

        make_folder(folder)
        words = prepare(folder, env)
        if not any(b'"compact"' in chunk for chunk in chunks):  # only then does the session wait for an answer
            if leave_to_a_child():
                return "", words
            arm(4 * budget)
    line = None
    if silent is not None:
        try:
            line = wakes_up(silent, folder)
            if line is None:
                end_hung(folder, silent)
        except AbsentError:  # it let go of the line, or somebody else has ended it
            pass
    if line is None:
        start_daemon(folder, env)
        line = greeted(None, folder, budget)  # the alarm ends it before
    if command != "session-start":
        from lcc_hook.environment import begin_quietly

        begin_quietly(folder, env)
    say, body = ask(line, header, chunks, env)
    return say, body or words


def leave_to_a_child() -> bool:
    """Go on in a process of its own. True in the one that Claude Code waits for, which is done."""
    if os.fork():
        return True
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    return False


def set_up(env: "dict[bytes, bytes]") -> bytes:
    """What a session start does where a daemon runs without the environment that it should have."""
    from lcc_hook.environment import prepare

    return prepare(runtime_folder(env), env)


# ---------------------------------------------------------------- starting


class StartLock:
    """Held by the one who starts, or ends, the daemon. ``waited``: someone else held it when we came.

    It is waited for ``patience`` seconds, and not at all while its holder is stopped: it only keeps starts in order,
    and that there is one daemon is seen to by the daemon's own lock.
    """

    def __init__(self, folder: bytes, patience: float = 3600.0) -> None:
        path = file_of(folder, "start")
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        self.waited = False
        until = time.monotonic() + patience
        while not self.is_taken():
            self.waited = True
            if time.monotonic() > until or is_stopped(lock_holder(path)):
                break
            time.sleep(LOOK_AGAIN)

    def is_taken(self) -> bool:
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __enter__(self) -> "StartLock":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def file_of(folder: bytes, kind: str) -> bytes:
    """A file of this build's daemon in the runtime folder: ``lock``, ``start``, ``pid``, ``crashes`` …"""
    return b"%s/d-%d-%s.%s" % (folder, PROTOCOL, BUILD.encode(), kind.encode())


def make_folder(folder: bytes) -> None:
    """Make a private folder and its missing parents, private too, and check it. What was there keeps its rights."""
    try:
        check_folder(folder)
        return
    except FileNotFoundError:
        pass
    before = os.umask(0o077)
    try:
        os.makedirs(folder, 0o700)  # that mode is the last one's alone: the others have the mask's
    except FileExistsError:
        pass
    except OSError as error:
        raise unusable(folder, error) from None
    finally:
        os.umask(before)
    check_folder(folder)


def unusable(folder: bytes, error: OSError) -> GiveUpError:
    """Why nothing can be done in the runtime folder, with the way out."""
    why = f"{name_of(folder)} cannot be used: {error.strerror or error}"
    return GiveUpError("runtime-folder", f"{why}; mend it, or set LCC_RUNTIME_DIR to a folder of yours")


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


def is_alive(folder: bytes) -> bool:
    """Whether a daemon of our build greets. Raises SilentError where one listens and is hung."""
    try:
        call(folder).close()
    except AbsentError:
        return False
    return True


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


def spawn(program: "list[bytes]", folder: bytes, env: "dict[bytes, bytes]") -> bool:
    """Start the daemon detached, and wait until it says through a pipe that it is ready, or why it is not.

    False: another one has the place.
    """
    clean = {key: value for key, value in env.items() if is_kept(key)}
    clean[b"LCC_RUNTIME_DIR"] = folder
    words = [*program, b"run", b"--ready-fd", b"3", b"--build", BUILD.encode()]
    reader, writer = os.pipe()
    said = os.open(file_of(folder, "output"), os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    first = os.fork()
    if not first:
        detach(words, clean, writer, said)
    os.close(writer)
    os.waitpid(first, 0)
    answer = b""
    while not answer.endswith(b"\n"):
        got = os.read(reader, 4096)
        if not got:
            break
        answer += got
    os.close(reader)
    last = os.pread(said, 65536, 0).decode("utf-8", "replace").strip().split("\n")[-1]
    os.close(said)
    if answer.strip() == b"ready":
        return True
    if answer.strip() == b"taken":
        return False
    reason = answer.decode("utf-8", "replace").strip() or f"the daemon ended at once: {last or 'it said nothing'}"
    raise GiveUpError("start-failed", f"{reason} (see lcc-daemon logs)")


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


def known_process(folder: bytes) -> "tuple[int, bytes] | None":
    """The daemon that has the place: its process number and when it began. None where that is not sure.

    Both stand in its file. Where somebody removed that, the system may tell who holds the lock.
    """
    number, _, began = read_small(file_of(folder, "pid")).partition(b" ")
    if number:
        is_sure = number.isdigit() and len(number) < 10 and began and start_of(int(number)) == began
        return (int(number), began) if is_sure else None
    holder = lock_holder(file_of(folder, "lock"))
    return (holder, start_of(holder)) if holder is not None and is_ours(holder) else None


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


# ---------------------------------------------------------------- ending one that hangs


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
