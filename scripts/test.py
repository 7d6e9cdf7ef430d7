"""Sets up everything the tests need, and runs them.

Usage: python3 scripts/test.py [PYTEST ARGUMENTS]

Without arguments: all tests, a file at a time on every processor, those that take long first. Where Node.js is there,
the real Claude Code clients are installed by npm for the tests that drive them; where there is none, those tests are
skipped, and pytest's summary says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from set_up import ENVIRONMENT, ROOT, set_up


def install_clients(python: str) -> None:
    """The clients that the end-to-end tests drive. A failure is told here and again by the skipped tests."""
    if shutil.which("npm") is None:
        print("no npm here: the tests that drive the real client will be skipped", file=sys.stderr)
        return
    done = subprocess.run([python, str(ROOT / "scripts" / "install_client.py")], stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        print("the real client could not be installed: the tests that drive it will be skipped", file=sys.stderr)


def environment() -> dict[str, str]:
    """Ours, with a place in `.venv` for what Python and pytest compile: doing it anew costs each process seconds."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(ENVIRONMENT / "compiled")}


def main() -> int:
    python = str(set_up(dev=True))
    install_clients(python)
    words = [python, "-m", "pytest", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", *sys.argv[1:]]
    return subprocess.run(words, cwd=ROOT, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
