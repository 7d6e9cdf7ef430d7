"""The `lcc` command of a session: the whole program by the plugin's environment, and without one `lcc recall` alone.

``python3 -I -S -E command.py WORD…``, started by ``hook/bin/lcc``, which a session start puts on the agent's PATH.
Standard library only; runs on Python 3.8 and up.
"""

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.dont_write_bytecode = True

from lcc_hook.client import GiveUpError, runtime_folder
from lcc_hook.places import data_folders, from_sources, is_a_plugin, libraries_in, plain_python, why_not_installed

RUN = b"import sys; sys.argv[:] = ['lcc', *sys.argv[1:]]; from lcc.cli import main; main()"


def program_lcc(folder: bytes, env: "dict[bytes, bytes]") -> "list[bytes]":
    """The command line that is the whole `lcc`. Raises GiveUpError where there is no environment for it."""
    named = env.get(b"LCC_PYTHON")
    if named:
        return [named, b"-I", b"-c", RUN]
    places = data_folders(folder, env)
    libraries = libraries_in(places)
    if libraries and is_a_plugin():
        return from_sources(libraries, b"lcc")
    for place in env.get(b"PATH", b"").split(b":"):
        path = place + b"/lcc"
        if place.startswith(b"/") and os.access(path, os.X_OK) and not is_ours(path):
            return [path]
    raise GiveUpError("not-installed", why_not_installed(places))


def is_ours(path: bytes) -> bool:
    """Whether this is the shim that started us, or another plugin's: following it would go round in a circle."""
    return os.path.isfile(os.path.dirname(os.path.dirname(path)) + b"/lcc_hook/command.py")


def program_recall(env: "dict[bytes, bytes]") -> "list[bytes]":
    """The command line that is `lcc recall` by the standard library; empty where no Python here is new enough."""
    plain = plain_python(env)
    return from_sources(plain, b"lcc") if plain else []


def main(words: "list[bytes]") -> None:
    """Becomes the program. Returns only where that cannot be, after one line on stderr."""
    env = dict(os.environb)
    program: list[bytes] = []
    try:
        program = program_lcc(runtime_folder(env), env)
    except GiveUpError as error:
        if words[:1] == [b"recall"]:
            program = program_recall(env)
        if not program:
            sys.exit(f"lcc: {error.say}")
    try:
        os.execve(program[0], [*program, *words], env)
    except OSError as error:
        sys.exit(f"lcc: {os.fsdecode(program[0])} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main([os.fsencode(word) for word in sys.argv[1:]])
