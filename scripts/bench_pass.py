"""How the cost of one pass grows: CPU time against calls, against reading the same bytes, and peak memory.

    python scripts/bench_pass.py                    # 1,000, 10,000 and 50,000 calls, every mode
    python scripts/bench_pass.py --sizes 1000 4000 --modes lossless disk
    python scripts/bench_pass.py --adversarial      # sessions made to be expensive
    python scripts/bench_pass.py --profile disk     # what one pass spends its time on
    python scripts/bench_pass.py --against CHECKOUT [--sessions FOLDER]   # the ratio to another version, mode by mode

A session is made from a fixed seed: file reads (whole and in part, some repeated, some of files that were edited
later), commands, searches, outputs printed again and outputs printed again with more around them. Each measurement
is a fresh process: `time.process_time` from the file's bytes to the answer's bytes (reading, deciding, proving,
rendering), and the peak of its memory above what it held before it read the file. "loads" is `orjson.loads` of the
same bytes, in a fresh process too. The exponent is the slope of log(CPU) over log(calls): 1.0 is linear.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import json
import math
import os
import pstats
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

SIZES = (1_000, 10_000, 50_000)
REALISTIC = "an ordinary session"
MODES = ("lossless", "proxy", "disk", "stashed", "auto", "lossy")
Message = dict[str, Any]
WORDS = "parse token index buffer request handler session result value cursor offset window encode stream".split()


class Workspace:
    """Files of code-like lines, held in memory until the session is over and they are written."""

    def __init__(self, folder: Path, count: int, rng: random.Random) -> None:
        self.folder = folder
        self.rng = rng
        self.files = {
            str(folder / f"pkg{number % 37}" / f"module_{number}.py"): [
                self.line() for _ in range(int(min(4000, 20 + rng.lognormvariate(4.0, 0.9))))
            ]
            for number in range(count)
        }
        self.paths = list(self.files)

    def line(self) -> str:
        """One line of code, most of them unlike any other."""
        rng = self.rng
        if rng.random() < 0.12:
            return ""
        words = rng.sample(WORDS, 3)
        return f"{'    ' * rng.randrange(4)}{words[0]}_{words[1]} = {words[2]}({rng.randrange(100_000)})"

    def write(self) -> None:
        """Put the files on the disk as the session left them."""
        for path, lines in self.files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text("\n".join(lines) + "\n")


def realistic(count: int, folder: Path, seed: int = 7) -> list[Message]:
    """``count`` calls of an ordinary session; its files are written under ``folder``."""
    rng = random.Random(seed)
    space = Workspace(folder, max(10, count // 20), rng)
    earlier: list[str] = []
    messages: list[Message] = [{"role": "user", "text": "Mend the parser and run the tests."}]
    for number in range(count):
        tool, given, text = _call(rng, space, earlier)
        if len(earlier) < 400:
            earlier.append(text)
        else:
            earlier[rng.randrange(400)] = text
        messages += _pair(number, tool, given, text)
        if number % 25 == 24:
            messages.append({"role": "user", "text": f"Go on with part {number // 25}."})
    space.write()
    return messages


def _call(rng: random.Random, space: Workspace, earlier: list[str]) -> tuple[str, Message, str]:
    kind = rng.random()
    path = space.paths[int(len(space.paths) * rng.random() ** 2)]
    lines = space.files[path]
    if kind < 0.38:
        first, size = 1, len(lines)
        given: Message = {"file_path": path}
        if rng.random() < 0.5 or size > 200:
            first = rng.randrange(1, len(lines) + 1)
            size = min(len(lines) - first + 1, rng.choice((20, 50, 100)))
            given |= {"offset": first, "limit": size}
        shown = lines[first - 1 : first - 1 + size]
        return "Read", given, "\n".join(f"{n:6d}→{line}" for n, line in enumerate(shown, first))
    if kind < 0.43:
        index = rng.randrange(len(lines))
        lines[index] = space.line()
        return "Edit", {"file_path": path, "new_string": lines[index]}, f"The file {path} has been updated."
    if kind < 0.51 and earlier:
        return "Bash", {"command": f"make log-{rng.randrange(9)}"}, rng.choice(earlier)
    if kind < 0.58 and earlier:
        around = [space.line() for _ in range(rng.randrange(1, 9))]
        return "Bash", {"command": "make all"}, "\n".join([*around, rng.choice(earlier)[:20_000], *around])
    size = int(min(60_000, rng.lognormvariate(6.1, 1.4)))
    text = []
    while size > 0:
        text.append(f"{rng.choice(space.paths)}:{rng.randrange(900)}: {space.line()}")
        size -= len(text[-1])
    if kind < 0.75:
        return "Grep", {"pattern": rng.choice(WORDS), "path": str(space.folder)}, "\n".join(text)
    return "Bash", {"command": f"pytest -q tests/test_{rng.randrange(500)}.py"}, "\n".join(text)


def _pair(number: int, tool: str, given: Message, text: str) -> list[Message]:
    call_id = f"toolu_{number:08d}"
    return [
        {"role": "assistant", "text": "", "toolUses": [{"tool_use_id": call_id, "tool": tool, "input": given}]},
        {"role": "user", "toolResults": [{"tool_use_id": call_id, "text": text}]},
    ]


def _log_lines(number: int) -> str:
    head = ["=" * 120, "starting the long build with every option that there is, as always " * 2]
    return "\n".join([*head * 10, f"step {number}", *head * 3])


ADVERSARIAL: dict[str, Callable[[int], str]] = {
    "same long lines": _log_lines,
    "all identical": lambda number: _log_lines(0),
    "only empty lines": lambda number: "\n" * (1000 + number % 700),
    "one line each": lambda number: f"{number} " + "x" * 1600,
    "prefixes of one": lambda number: "\n".join(f"line {n} of the one log" for n in range(20 + number % 100)),
    "reminders": lambda number: "\n\n<system-reminder>" * 80 + str(number),
    "numbered rows": lambda number: "\n".join(f"{n}\t{number % 7}" for n in range(1, 300)),
}


def adversarial(name: str, count: int, folder: Path) -> list[Message]:
    """``count`` reads of few files whose outputs are made to be expensive."""
    text = ADVERSARIAL[name]
    messages: list[Message] = [{"role": "user", "text": "Go on."}]
    for number in range(count):
        messages += _pair(number, "Read", {"file_path": str(folder / f"f{number % 3}")}, text(number))
    for number in range(3):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_text(text(number))
    return messages


def measure(mode: str, payload: Path, root: str) -> dict[str, float]:
    """Run one pass in this process, which must be fresh; CPU seconds, peak bytes, and what was removed."""
    from lcc.relevance import run_pass
    from lcc.transcript import read_transcript, render

    raw_size = payload.stat().st_size
    baseline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    raw = payload.read_bytes()
    transcript = read_transcript(raw)
    parsed = time.process_time()
    request, ports = _request(mode, root)
    size = run_pass(transcript, request, lambda result: len(render(result.transcript, result.edits)), ports)
    ended = time.process_time()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - baseline) * (1 if sys.platform == "darwin" else 1024)
    return {
        "bytes": raw_size,
        "cpu": ended - started,
        "read": parsed - started,
        "peak": peak,
        "removed": 1 - size / raw_size,
    }


def _request(mode: str, root: str) -> tuple[Any, Any]:
    from lcc.relevance import TranscriptCompactionRequest
    from lcc.relevance.ports import Ports

    options: dict[str, Any] = {"rules_mode": {"proxy": "recoverable", "disk": "recoverable"}.get(mode, mode)}
    if mode in ("disk", "stashed", "auto"):
        options["workspace_root"] = root
    folder = Path(root).parent / "stash" if mode in ("stashed", "auto") else None
    return TranscriptCompactionRequest(payload=None, provider="rules", **options), Ports(stash_folder=folder)


def measure_loads(payload: Path) -> dict[str, float]:
    """What it costs a fresh process to read the same bytes with orjson."""
    import orjson

    raw = payload.read_bytes()
    started = time.process_time()
    document = orjson.loads(raw)
    ended = time.process_time()
    return {"cpu": ended - started, "messages": len(document["messages"])}


def profile(mode: str, payload: Path, root: str) -> None:
    """Print what one pass spends its time on."""
    from lcc.relevance import run_pass
    from lcc.transcript import read_transcript, render

    request, ports = _request(mode, root)
    profiler = cProfile.Profile()
    profiler.enable()
    transcript = read_transcript(payload.read_bytes())
    run_pass(transcript, request, lambda result: render(transcript, result.edits), ports)
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def fresh(*arguments: object, checkout: Path | None = None) -> str:
    """What this script, or that of another ``checkout``, prints in a process of its own.

    Sessions are made in one too: a process begins with the peak memory of the one that started it.
    """
    place = Path(__file__).parents[1] if checkout is None else checkout
    command = [sys.executable, str(place / "scripts" / "bench_pass.py"), *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(place)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise SystemExit(f"bench_pass: the measuring process failed:\n{done.stderr}")
    return done.stdout


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of log(time) over log(size), least squares; NaN for a single size."""
    if len(sizes) < 2:
        return math.nan
    x, y = [math.log(size) for size in sizes], [math.log(max(t, 1e-9)) for t in times]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def make(kind: str, size: int, payload: Path, root: Path) -> None:
    """Write a session of ``size`` calls to ``payload`` and its files under ``root``."""
    messages = realistic(size, root) if kind == REALISTIC else adversarial(kind, size, root)
    payload.write_text(json.dumps({"messages": messages}, ensure_ascii=False))


def table(kind: str, sizes: Sequence[int], modes: Sequence[str], repeat: int) -> Iterator[str]:
    """The lines of the table of one kind of session."""
    yield f"{'mode':<10}{'calls':>8}{'MB':>8}{'CPU s':>9}{'us/call':>9}{'x loads':>9}{'peak x':>8}{'removed':>9}"
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="lcc-bench-") as folder:
            root, payload = Path(folder, "work"), Path(folder, "session.json")
            fresh("--make", kind, size, payload, root)
            loads = min(json.loads(fresh("--child", "loads", payload, root))["cpu"] for _ in range(repeat))
            for mode in modes:
                found = min(
                    (json.loads(fresh("--child", mode, payload, root)) for _ in range(repeat)),
                    key=lambda one: float(one["cpu"]),
                )
                times[mode].append(found["cpu"])
                yield (
                    f"{mode:<10}{size:>8}{found['bytes'] / 1e6:>8.1f}{found['cpu']:>9.3f}"
                    f"{found['cpu'] / size * 1e6:>9.0f}{found['cpu'] / loads:>9.1f}"
                    f"{found['peak'] / found['bytes']:>8.1f}{found['removed']:>9.1%}"
                )
    for mode in modes:
        yield f"{mode:<10}exponent {exponent(sizes, times[mode]):.2f}"


def compare(checkout: Path, payloads: Sequence[Path], root: Path, modes: Sequence[str], repeat: int) -> Iterator[str]:
    """The lines of a table: CPU time and peak memory of the passes over ``payloads``, there and here.

    Both versions run in turns, each measurement in a fresh process of this Python, and the best of ``repeat`` counts.
    """
    yield f"{'mode':<10}{'passes':>8}{'there s':>9}{'here s':>9}{'ratio':>8}{'memory':>8}"
    for mode in modes:
        best: dict[Path, tuple[float, float]] = {}
        for place in (checkout, Path(__file__).parents[1]):
            best[place] = (0.0, 0.0)
        for payload in payloads:
            found: dict[Path, list[dict[str, float]]] = {place: [] for place in best}
            for _ in range(repeat):
                for place, runs in found.items():
                    shutil.rmtree(root.parent / "stash", ignore_errors=True)
                    runs.append(json.loads(fresh("--child", mode, payload, root, checkout=place)))
            for place, runs in found.items():
                cpu, peak = best[place]
                best[place] = (cpu + min(run["cpu"] for run in runs), peak + min(run["peak"] for run in runs))
        (cpu, peak), (cpu_here, peak_here) = best.values()
        ratios = f"{cpu_here / cpu:>8.2f}{peak_here / peak:>8.2f}"
        yield f"{mode:<10}{len(payloads):>8}{cpu:>9.3f}{cpu_here:>9.3f}{ratios}"


def known_modes(checkout: Path) -> list[str]:
    """The modes that another version's own bench_pass.py knows."""
    text = (checkout / "scripts" / "bench_pass.py").read_text()
    found = re.search(r"^MODES = (\(.*\))$", text, re.MULTILINE)
    return [] if found is None else list(ast.literal_eval(found[1]))


def main() -> None:
    """Print the tables that the options ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of calls")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--adversarial", action="store_true", help="sessions made to be expensive")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each measurement; the fastest counts")
    parser.add_argument("--profile", metavar="MODE", choices=MODES, help="profile one pass at the largest size")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another version of this project")
    parser.add_argument("--sessions", type=Path, metavar="FOLDER", help="with --against: session files (*.jsonl)")
    parser.add_argument("--child", nargs=3, metavar=("MODE", "PAYLOAD", "ROOT"), help=argparse.SUPPRESS)
    parser.add_argument("--make", nargs=4, metavar=("KIND", "SIZE", "PAYLOAD", "ROOT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        mode, payload, root = options.child
        print(json.dumps(measure_loads(Path(payload)) if mode == "loads" else measure(mode, Path(payload), root)))
    elif options.make:
        kind, size, payload, root = options.make
        make(kind, int(size), Path(payload), Path(root))
    elif options.profile:
        with tempfile.TemporaryDirectory(prefix="lcc-bench-") as folder:
            root, file = Path(folder, "work"), Path(folder, "session.json")
            fresh("--make", REALISTIC, max(options.sizes), file, root)
            profile(options.profile, file, str(root))
    elif options.against:
        with tempfile.TemporaryDirectory(prefix="lcc-bench-") as folder:
            root = Path(folder, "work")
            payloads = sorted(options.sessions.glob("*.jsonl")) if options.sessions else [Path(folder, "session.json")]
            if not options.sessions:
                fresh("--make", REALISTIC, max(options.sizes), payloads[0], root)
            modes = [mode for mode in options.modes if mode in known_modes(options.against)]
            for line in compare(options.against.resolve(), payloads, root, modes, options.repeat):
                print(line, flush=True)
    else:
        for kind in ADVERSARIAL if options.adversarial else [REALISTIC]:
            print(f"\n{kind}")
            for line in table(kind, options.sizes, options.modes, options.repeat):
                print(line, flush=True)


if __name__ == "__main__":
    main()
