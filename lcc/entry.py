"""Where the installed `lcc` begins: one sentence on a system that it cannot work on, before anything is imported."""

from __future__ import annotations

from lcc.systems import refuse_windows


def main() -> None:
    """Runs `lcc` with the process's own arguments, and ends with its exit code."""
    refuse_windows("lcc")
    from lcc.cli import main as run

    run()
