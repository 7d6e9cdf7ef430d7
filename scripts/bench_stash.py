"""Measure the stash: one pass against an empty and against a full one, and gc, list and verify of the full one.

    python scripts/bench_stash.py --objects 100000 --calls 1000 --rounds 5

Each round makes a pass with new outputs against both stashes, in turns, so that what else the machine does
falls on both. The full stash is filled by puts of 100 objects, so it has a pack for each.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lcc.relevance import TranscriptCompactionRequest, run_pass
from lcc.relevance.ports import Ports
from lcc.stash import GcLimits, Stash, collect, pack_files, plan_collection
from lcc.transcript import Json, parse_payload

OUTPUT_CHARS = 3000


def fill(stash: Stash, count: int, seed: int) -> None:
    """Put ``count`` objects of random text into the stash, 100 a put, as other sessions of long ago would have."""
    chance = random.Random(seed)
    for _ in range(count // 100):
        stash.put_many([chance.randbytes(900).hex().encode() for _ in range(100)])
    then = time.time() - 100 * 86400
    for pack in pack_files(stash.folder):
        os.utime(pack, (then, then))
    for references in (stash.folder / "refs").iterdir():
        references.unlink()


def transcript(calls: int, seed: int) -> Json:
    """A session of ``calls`` command outputs, every one new and large enough to be stashed."""
    chance = random.Random(seed)
    messages: list[Json] = [{"role": "user", "text": "go"}]
    for index in range(calls):
        use: Json = {"tool_use_id": f"t{index}", "tool": "Bash", "input": {"command": f"run {index}"}}
        text = "\n".join(chance.randbytes(24).hex() for _ in range(OUTPUT_CHARS // 49))
        messages.append({"role": "assistant", "text": "", "toolUses": [use]})
        messages.append({"role": "user", "toolResults": [{"tool_use_id": f"t{index}", "text": text}]})
    return messages


def pass_seconds(stash: Stash, payload: Json) -> tuple[float, float]:
    """How long a pass takes with everything it stashes, parsing left out: by the clock, and of the processor."""
    parsed = parse_payload(payload)
    request = TranscriptCompactionRequest(payload=None, provider="rules", rules_mode="stashed")
    began, cpu = time.perf_counter(), time.process_time()
    report = run_pass(parsed, request, lambda result: result.report, Ports(stash_folder=stash.folder))
    took = time.perf_counter() - began, time.process_time() - cpu
    assert report["tool_calls_stashed"], "nothing was stashed"
    return took


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="lcc-bench-stash-"))
    try:
        full = Stash(base / "full", "full")
        print(f"filling {options.objects:,} objects: {timed(lambda: fill(full, options.objects, 1)):.1f} s")
        empty_times: list[tuple[float, float]] = []
        full_times: list[tuple[float, float]] = []
        for each in range(options.rounds):
            empty = Stash(base / f"empty-{each}", "empty")
            payloads = [transcript(options.calls, 10 + 2 * each + which) for which in (0, 1)]
            order = [(empty, payloads[0], empty_times), (full, payloads[1], full_times)]
            for stash, payload, times in order if each % 2 else reversed(order):
                times.append(pass_seconds(stash, payload))
        for what, which in (("wall", 0), ("processor", 1)):
            a, b = (statistics.median(time[which] for time in times) for times in (empty_times, full_times))
            print(f"pass of {options.calls:,} calls, {what}: empty stash {a:.2f} s, full stash {b:.2f} s", end="")
            print(f", ratio {b / a:.2f}")
        some = next(iter(full.entries())).sha256
        print(f"recall by 12 digits: {1000 * timed(lambda: full.get(some[:12])):.2f} ms")
        print(f"list: {timed(lambda: sum(1 for _ in full.entries())):.2f} s")
        print(f"verify: {timed(lambda: sum(1 for _ in full.check())):.1f} s")
        plan = plan_collection(full, GcLimits(), (), time.time())
        print(f"gc, plan: {timed(lambda: plan_collection(full, GcLimits(), (), time.time())):.2f} s")
        print(f"gc, removing {len(plan.remove):,} objects: {timed(lambda: collect(full, plan)):.1f} s")
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main()
