"""Runs a program of ours from the plugin's own sources: ``PYTHON -I [-S] from_sources.py lcc|lcc-daemon WORD…``.

PYTHON is that of the plugin's environment, which then gives the libraries alone, of whatever build it was made for;
or any Python of 3.11 or newer, which is enough for the rules: ``stand_in`` has what they need of the libraries. So the
first compaction need not wait for the set-up, nor the first one after an upgrade.
"""

import os
import sys

HOOK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(HOOK)
IS_PLAIN = bool(sys.flags.no_site)
"""Whether this Python was started without any libraries."""


def main(words: "list[str]") -> int:
    """Run the program. Returns its exit code."""
    sys.path[:0] = [ROOT, os.path.join(ROOT, "daemon"), HOOK]
    sys.path.append(os.path.join(HOOK, "stand_in"))
    keep_compiled()
    program, *rest = words
    sys.argv[:] = words
    if program == "lcc-daemon":
        from lcc_daemon.cli import main as run_daemon

        code: int = run_daemon(rest)
        return code
    from lcc.cli import main as run_lcc

    run_lcc(rest)
    return 0


def keep_compiled() -> None:
    """Compiled sources stand in the environment, never beside the sources: the client copies that folder."""
    if IS_PLAIN:
        sys.dont_write_bytecode = True
    else:
        sys.pycache_prefix = os.path.join(sys.prefix, "compiled")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
