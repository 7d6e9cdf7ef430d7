"""Starts the plugin's MCP server: finds the Python environment as the hook client does, and becomes ``lcc mcp``.

Run as ``python3 -I -S -E serve_mcp.py``. Standard library only; runs on Python 3.8 and up.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True

from lcc_hook.client import GiveUpError, runtime_folder  # noqa: E402
from lcc_hook.command import program_lcc  # noqa: E402
from lcc_hook.environment import begin_quietly  # noqa: E402


def main() -> None:
    """Never returns where there is an environment; else one line on stderr and exit code 1."""
    env = dict(os.environb)
    try:
        program = [*program_lcc(runtime_folder(env), env), b"mcp"]
    except GiveUpError as error:
        begin_quietly(runtime_folder(env), env)
        sys.exit(f"lcc: {error.say}")
    try:
        os.execve(program[0], program, env)
    except OSError as error:
        sys.exit(f"lcc: {os.fsdecode(program[0])} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
