"""The session's shells find our `lcc`. Loaded by a session start; standard library only, Python 3.8 and up."""

import posix

SIZE_LIMIT = 64 * 1024
"""Bytes of the client's file that are looked through."""


MARKS = b"/recall"
"""Where in the runtime folder it is noted, by session, that the session's shells find our `lcc`."""


def note_session(folder: bytes, said: bytes) -> None:
    """Note it for the session that a session start is ``said`` to be of (JSON), ahead of a daemon that must start.

    The agent's first call may come sooner than the daemon. The daemon notes it again, and keeps the notes few.
    """
    import json
    import re

    from lcc_hook.files import write_small

    try:
        session = json.loads(said).get("session_id")
        if isinstance(session, str) and re.fullmatch("[A-Za-z0-9_-]{1,80}", session):
            if not posix.access(folder + MARKS, posix.F_OK):
                posix.mkdir(folder + MARKS, 0o700)
            write_small(folder + MARKS + b"/" + session.encode(), b"")
    except (OSError, ValueError, AttributeError):
        pass


def put_lcc_on_path(env: "dict[bytes, bytes]") -> bool:
    """Have every later shell of the session find our `lcc`, ahead of any other; whether it does.

    The client runs what stands in CLAUDE_ENV_FILE ahead of each command of its Bash tool.
    """
    file = env.get(b"CLAUDE_ENV_FILE", b"")
    folder = __file__.encode("utf-8", "surrogateescape").rpartition(b"/lcc_hook/")[0] + b"/bin"
    if not file.startswith(b"/") or not folder.startswith(b"/") or b":" in folder or b"\n" in folder:
        return False
    line = b"export PATH='%s':\"$PATH\"\n" % folder.replace(b"'", b"'\\''")
    try:
        if not posix.access(folder + b"/lcc", posix.X_OK):
            return False
        fd = posix.open(file, posix.O_RDWR | posix.O_APPEND | posix.O_CREAT | posix.O_NONBLOCK | posix.O_CLOEXEC, 0o600)
        try:
            if line not in posix.read(fd, SIZE_LIMIT):
                posix.write(fd, line)
        finally:
            posix.close(fd)
    except OSError:
        return False
    return True
