"""The session's shells find our `lcc`. Loaded by a session start; standard library only, Python 3.8 and up."""

import posix

SIZE_LIMIT = 64 * 1024
"""Bytes of the client's file that are looked through."""


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
