"""Where the installed `lcc-daemon` begins."""

from __future__ import annotations

from lcc.systems import refuse_windows


def main() -> int:
    """Runs `lcc-daemon` with the process's own arguments; returns its exit code."""
    refuse_windows("lcc-daemon")
    from lcc_daemon.cli import main as run

    return run()
