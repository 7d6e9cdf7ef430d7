"""The systems that lcc works on. Imports nothing that is missing on the others."""

from __future__ import annotations

import sys

NEEDS = "lcc needs Linux or macOS; on Windows install and run it in WSL"


def refuse_windows(program: str) -> None:
    """Ends ``program`` with exit code 2 where there are no Unix sockets, file locks and signals as it needs them."""
    if sys.platform == "win32":
        print(f"{program}: {NEEDS}", file=sys.stderr)
        sys.exit(2)
