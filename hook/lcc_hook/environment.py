"""The plugin's own Python environment, seen from a session start: look whether it is there, and start its building.

Only what a session start waits for; the building itself is ``builder.py``, a process of its own. Standard library
only; runs on Python 3.8 and up.
"""

import json
import os
import subprocess
import sys

from lcc_hook.files import is_locked, read_small, write_small
from lcc_hook.places import is_ready


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
    os.makedirs(data, exist_ok=True)
    log = os.fsdecode(data) + "/setup.log"
    if is_locked(data + b"/setup.lock"):
        return shown(f"lcc is still setting up its Python environment (log: {log})")
    failed = read_small(data + b"/setup-failed").decode("utf-8", "replace")
    told = os.path.exists(data + b"/setup-told")
    begin(data, folder, env)
    if not failed:
        return shown(f"lcc is setting up its Python environment in the background, once (log: {log})")
    if told:
        return b""
    write_small(data + b"/setup-told", b"1")
    return shown(f"lcc could not set up its Python environment: {failed}. Each new session tries again (log: {log})")


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
