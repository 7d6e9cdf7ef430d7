"""Time inside session.compact as the real client sees it, for sessions of several sizes, with a warm daemon.

Usage: python scripts/bench_session_compact.py [--runs N] [MB ...]

Needs the development set-up and npm (the client is installed where scripts/install_client.py puts it). Each run is
a fresh client that resumes the session and compacts it; the figure is the client's own, from its debug log.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests"))

from client.claude_process import Claude, Lab  # noqa: E402
from client.conftest import SETTLED, find_client, lab_folder  # noqa: E402
from client.messages_api import Script, serve  # noqa: E402
from making import SessionFile  # noqa: E402


def session_of(lab: Lab, megabytes: int) -> SessionFile:
    """A session of whole-file reads, old enough to go, of about so many MB."""
    session = SessionFile(lab.project)
    session.user("Read everything.")
    size, count = 0, 0
    while size < megabytes * 1_000_000:
        path = lab.write(f"src/{count}.txt", "".join(f'{count}: line {n} "quoted" \\ back\n' for n in range(1000)))
        session.read(f"toolu_{count}", path)
        size, count = size + path.stat().st_size, count + 1
    for number in range(8):
        session.assistant({"type": "text", "text": f"Answer {number}."})
        session.user(f"Question {number}?")
    session.assistant({"type": "text", "text": "Last answer."})
    session.write(lab.home)
    return session


def milliseconds(client: Path, megabytes: int) -> tuple[float, str]:
    """One compaction in a lab of its own: ms inside the hook, and the line that the user read."""
    with lab_folder() as lab, serve(Script([])) as (_, url):
        session = session_of(lab, megabytes)
        subprocess.run(
            [sys.executable, "-m", "lcc_daemon", "start"], env=lab.environment(), check=True, capture_output=True
        )
        with Claude(client, lab, url, plugin_dirs=[CHECKOUT], resume=session.id) as claude:
            said = claude.ask("/compact").said_to_user()
        times = SETTLED.findall(lab.debug_log.read_text(encoding="utf-8", errors="replace"))
        return float(times[-1]), said[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("sizes", type=int, nargs="*", default=[1, 5, 20], metavar="MB")
    asked = parser.parse_args()
    client = find_client("2.1.332")
    print("MB of results | ms inside session.compact: median (minimum, maximum) | the user reads")
    for size in asked.sizes:
        runs = [milliseconds(client, size) for _ in range(asked.runs)]
        times = [each[0] for each in runs]
        print(f"{size} | {statistics.median(times):.0f} ({min(times):.0f}, {max(times):.0f}) | {runs[-1][1]}")


if __name__ == "__main__":
    main()
