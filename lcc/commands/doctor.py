"""`lcc doctor`: everything that can stand in the way of a compaction, and the next step for each."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False) -> None:
    """Check the client, the plugin, the daemon, the configuration, the stash and the disk.

    Changes nothing. Exit code 1 when something stands in the way of a compaction.
    """
    from lcc import doctor as checks

    found = checks.doctor()
    if as_json:
        sys.stdout.buffer.write(checks.as_json(found) + b"\n")
    else:
        sys.stdout.write(checks.render(found))
    if checks.failed(found):
        raise typer.Exit(1)
