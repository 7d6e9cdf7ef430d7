"""Where our Python package is: an interpreter that is named, or the plugin's own sources with the libraries of its
environment, or a command on PATH, or the plugin's own sources and nothing else.

Standard library only; runs on Python 3.8 and up.
"""

import os
import sys

from lcc_hook.client import GiveUpError, name_of
from lcc_hook.files import is_locked, modified, read_small

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
"""The plugin's folder, where this file stands in one."""
FROM_SOURCES = ROOT + "/hook/bin/from_sources.py"
OLDEST = (3, 11)
ROOM = 400_000_000
"""Bytes that must be free for a set-up: the libraries take about half of it, and pip unpacks them first."""
USUAL_PLACES = (b"/opt/homebrew/bin", b"/usr/local/bin", b"/Library/Frameworks/Python.framework/Versions/Current/bin")
"""Where newer Pythons are on macOS. A client that the desktop starts has a PATH without them."""
NEWER_PYTHONS = (b"python3.13", b"python3.12", b"python3.11", b"python3.14")


def programs(folder: bytes, env: "dict[bytes, bytes]") -> "list[list[bytes]]":
    """The command lines that are `lcc-daemon`, best first. hook/README.md says in which order they are looked for.

    Raises GiveUpError where there is none.
    """
    named = env.get(b"LCC_PYTHON")
    if named:
        return [[named, b"-I", b"-m", b"lcc_daemon"]]
    found = []
    places = data_folders(folder, env)
    libraries = libraries_in(places)
    if libraries and is_a_plugin():
        found.append(from_sources(libraries, b"lcc-daemon"))
    for place in env.get(b"PATH", b"").split(b":"):
        if place.startswith(b"/") and os.access(place + b"/lcc-daemon", os.X_OK):
            found.append([place + b"/lcc-daemon"])
            break
    plain = plain_python(env)
    if plain:
        found.append(from_sources(plain, b"lcc-daemon"))
    if not found:
        raise GiveUpError("not-installed", why_not_installed(places))
    return found


def from_sources(python: "list[bytes]", program: bytes) -> "list[bytes]":
    """The command line that runs a program of ours from the plugin's own sources."""
    return [*python, os.fsencode(FROM_SOURCES), program]


def libraries_in(places: "list[bytes]") -> "list[bytes]":
    """The interpreter of the plugin's environment, of whatever build it was made for; none where there is no sound one.

    The link leads to an environment only once that is whole.
    """
    for data in places:
        if os.access(data + b"/venv/bin/python", os.X_OK) and read_small(data + b"/venv/lcc-needs"):
            return [data + b"/venv/bin/python", b"-I"]
    return []


def plain_python(env: "dict[bytes, bytes]") -> "list[bytes]":
    """A Python that is new enough for our sources, without any library; none where there is none."""
    if not is_a_plugin():
        return []
    if sys.version_info >= OLDEST and sys.executable:
        return [os.fsencode(sys.executable), b"-I", b"-S"]
    for name in NEWER_PYTHONS:
        for place in (*env.get(b"PATH", b"").split(b":"), *USUAL_PLACES):
            if place.startswith(b"/") and os.access(place + b"/" + name, os.X_OK):
                return [place + b"/" + name, b"-I", b"-S"]
    return []


def is_a_plugin() -> bool:
    """Whether this file stands in the plugin's folder, with all the sources, and not in some Python's packages."""
    return os.path.isfile(FROM_SOURCES)


def needs() -> bytes:
    """What the plugin's sources need of an environment, as one word: it changes with the project's description.

    Empty where there is no such description, as in some Python's packages: nobody can tell then.
    """
    from hashlib import sha256

    try:
        with open(ROOT + "/pyproject.toml", "rb") as file:
            project = file.read().partition(b"[dependency-groups]")[0]
    except OSError:
        return b""
    return sha256(project).hexdigest()[:16].encode()


def why_not_installed(places: "list[bytes]") -> str:
    """What stands in the way of an environment: it is being built, could not be, or nobody has begun."""
    import shlex

    for data in places:
        log = os.fsdecode(data) + "/setup.log"
        if is_locked(data + b"/setup.lock"):
            return f"{progress_in(data)}; try again in a minute (log: {log})"
        failed = why_failed(data)
        if failed:
            return f"its Python environment could not be set up: {failed} (log: {log})"
    return (
        "its Python environment is not there yet: start a new session, which sets it up in about a minute, "
        f"or run pipx install {shlex.quote(ROOT)}"
    )


def why_failed(data: bytes) -> str:
    """Why the last set-up failed; where the disk is too full to keep even that, that it is full. Else empty."""
    return read_small(data + b"/setup-failed").decode("utf-8", "replace") or lacks_room(data)


def lacks_room(data: bytes) -> str:
    """That the disk of the data folder has too little room for a set-up; empty where it has enough."""
    try:
        disk = os.statvfs(data)
    except OSError:
        return ""
    free = disk.f_bavail * disk.f_frsize
    if free >= ROOM:
        return ""
    return f"{free // 10**6} MB are free in {os.fsdecode(data)}, and {ROOM // 10**6} MB are needed"


def data_folders(folder: bytes, env: "dict[bytes, bytes]") -> "list[bytes]":
    """Where the plugin's own environment may stand, best first.

    A command hook is told; the module's processes are not, so each session start leaves it in the runtime folder.
    Before the first one, the place follows from where the client's own file was installed.
    """
    found = [env.get(b"CLAUDE_PLUGIN_DATA", b""), read_small(folder + b"/plugin-data")]
    places = os.fsencode(os.path.abspath(__file__)).split(b"/")
    if len(places) > 8 and places[-7] == b"cache":  # …/plugins/cache/<marketplace>/<plugin>/<version>/hook/lcc_hook/
        found.append(b"/".join([*places[:-7], b"data", places[-5] + b"-" + places[-6]]))
    return [data for data in found if data.startswith(b"/")]


def is_ready(data: bytes) -> bool:
    """Whether the environment in the plugin's data folder is whole, made for what these sources need, and runs."""
    return bool(libraries_in([data])) and needs() in (b"", read_small(data + b"/venv/lcc-needs"))


def progress_in(data: bytes) -> str:
    """How far the set-up is that runs in the data folder, and for how long."""
    import time

    step = read_small(data + b"/setup-step").decode("utf-8", "replace") or "it has just begun"
    since = max(0, int(time.time() - modified(data + b"/setup.log")))
    began = read_small(data + b"/setup.lock")
    if began.isdigit():
        since = max(0, int(time.time()) - int(began))
    return f"its Python environment is being set up for {since} s ({step})"


def environment_state(folder: bytes, env: "dict[bytes, bytes]") -> "dict[str, str]":
    """How the plugin's own environment is, for `lcc doctor`: ``state`` is a machine word.

    ``unknown``: no data folder is known; ``ready``; ``building``; ``failed`` (with ``problem``); ``other-build``
    (with ``build``); ``missing``. All but the first with ``folder`` and ``log``.
    """
    places = data_folders(folder, env)
    if not places:
        return {"state": "unknown"}
    data = places[0]
    failed = read_small(data + b"/setup-failed")
    found = {"folder": name_of(data + b"/venv"), "log": name_of(data + b"/setup.log")}
    if is_ready(data):
        return {**found, "state": "ready"}
    if is_locked(data + b"/setup.lock"):
        return {**found, "state": "building", "problem": progress_in(data)}
    if failed:
        return {**found, "state": "failed", "problem": failed.decode("utf-8", "replace")}
    return {**found, "state": "other-build" if libraries_in([data]) else "missing"}
