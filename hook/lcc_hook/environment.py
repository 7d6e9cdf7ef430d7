"""The plugin's own Python environment, seen from a session start: look whether it is there, and start its building.

Only what a session start waits for; the building itself is ``builder.py``, a process of its own. Standard library
only; runs on Python 3.8 and up.
"""

import contextlib
import json
import os
import subprocess
import sys
import time

from lcc_hook.client import name_of
from lcc_hook.files import is_locked, modified, read_small, remove, write_small
from lcc_hook.places import data_folders, is_ready, lacks_room, libraries_in, plain_python, progress_in

TRIES, PAUSE = 3, 3600.0
"""So many session starts try at once; after that, one in so many seconds."""
WORKS, WAITS = "lcc compacts by its rules.", "lcc needs its Python environment first."
"""What holds without the environment, which brings the tokenizer, judges and the whole `lcc` command."""


def prepare(folder: bytes, env: "dict[bytes, bytes]") -> bytes:
    """Start the building where it is needed. Returns what Claude Code shows to the user (JSON), mostly nothing.

    ``folder`` is the runtime folder, where the data folder's path is left for processes that are not told.
    LCC_PYTHON names an interpreter to use instead; LCC_NO_SETUP=1 forbids the building.
    """
    data = env.get(b"CLAUDE_PLUGIN_DATA", b"")
    if not data.startswith(b"/") or env.get(b"LCC_PYTHON"):
        return b""
    if read_small(folder + b"/plugin-data") != data:
        write_small(folder + b"/plugin-data", data)
    if is_ready(data) or env.get(b"LCC_NO_SETUP", b"0") != b"0":
        return b""
    try:
        os.makedirs(data, exist_ok=True)
        return begin_or_say(data, folder, env)
    except OSError as error:
        why = lacks_room(data) or f"{name_of(data)}: {error.strerror}"
        return shown(f"lcc: its Python environment could not be set up: {why}")


def begin_quietly(folder: bytes, env: "dict[bytes, bytes]") -> None:
    """Start the building where it is needed, from a call that has nobody to tell."""
    for data in data_folders(folder, env)[:1]:
        with contextlib.suppress(OSError):
            prepare(folder, {**env, b"CLAUDE_PLUGIN_DATA": data})


def begin_or_say(data: bytes, folder: bytes, env: "dict[bytes, bytes]") -> bytes:
    """Start the building, unless it runs or has died too often lately. Returns what the user is told."""
    log = os.fsdecode(data) + "/setup.log"
    works = WORKS if libraries_in([data]) or plain_python(env) else WAITS
    if is_locked(data + b"/setup.lock"):
        return shown(f"{works} Now {progress_in(data)} (log: {log})")
    died = read_small(data + b"/setup-step").decode("utf-8", "replace")
    if died:  # nobody holds the lock: the last try was killed, or the machine went down
        write_small(data + b"/setup-failed", f"it ended in the middle ({died})".encode())
    failed = read_small(data + b"/setup-failed").decode("utf-8", "replace")
    told = os.path.exists(data + b"/setup-told")
    tries = read_small(data + b"/setup-tries")
    count = int(tries) if tries.isdigit() else 0
    if count < TRIES or time.time() - modified(data + b"/setup-tries") > PAUSE:
        write_small(data + b"/setup-tries", b"%d" % (count + 1))
        remove(data + b"/setup-step")
        begin(data, folder, env)
    if not failed:
        return shown(f"{works} It is setting up its Python environment in the background, once (log: {log})")
    if told:
        return b""
    write_small(data + b"/setup-told", b"1")
    return shown(f"{works} Its Python environment could not be set up: {failed}. It will be tried again (log: {log})")


def begin(data: bytes, folder: bytes, env: "dict[bytes, bytes]") -> None:
    """Start the builder as a process of its own, which outlives the session's hook."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    program = os.path.join(here, "builder.py")
    subprocess.Popen(
        [sys.executable, "-I", program, data, root, folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
        env=env,
    )


def shown(line: str) -> bytes:
    return json.dumps({"systemMessage": line}).encode()
