"""The hook client: hands what Claude Code says to the daemon, and prints what comes back.

Started as ``python3 -I -S -E client.py <command>`` with the hook's JSON on stdin. Standard library only, nothing
of ours imported, and nothing imported that is not used: its start is most of its cost, and every line is compiled at
every call. So this file holds what a call to a warm daemon needs and no more; ``unserved.py`` beside it has the rest.
It must run on the ``python3`` of older systems (3.8 and up). The rules for the runtime folder and the socket's name
live here, and the daemon imports them from here, since this file can import nothing.

Whatever goes wrong, it exits 0 within its time: ``compact`` then prints a plan that hands over to Claude Code. The
last one of these needs nothing that is not loaded yet, since on a slow machine there is no time left to load it.
"""

import _signal  # type: ignore[import-not-found]
import sys

try:
    import posix
except ImportError:  # Windows has no such socket, and a hook must not fail there either
    needs = "lcc needs Linux or macOS; on Windows run Claude Code in WSL"
    answers = {
        "compact": '{"v":1,"action":"hand-over","reason":"platform","say":"left to the built-in summary: %s"}',
        "session-start": '{"systemMessage":"%s, or take the plugin out: /plugin"}',
        "slash": '{"decision":"block","reason":"%s"}',
    }
    sys.stdout.write(answers.get("".join(sys.argv[1:2]), "%.0s") % needs)
    sys.exit(0)
try:
    import _socket as socket
except ImportError:  # an interpreter without CPython's own module
    import socket  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

PROTOCOL = 1
BUILD = "0.1.0"
"""The version of the whole project. It stands in the socket's name, so an old daemon never serves a new client."""
HEADER_LIMIT = 64 * 1024
FRAME_LIMIT = 128 * 1024 * 1024
"""Bytes of one frame: the event of a 40 MB session shows each output twice, and escaped."""
PATH_LIMIT = 103
"""Bytes of a socket's path that every system takes (macOS: 104 with the final NUL)."""
BUDGET = 1.5
BUDGET_FOR_EACH_MB = 0.1
"""Seconds for a call to a warm daemon, and what each MB of stdin adds. LCC_BUDGET_MS replaces the first."""
START_BUDGET = 8.0
"""Seconds for a call that must start the daemon first. LCC_START_BUDGET_MS replaces it."""
LAST_WORDS = 2.0
"""Seconds after the end of a call's time in which its hand-over is printed in the usual way; then at once."""
LAST_PLAN = b'{"v":1,"action":"hand-over","reason":"%s","say":"left to the built-in summary: %s"}'
PRINTING = 20.0
"""Seconds in which whoever reads must have taken the answer."""
GREETING_WAIT = 0.3
"""Seconds after which a daemon that accepted a connection and says nothing is looked at more closely."""
SET_UP = "set-up"
"""A daemon's word for a session start: it works, and the plugin's environment is still to be made."""
FORWARDED = (b"LCC_", b"TYPESAFE_", b"LAYA_", b"CLAUDE_PLUGIN_", b"SSL_CERT_")
FORWARDED_NAMES = (b"HOME", b"XDG_CONFIG_HOME", b"XDG_DATA_HOME", b"XDG_STATE_HOME", b"XDG_CACHE_HOME")
"""How the variables begin, and are called, that go to the daemon from the asking session's environment."""
LENT = (b"TYPESAFE_API_KEY", b"LAYA_API_KEY", b"HTTP_PROXY", b"HTTPS_PROXY", b"ALL_PROXY", b"NO_PROXY")
"""Variables that may hold a secret: only their names go with a request, and the values when a judge needs them."""


class GiveUpError(Exception):
    """This call cannot be served. ``reason`` is a machine word, ``say`` one line with the way out."""

    def __init__(self, reason: str, say: str) -> None:
        super().__init__(say)
        self.reason = reason
        self.say = say


class OutOfTimeError(Exception):
    """The alarm rang: the call's time is over."""


class AbsentError(Exception):
    """Nothing listens at the socket's path, or it went before it greeted."""


class SilentError(Exception):
    """Something listens and does not greet. ``line`` leads to it, None where not even a connection was taken."""

    def __init__(self, line: "socket.socket | None") -> None:
        super().__init__()
        self.line = line


class Hook:
    """The hook's call that this process is, if it is one. ``phase``: asking, late (its time is over), printing."""

    command = ""
    phase = ""


def _ring(number: int, frame: object) -> None:
    if Hook.phase in ("", "asking"):
        if Hook.phase:
            Hook.phase = "late"
            _signal.setitimer(_signal.ITIMER_REAL, LAST_WORDS)
        raise OutOfTimeError
    if Hook.phase == "printing":  # the alarm of the call itself may ring just then
        Hook.phase = "printing too long"
        _signal.setitimer(_signal.ITIMER_REAL, PRINTING)
        return
    if Hook.phase == "late":
        say_and_end(*last_words(b"out-of-time", b"no answer in time; see lcc-daemon status"))
    posix._exit(0)


def arm(seconds: float) -> None:
    """Let the alarm ring in ``seconds``, wherever the program is then; 0 disarms it."""
    _signal.signal(_signal.SIGALRM, _ring)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def runtime_folder(env: "dict[bytes, bytes]") -> bytes:
    """$LCC_RUNTIME_DIR, else $XDG_RUNTIME_DIR/lcc where that is ours, else ~/.cache/lcc/run. Not checked yet."""
    named = env.get(b"LCC_RUNTIME_DIR")
    if named:
        return named
    system = env.get(b"XDG_RUNTIME_DIR")
    if system and system.startswith(b"/"):
        try:
            if posix.stat(system).st_uid == posix.geteuid():
                return system + b"/lcc"
        except OSError:
            pass
    return home_folder(env) + b"/.cache/lcc/run"


def home_folder(env: "dict[bytes, bytes]") -> bytes:
    """The user's home; refused where root was given someone else's, whom what it makes there would lock out."""
    home = env.get(b"HOME", b"")
    if not home.startswith(b"/"):
        raise GiveUpError("no-home", "HOME is no absolute path: set it, or set LCC_RUNTIME_DIR")
    if posix.geteuid() == 0:
        try:
            owner = posix.stat(home).st_uid
        except OSError:
            owner = 0
        if owner:
            raise GiveUpError("foreign-home", f"root with the home of user {owner} is refused: use sudo -H")
    return home


def check_folder(folder: bytes) -> None:
    """Refuse a runtime folder that others could write to or stand in for. FileNotFoundError where there is none."""
    name = name_of(folder)
    if not folder.startswith(b"/"):
        raise GiveUpError("runtime-folder", f"the runtime folder {name} is no absolute path")
    found = posix.lstat(folder)
    if found.st_mode & 0o170000 != 0o040000:
        raise GiveUpError("runtime-folder", f"{name} is no folder (a link is not followed): remove it")
    if found.st_uid != posix.geteuid():
        raise GiveUpError("runtime-folder", f"{name} belongs to user {found.st_uid}: remove it, or set LCC_RUNTIME_DIR")
    if found.st_mode & 0o077:
        raise GiveUpError("runtime-folder", f"{name} is open to other users: run chmod 700 {name}")


def socket_path(folder: bytes, build: str = BUILD) -> bytes:
    """The socket's path. One that is too long for a socket stands in /tmp/lcc-<uid>/, under the same rules."""
    path = b"%s/d-%d-%s.sock" % (folder, PROTOCOL, build.encode())
    if len(path) <= PATH_LIMIT:
        return path
    import zlib

    return b"/tmp/lcc-%d/%08x%08x.sock" % (posix.geteuid(), zlib.crc32(path), zlib.adler32(path))


def name_of(path: bytes) -> str:
    """A path for a message: one line, whatever bytes it has."""
    return ascii(path.decode("utf-8", "surrogateescape"))[1:-1]


def connect(path: bytes) -> "socket.socket":
    """A connection to a process of ours, not greeted yet. Raises AbsentError, SilentError or GiveUpError."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(GREETING_WAIT)
    try:
        check_folder(path.rpartition(b"/")[0])
        line.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        line.close()
        raise AbsentError from None
    except (BlockingIOError, socket.timeout):  # noqa: UP041 - so many wait already that it takes no more
        line.close()
        raise SilentError(None) from None
    except OSError as error:  # a refused permission is not "stale": nothing is started, nothing removed
        raise GiveUpError("no-access", f"{name_of(path)} cannot be reached: {error.strerror}") from None
    peer = peer_uid(line)
    if peer != posix.geteuid():
        who = "an unknown user" if peer is None else f"user {peer}"
        raise GiveUpError("foreign-daemon", f"{who} listens at {name_of(path)}: set LCC_RUNTIME_DIR to another folder")
    return line


def peer_uid(line: "socket.socket") -> "int | None":
    """Whose process is at the other end; None where the system does not say, which must be refused."""
    try:
        if hasattr(socket, "SO_PEERCRED"):  # Linux: process, user and group, four bytes each
            return int.from_bytes(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
        # macOS and the BSDs: LOCAL_PEERCRED (level 0, option 1) gives struct xucred: version, uid, …
        found = line.getsockopt(0, 1, 76)
        return int.from_bytes(found[4:8], sys.byteorder) if found[:4] == b"\0\0\0\0" else None
    except OSError:
        return None


def greet(line: "socket.socket", seconds: float = GREETING_WAIT) -> int:
    """Read the daemon's greeting, which it sends before it reads anything. Returns its process id."""
    line.settimeout(seconds)
    try:
        words = receive(line, HEADER_LIMIT).split()
    except socket.timeout:  # noqa: UP041 - a class of its own before Python 3.10
        raise SilentError(line) from None
    except OSError:
        raise AbsentError from None
    if len(words) < 4 or words[0] != b"lcc" or not words[3].isdigit():
        raise GiveUpError("not-lcc", "what answers at the daemon's socket is not lcc: run lcc-daemon restart")
    if words[1:3] != [b"%d" % PROTOCOL, BUILD.encode()]:
        spoken = name_of(b" ".join(words[1:3]))
        raise GiveUpError(
            "other-version",
            f"the daemon is of protocol and build {spoken}, this client of {PROTOCOL} {BUILD}: run lcc-daemon restart",
        )
    return int(words[3])


def receive(line: "socket.socket", limit: int) -> bytearray:
    """One frame: four bytes of length, most significant first, then so many bytes."""
    size = int.from_bytes(exactly(line, 4), "big")
    if size > limit:
        raise GiveUpError("bad-answer", f"the daemon's answer of {size} bytes is over the limit of {limit}")
    return exactly(line, size)


def exactly(line: "socket.socket", size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = line.recv_into(view)
        if not got:
            raise AbsentError
        view = view[got:]
    return data


def ask(
    line: "socket.socket", header: bytes, chunks: "list[bytes]", env: "dict[bytes, bytes]"
) -> "tuple[str, bytearray]":
    """Send a request over a greeted line. Returns what to say on stderr (mostly nothing) and the bytes for stdout.

    An answer is a header frame, ``<status> <number>\\n<text>``, and a body frame. Status ``wait`` asks for more
    time, in ms, and ``lend`` for variables of ``env``; ``error`` has a machine word on the first line of its text
    and what to say on the second.
    """
    line.settimeout(None)  # the alarm bounds it from here
    try:
        size = sum(map(len, chunks))
        line.sendall(len(header).to_bytes(4, "big") + header + size.to_bytes(4, "big"))
        for chunk in chunks:
            line.sendall(chunk)
    except OSError:  # it may have refused the request before it was all sent: its answer says why
        pass
    try:
        while True:
            first, _, text = receive(line, HEADER_LIMIT).decode("utf-8", "replace").partition("\n")
            body = receive(line, FRAME_LIMIT)
            status, _, number = first.partition(" ")
            if status == "wait" and number.isdigit():
                arm(min(int(number[:9]), 600_000) / 1000)
            elif status == "lend":
                lent = b"\0".join(key + b"=" + env[key] for key in text.encode().split() if key in env and is_lent(key))
                line.sendall(len(lent).to_bytes(4, "big") + lent)
            elif status == "ok":
                return text, body
            else:
                reason, _, say = text.partition("\n")
                if status != "error" or not reason or not (say or reason == SET_UP):
                    raise GiveUpError("bad-answer", "the daemon's answer is none: run lcc-daemon restart")
                raise GiveUpError(reason, say)
    except (AbsentError, OSError):
        raise GiveUpError("daemon-died", "the daemon ended in the middle: see lcc-daemon logs") from None


def header_for(command: str, env: "dict[bytes, bytes]") -> bytes:
    """``key=value`` fields with NUL between them: every byte that a path or a variable can hold goes as it is."""
    fields = [b"protocol=%d" % PROTOCOL, b"build=" + BUILD.encode(), b"command=" + command.encode()]
    lends = []
    for key, value in env.items():
        if is_lent(key):
            lends.append(key)
        elif key.startswith(FORWARDED) or key in FORWARDED_NAMES:
            fields.append(b"env." + key + b"=" + value)
    fields.append(b"lends=" + b" ".join(lends))
    try:
        cwd = posix.getcwdb()
    except OSError:
        cwd = b""  # the folder is gone
    return b"\0".join([*fields, b"cwd=" + cwd])


def is_lent(key: bytes) -> bool:
    return key in LENT or key.upper() in LENT[2:]


def read_stdin() -> "list[bytes]":
    chunks: list[bytes] = []
    size = 0
    while True:
        chunk = posix.read(0, 1 << 20)
        if not chunk:
            return chunks
        size += len(chunk)
        if size > FRAME_LIMIT:
            raise GiveUpError("too-large", f"the session's event is over {FRAME_LIMIT >> 20} MB")
        chunks.append(chunk)


def write_out(fd: int, data: "bytes | bytearray") -> None:
    view = memoryview(data)
    while view:
        view = view[posix.write(fd, view) :]


def slow_path() -> "ModuleType":
    """``unserved.py``, loaded so that its ``from lcc_hook.client import …`` finds this running file."""
    if __name__ == "__main__":
        sys.modules["lcc_hook.client"] = sys.modules["__main__"]
        sys.path.insert(0, __file__.rpartition("/lcc_hook/")[0] or "..")
        sys.dont_write_bytecode = True
    import lcc_hook.unserved

    return lcc_hook.unserved


def run(command: str, env: "dict[bytes, bytes]") -> "tuple[str, bytes | bytearray]":
    """One call: connect, read stdin, send, receive; where no daemon answers, what ``unserved.py`` does about it.

    Returns what to say on stderr, and the bytes for stdout.
    """
    line: socket.socket | None = None
    silent = refused = None
    folder, budget, start_budget = b"", BUDGET, START_BUDGET
    try:
        if b"LCC_BUDGET_MS" in env or b"LCC_START_BUDGET_MS" in env:
            budget, start_budget = slow_path().budgets(env)
        folder = runtime_folder(env)
        line = connect(socket_path(folder))
    except AbsentError:
        pass
    except SilentError as found:
        silent = found
    except GiveUpError as gave:
        refused = gave
    arm(budget)
    chunks = read_stdin()
    if refused:  # said only now: who still writes to us would see a broken pipe, and not the reason
        raise refused
    arm(budget + BUDGET_FOR_EACH_MB * sum(map(len, chunks)) / 1e6)
    header = header_for(command, env)
    if command == "session-start":
        header += slow_path().recall_field(env)
    if line is not None:
        try:
            greet(line)
            return ask(line, header, chunks, env)
        except AbsentError:
            pass
        except SilentError as found:
            silent = found
        except GiveUpError as gave:
            if gave.reason != SET_UP:
                raise
            words: bytes = slow_path().set_up(env)
            return "", words
    arm(start_budget)  # before anything is loaded: that alone takes seconds on a machine with too much to do
    served: tuple[str, bytes | bytearray] = slow_path().serve(
        command, folder, env, header, chunks, silent, start_budget
    )
    return served


def last_words(reason: bytes, why: bytes) -> "tuple[str, bytes]":
    """What `unserved.excuse` gives, where that takes too long or cannot be loaded: nothing is loaded for this."""
    return f"lcc: {why.decode()}\n", LAST_PLAN % (reason, why) if Hook.command == "compact" else b""


def say_and_end(say: str, out: "bytes | bytearray") -> None:
    """Print the answer, once, and end: whoever does not read it is not waited for without an end."""
    Hook.phase = "printing"
    arm(PRINTING)
    try:
        write_out(1, out)
        write_out(2, say.encode("utf-8", "replace"))
    finally:
        posix._exit(0)  # a hook never fails, and there is nothing to tidy up that takes a millisecond


def main(words: "list[str]") -> None:
    Hook.command = words[0] if words else ""
    Hook.phase = "asking"
    arm(BUDGET)
    try:
        try:
            say, out = run(Hook.command, posix.environ)
            Hook.phase = "printing"  # within the `try`: until then the alarm may ring
        except Exception as error:
            Hook.phase = "late"
            _signal.setitimer(_signal.ITIMER_REAL, LAST_WORDS)
            say, out = slow_path().excuse(Hook.command, error)
    except Exception:
        say, out = last_words(b"client-error", b"the hook client's files cannot be loaded: install the plugin again")
    say_and_end(say, out)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    finally:
        posix._exit(0)
