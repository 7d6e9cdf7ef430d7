"""A daemon under some thousand mixed requests: how its memory and its descriptors grow.

    python scripts/soak.py [--requests N]

Real processes of the hook ask for compactions of sessions of several sizes, for the other hooks and for the status;
between them come torn frames, refused configurations and events that are none. Prints memory and descriptors as it
goes, and at the end the slope of the memory over the last two thirds, as the least squares have it. Exit code 1
where a call did not end as it must.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from statistics import linear_regression

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from daemon.daemon_world import frame, header, make_event, write_session
from daemon.faults.row import Call, Live

LOOKS = 30
"""How often memory and descriptors are read."""


def memory_kb(pid: int) -> int:
    """The resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def descriptors(pid: int) -> int:
    """The open file descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


class Soak:
    """The requests, and how often each ended how."""

    def __init__(self, live: Live, chosen: random.Random) -> None:
        self.live = live
        self.chosen = chosen
        self.ended: Counter[str] = Counter()
        self.session = write_session(live)
        live.event = make_event(live, files=12, lines=150)
        self.torn_events = (b"{", b"", live.event[:999])

    def ask(self, number: int) -> None:
        """One request of a kind that is drawn."""
        match self.chosen.randrange(10):
            case 0 | 1 | 2:
                files = f"{self.chosen.randrange(1, 12)}"
                self.call(Call(stdin=self.fresh(number), env={"LCC_PRESERVE_RECENT": files}), "replaced")
            case 3:
                self.call(Call(stdin=self.chosen.choice(self.torn_events)), "hand-over: bad-event")
            case 4:
                self.call(Call(env={"LCC_RULES_MODE": "none"}), "hand-over: config")
            case 5:
                self.call(Call(env={"LCC_MIN_REDUCTION": "1"}), "skip: too-little", "skip: nothing-new")
            case 6:
                self.torn()
            case 7:
                self.hook("session-start", number)
            case 8:
                self.hook("pre-compact", number)
            case _:
                self.hook("session-end", number)

    def fresh(self, number: int) -> bytes:
        """The event in a session of its own: what is kept for sessions is kept for many."""
        return json.dumps({**json.loads(self.live.event), "session_id": f"session-{number}"}).encode()

    def call(self, call: Call, *allowed: str) -> None:
        outcome = self.live.ran(call)
        self.ended[outcome.ended if outcome.ended in allowed else f"WRONG: {outcome.ended}"] += 1

    def hook(self, command: str, number: int) -> None:
        told = {"session_id": f"session-{number}", "transcript_path": str(self.session), "cwd": str(self.live.project)}
        done = self.live.client(command, json.dumps(told))
        self.ended[command if done.returncode == 0 else f"WRONG: {command} ended with {done.returncode}"] += 1

    def torn(self) -> None:
        """A peer that leaves in the middle."""
        with self.live.connect() as line, suppress(OSError):
            line.sendall((frame(header("compact")) + (9000).to_bytes(4, "big") + b"{")[: self.chosen.randrange(400)])
        self.ended["torn"] += 1


def main() -> int:
    """Run the soak in a home that is made for it."""
    parser = argparse.ArgumentParser(description="A daemon under mixed requests: memory and descriptors.")
    parser.add_argument("--requests", type=int, default=3000)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="lcc-", dir="/tmp"))
    live = Live(root)
    try:
        pid = live.start()
        soak = Soak(live, random.Random(1))
        looks: list[tuple[int, int, int]] = []
        for number in range(options.requests):
            soak.ask(number)
            if number % max(options.requests // LOOKS, 1) == 0 or number == options.requests - 1:
                looks.append((number + 1, memory_kb(pid), descriptors(pid)))
                print(
                    f"{looks[-1][0]:6} requests {looks[-1][1] / 1024:7.1f} MB {looks[-1][2]:4} descriptors", flush=True
                )
        later = looks[len(looks) // 3 :]
        slope = linear_regression([each[0] for each in later], [each[1] for each in later]).slope
    finally:
        live.end()
        shutil.rmtree(root, ignore_errors=True)
    for ended, times in soak.ended.most_common():
        print(f"{times:8}  {ended}")
    least, most = min(each[2] for each in looks), max(each[2] for each in looks)
    print(f"slope over the last two thirds: {slope:.3f} kB a request; {least} to {most} descriptors")
    return 1 if any(ended.startswith("WRONG") for ended in soak.ended) else 0


if __name__ == "__main__":
    sys.exit(main())
