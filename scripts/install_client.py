"""Installs the Claude Code clients that the tests drive, by npm, outside the checkout.

Usage: python scripts/install_client.py [--where] [VERSION ...]

Without versions: the two that the tests need. Each lies in a folder of its own under $LCC_TEST_CLIENTS, else
~/.cache/lcc-test-clients, and is left alone where it is already there. Prints the program's path, one line
for each version. --where only looks: exit code 1 where a version is missing. Exit code 2: npm is missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CURRENT, OLDER = "2.1.332", "2.1.197"
PACKAGE = "@anthropic-ai/claude-code"


def clients_folder() -> Path:
    """Where the clients lie."""
    named = os.environ.get("LCC_TEST_CLIENTS")
    return Path(named) if named else Path.home() / ".cache" / "lcc-test-clients"


def program(version: str) -> Path:
    """The client's program, whether it is there or not."""
    return clients_folder() / version / "node_modules" / ".bin" / "claude"


def install(npm: str, version: str) -> None:
    """Install beside and rename, so that a broken install is never taken for a client."""
    folder = clients_folder()
    folder.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=folder))
    try:
        subprocess.run(
            [npm, "install", "--prefix", beside, "--no-audit", "--no-fund", "--loglevel=error", f"{PACKAGE}@{version}"],
            check=True,
            stdout=sys.stderr,
            stdin=subprocess.DEVNULL,
            timeout=600,
        )
        try:
            beside.rename(folder / version)
        except OSError:
            if not program(version).exists():  # else another process was first
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--where", action="store_true", help="only print where they are")
    parser.add_argument("versions", nargs="*", default=[CURRENT, OLDER])
    asked = parser.parse_args()
    missing = [version for version in asked.versions if not program(version).exists()]
    if missing and not asked.where:
        npm = shutil.which("npm")
        if npm is None:
            print("npm is missing: install Node.js with npm", file=sys.stderr)
            return 2
        try:
            for version in missing:
                install(npm, version)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"the client could not be installed: {error}", file=sys.stderr)
            return 1
    for version in asked.versions:
        print(program(version))
    return 1 if missing and asked.where else 0


if __name__ == "__main__":
    sys.exit(main())
