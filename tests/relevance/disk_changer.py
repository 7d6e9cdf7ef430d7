"""A second process that changes files: on command, or on its own as fast as it can.

disk_changer.py obey             each line of stdin: a kind of change, a tab, a path; answers with a line
disk_changer.py rage LOCK PATH…  changes the paths in turn until stdin is closed, a lock held for each change
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import sys
from pathlib import Path

KINDS = (
    "rewrite",
    "rewrite, same size and times",
    "replace",
    "delete",
    "truncate",
    "append",
    "grow beyond the limit",
    "no longer text",
    "link to another file",
    "link out of the folder",
    "link to itself",
    "fifo",
    "folder",
)


def change(kind: str, path: str) -> None:
    """Make one change, after which the file no longer holds what it held."""
    data = Path(path).read_bytes() if os.path.isfile(path) else b""
    other = data[:-2].swapcase() + b"?\n"
    if kind == "rewrite":
        Path(path).write_bytes(other)
    elif kind == "rewrite, same size and times":
        before = os.stat(path)
        Path(path).write_bytes(other)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif kind == "replace":
        put(path, other)
    elif kind == "delete":
        clear(path)
    elif kind == "truncate":
        os.truncate(path, len(data) // 2)
    elif kind == "append":
        with open(path, "ab") as file:
            file.write(b"more\n")
    elif kind == "grow beyond the limit":
        os.truncate(path, 4 * 1024 * 1024 + 1)
    elif kind == "no longer text":
        Path(path).write_bytes(b"\xff" + data[1:])
    elif kind == "link to another file":
        Path(path + ".other").write_bytes(other)
        link(path, path + ".other")
    elif kind == "link out of the folder":  # the same bytes, but where nobody vouches for them
        outside = os.path.join(os.path.dirname(os.path.dirname(path)), "outside-" + os.path.basename(path))
        Path(outside).write_bytes(data)
        link(path, outside)
    elif kind == "link to itself":
        link(path, path)
    elif kind == "fifo":
        clear(path)
        os.mkfifo(path)
    elif kind == "folder":
        clear(path)
        os.mkdir(path)
    else:
        raise ValueError(kind)


def put(path: str, data: bytes) -> None:
    """Replace a file at once, whatever it was."""
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    Path(path + ".new").write_bytes(data)
    os.replace(path + ".new", path)


def clear(path: str) -> None:
    """Take away what stands at ``path``."""
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def link(path: str, target: str) -> None:
    """Put a link at ``path``."""
    clear(path)
    os.symlink(target, path)


def obey() -> None:
    """Change what each line of stdin names, and say when it is done."""
    for line in sys.stdin:
        kind, _, path = line.rstrip("\n").partition("\t")
        change(kind, path)
        print("done", flush=True)


def rage(lock: str, paths: list[str]) -> None:
    """Change one path after the other, and put back what it held, until stdin is closed."""
    rng = random.Random(1)
    held = {path: Path(path).read_bytes() for path in paths}
    with open(lock, "w") as file:
        while not select.select([sys.stdin], [], [], 0)[0]:
            path = rng.choice(paths)
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                if os.path.isfile(path) and not os.path.islink(path) and Path(path).read_bytes() == held[path]:
                    change(rng.choice(KINDS), path)
                else:
                    put(path, held[path])
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)


if __name__ == "__main__":
    if sys.argv[1] == "obey":
        obey()
    else:
        rage(sys.argv[2], sys.argv[3:])
