"""What the hook client does when no daemon answers: start one, end a hung one, say what is missing.

Loaded by ``client.py`` only then, and used by ``lcc-daemon`` too, so that there is one way to start a daemon and
one winner, whoever asks. Standard library only; runs on Python 3.8 and up.
"""

import fcntl
import json
import os
import signal
import time

from lcc_hook.client import (
    BUILD,
    PROTOCOL,
    AbsentError,
    GiveUpError,
    OutOfTimeError,
    SilentError,
    arm,
    ask,
    check_folder,
    connect,
    greet,
    name_of,
    socket_path,
    write_out,
)
from lcc_hook.files import modified, read_small, remove, write_small
from lcc_hook.places import interpreter
from lcc_hook.processes import TERM_WAIT, end_process, peer_pid, progress_of, start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

START_BUDGET = 8.0
"""Seconds for a call that must start the daemon first. LCC_START_BUDGET_MS replaces it."""
SECOND_WAIT = 2.0
"""Seconds in which a silent daemon must show that it does something, unless the system says that it is stopped."""
BACK_OFF = (3, 60.0, 300.0)
"""After so many crashes within so many seconds, stay down for so many seconds."""
STARTING_COMMANDS = ("compact", "session-start", "pre-compact")
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
    silent: "_socket.socket | None",
) -> "tuple[str, bytes | bytearray]":
    """Finish a call that no daemon answered. ``silent`` is the line to one that hangs, else None."""
    if command not in STARTING_COMMANDS:
        return "", b""
    budget = int(env.get(b"LCC_START_BUDGET_MS", b"0")) / 1000 or START_BUDGET
    arm(budget)
    words = b""
    if command == "session-start":
        from lcc_hook.environment import prepare

        make_folder(folder)
        words = prepare(folder, env)
        if not any(b'"compact"' in chunk for chunk in chunks):  # only then does the session wait for an answer
            if leave_to_a_child():
                return "", words
            arm(4 * budget)
    if silent is not None:
        if wakes_up(silent):
            return ask(silent, header, chunks, env)
        end_hung(folder, peer_pid(silent))
    start_daemon(folder, env)
    line = connect(socket_path(folder))
    greet(line)
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


def fail(command: str, error: BaseException) -> None:
    """Say in one line why nothing was done, in the form that Claude Code shows for this command."""
    if isinstance(error, GiveUpError):
        reason, why = error.reason, error.say
    elif isinstance(error, OutOfTimeError):
        reason, why = "out-of-time", "no answer in time; see lcc-daemon status"
    elif isinstance(error, SilentError):
        reason, why = "unresponsive", "the daemon does not answer: run lcc-daemon restart"
    elif isinstance(error, AbsentError):
        reason, why = "start-failed", "the daemon went as it came: see lcc-daemon logs"
    else:
        reason, why = "client-error", f"{type(error).__name__} in the hook client: {error}"
    line = " ".join(f"lcc: {why}".split())
    if command == "compact":
        line = " ".join(f"left to the built-in summary: {why}".split())
        write_out(1, json.dumps({"v": 1, "action": "hand-over", "reason": reason, "say": line}).encode())
    elif command == "session-start":
        write_out(1, json.dumps({"systemMessage": line}).encode())
    write_out(2, (line + "\n").encode("utf-8", "replace"))


# ---------------------------------------------------------------- starting


class StartLock:
    """Held by the one who starts, or ends, the daemon. ``waited``: someone else held it when we came."""

    def __init__(self, folder: bytes) -> None:
        self.fd = os.open(file_of(folder, "start"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self.waited = False
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.waited = True
            fcntl.flock(self.fd, fcntl.LOCK_EX)

    def __enter__(self) -> "StartLock":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def file_of(folder: bytes, kind: str) -> bytes:
    """A file of this build's daemon in the runtime folder: ``lock``, ``start``, ``pid``, ``crashes`` …"""
    return b"%s/d-%d-%s.%s" % (folder, PROTOCOL, BUILD.encode(), kind.encode())


def make_folder(folder: bytes) -> None:
    """Make a private folder, and check it. One that was there keeps the rights it has."""
    try:
        check_folder(folder)
        return
    except FileNotFoundError:
        pass
    try:
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise GiveUpError("runtime-folder", f"{name_of(folder)} cannot be made: {error.strerror}") from None
    check_folder(folder)


def start_daemon(folder: bytes, env: "dict[bytes, bytes]", by_hand: bool = False) -> None:
    """Have a daemon that greets: whoever comes first starts it, the others wait for that.

    ``by_hand`` is a person's own start: it ends the pause after crashes. Raises GiveUpError with the reason,
    which for those who waited is the reason of the one they waited for.
    """
    make_folder(folder)
    came = time.time()
    with StartLock(folder) as lock:
        if is_alive(socket_path(folder)):
            return
        failure = file_of(folder, "failure")
        if lock.waited and modified(failure) >= came:
            raise GiveUpError("start-failed", read_small(failure).decode("utf-8", "replace"))
        if by_hand:
            remove(file_of(folder, "crashes"))
        refuse_after_crashes(folder, time.time())
        try:
            spawn(interpreter(folder, env), folder, env)
        except GiveUpError as gave:
            write_small(failure, gave.say.encode("utf-8", "replace"))
            raise


def is_alive(path: bytes) -> bool:
    """Whether a daemon greets at ``path``. Raises SilentError where one listens and is hung."""
    try:
        line = connect(path)
        try:
            greet(line)
        except SilentError:
            if not wakes_up(line):
                raise
        finally:
            line.close()
        return True
    except AbsentError:
        return False


def spawn(program: "list[bytes]", folder: bytes, env: "dict[bytes, bytes]") -> None:
    """Start the daemon detached, and wait until it says through a pipe that it is ready, or why it is not."""
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
        wait_for(socket_path(folder))
        return
    if answer.strip() == b"taken":  # another one won, which is as good, unless it has lost its socket and will end
        if not wait_for(socket_path(folder), 1.0):
            spawn(program, folder, env)
        return
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
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (nothing, said, said, writer)]
        for target, fd in enumerate(high):
            os.dup2(fd, target)
        os.closerange(4, 1024)
        os.execve(words[0], words, env)
    except BaseException as error:
        os.write(
            3,
            f"{name_of(words[0])} cannot be started: {getattr(error, 'strerror', error)}\n".encode("utf-8", "replace"),
        )
    os._exit(1)


def wait_for(path: bytes, seconds: float = 3600.0) -> bool:
    """Until a daemon greets at ``path``, or False after so long; the alarm ends it."""
    until = time.monotonic() + seconds
    while not is_alive(path):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def refuse_after_crashes(folder: bytes, now: float) -> None:
    """Stay down for a while after crash upon crash. A daemon notes its predecessor's crash when it starts."""
    count, within, pause = BACK_OFF
    times = [float(word) for word in read_small(file_of(folder, "crashes")).split()[-count:]]
    if len(times) == count and times[-1] - times[0] <= within and 0 <= now - times[-1] < pause:
        left = int(pause - (now - times[-1]))
        raise GiveUpError(
            "crashed",
            f"the daemon crashed {count} times within {within:.0f} s and stays down for {left} s more: "
            "see lcc-daemon logs, or run lcc-daemon start",
        )


# ---------------------------------------------------------------- ending one that hangs


def wakes_up(line: "_socket.socket") -> bool:
    """Whether a silent daemon greets after all. Only one that is stopped, or does nothing at all, counts as hung.

    On a machine with too much to do a daemon is slow, and must not be ended for it: while it works, or waits for
    a processor, it is waited for, and the alarm ends that.
    """
    pid = peer_pid(line)
    before = (b"", b"") if pid is None else progress_of(pid)
    while before[0] != b"T":
        try:
            greet(line, SECOND_WAIT)
            return True
        except AbsentError:
            return False
        except SilentError:
            now = (b"", b"") if pid is None else progress_of(pid)
            if now == before and now[0] != b"R":
                return False
            before = now
    return False


def end_hung(folder: bytes, pid: "int | None") -> None:
    """End a daemon that does not answer, once it is sure that ``pid`` is it: number and start time are on file."""
    with StartLock(folder) as lock:
        if lock.waited:
            try:
                is_alive(socket_path(folder))
                return
            except SilentError:
                pass
        known, _, began = read_small(file_of(folder, "pid")).partition(b" ")
        if pid is None or known != b"%d" % pid or not began or began != start_of(pid):
            raise GiveUpError("unresponsive", "the daemon does not answer: run lcc-daemon restart")
        patience = 0.0 if progress_of(pid)[0] == b"T" else TERM_WAIT  # a stopped process hears no SIGTERM
        if not end_process(pid, began, patience):
            raise GiveUpError("unresponsive", f"the daemon (pid {pid}) does not answer and cannot be ended")
