"""Sets up everything the tests need, and runs them.

Usage: python3 scripts/test.py [PYTEST ARGUMENTS]

Without arguments: all tests, a file at a time on every processor. Where Node.js is there, the real Claude Code
clients are installed by npm for the tests that drive them; where there is none, those tests are skipped, and
pytest's summary says so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from set_up import ROOT, set_up


def install_clients(python: str) -> None:
    """The clients that the end-to-end tests drive. A failure is told here and again by the skipped tests."""
    if shutil.which("npm") is None:
        print("no npm here: the tests that drive the real client will be skipped", file=sys.stderr)
        return
    done = subprocess.run([python, str(ROOT / "scripts" / "install_client.py")], stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        print("the real client could not be installed: the tests that drive it will be skipped", file=sys.stderr)


def main() -> int:
    python = str(set_up(dev=True))
    install_clients(python)
    spread = ["-n", "auto", "--dist", "loadfile"]
    return subprocess.run([python, "-m", "pytest", *spread, *sys.argv[1:]], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
