"""Starts the plugin's MCP server: finds the Python environment as the hook client does, and becomes ``lcc mcp``.

Run as ``python3 -I -S -E serve_mcp.py``. Standard library only; runs on Python 3.8 and up.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True

from lcc_hook.client import GiveUpError, runtime_folder  # noqa: E402
from lcc_hook.places import interpreter  # noqa: E402

SERVE = "import sys; sys.argv[:] = ['lcc', 'mcp']; from lcc.cli import main; main()"


def main() -> None:
    """Never returns where there is an environment; else one line on stderr and exit code 1."""
    env = os.environb
    try:
        found = interpreter(runtime_folder(dict(env)), dict(env))
    except GiveUpError as error:
        sys.exit(f"lcc: {error.say}")
    if len(found) == 1:  # lcc-daemon on PATH: lcc stands beside it
        program = [found[0].rpartition(b"/")[0] + b"/lcc", b"mcp"]
    else:
        program = [found[0], b"-I", b"-c", SERVE.encode()]
    try:
        os.execve(program[0], program, dict(env))
    except OSError as error:
        sys.exit(f"lcc: {os.fsdecode(program[0])} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
