"""The fault table of the live path: what was done to it, how the call ended, and how long it took.

    python scripts/fault_table.py [WORD ...]

Each row is a home of its own with real processes of the hook, the daemon and the module in it
(tests/daemon/faults). WORDs choose rows by what their group or name holds. A row ends in a right replacement (every
note was followed, and gave back what it stands for), a skip or a hand-over, within its time and with exit code 0.
Exit code 1 where one does not end as it must.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from daemon.faults.row import Homes, Outcome, Row
from daemon.faults.rows import ROWS


def line(row: Row, outcome: Outcome) -> str:
    """One row of the table, with what was said where it did not end as it must."""
    told = f"| {row.group}: {row.name} | {outcome.ended} | {1000 * outcome.seconds:.0f} ms |"
    return told if outcome.ended == row.ends else f"{told}\n  MUST BE {row.ends}; said: {outcome.said!r}"


def main() -> int:
    """Run the rows that are asked for, as many at once as there are processors."""
    words = sys.argv[1:]
    rows = [row for row in ROWS if not words or any(word in f"{row.group}: {row.name}" for word in words)]
    if not rows:
        print(f"no row holds {' or '.join(words)}", file=sys.stderr)
        return 2
    print("| fault | ends in | time |\n| --- | --- | ---: |", flush=True)
    wrong = 0
    with Homes() as homes, ThreadPoolExecutor(os.cpu_count()) as pool:
        for row, outcome in zip(rows, pool.map(lambda row: row.run(homes), rows), strict=True):
            wrong += outcome.ended != row.ends
            print(line(row, outcome), flush=True)
    print(f"\n{len(rows)} faults, {wrong} of them end otherwise than they must")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
