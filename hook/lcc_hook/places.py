"""Where our Python package is: the plugin's own environment, an interpreter that is named, or a command on PATH.

Standard library only; runs on Python 3.8 and up.
"""

import os

from lcc_hook.client import BUILD, GiveUpError, name_of
from lcc_hook.files import is_locked, read_small


def interpreter(folder: bytes, env: "dict[bytes, bytes]") -> "list[bytes]":
    """The command line that starts our Python package. hook/README.md says in which order it is looked for."""
    named = env.get(b"LCC_PYTHON")
    if named:
        return [named, b"-I", b"-m", b"lcc_daemon"]
    for data in data_folders(folder, env):
        if is_ready(data):
            return [data + b"/venv/bin/python", b"-I", b"-m", b"lcc_daemon"]
    for place in env.get(b"PATH", b"").split(b":"):
        if place.startswith(b"/") and os.access(place + b"/lcc-daemon", os.X_OK):
            return [place + b"/lcc-daemon"]
    raise GiveUpError("not-installed", why_not_installed(data_folders(folder, env)))


def why_not_installed(places: "list[bytes]") -> str:
    """What stands in the way of an environment: it is being built, could not be, or nobody has begun."""
    import shlex

    for data in places:
        log = os.fsdecode(data) + "/setup.log"
        if is_locked(data + b"/setup.lock"):
            return f"its Python environment is still being set up; try again in a minute (log: {log})"
        failed = read_small(data + b"/setup-failed").decode("utf-8", "replace")
        if failed:
            return f"its Python environment could not be set up: {failed}; a new session tries again (log: {log})"
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return (
        "its Python environment is not there yet: start a new session, which sets it up in about a minute, "
        f"or run pipx install {shlex.quote(root)}"
    )


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
    """Whether the environment in the plugin's data folder was built whole, and from this build."""
    return read_small(data + b"/venv/lcc-build") == BUILD.encode()


def environment_state(folder: bytes, env: "dict[bytes, bytes]") -> "dict[str, str]":
    """How the plugin's own environment is, for `lcc doctor`: ``state`` is a machine word.

    ``unknown``: no data folder is known; ``ready``; ``building``; ``failed`` (with ``problem``); ``other-build``
    (with ``build``); ``missing``. All but the first with ``folder`` and ``log``.
    """
    places = data_folders(folder, env)
    if not places:
        return {"state": "unknown"}
    data = places[0]
    build, failed = read_small(data + b"/venv/lcc-build"), read_small(data + b"/setup-failed")
    found = {"folder": name_of(data + b"/venv"), "log": name_of(data + b"/setup.log"), "build": name_of(build)}
    if is_ready(data):
        return {**found, "state": "ready"}
    if is_locked(data + b"/setup.lock"):
        return {**found, "state": "building"}
    if failed:
        return {**found, "state": "failed", "problem": failed.decode("utf-8", "replace")}
    return {**found, "state": "other-build" if build else "missing"}
