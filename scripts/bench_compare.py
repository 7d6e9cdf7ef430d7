"""lcc beside local-context-compiler 1.2.0, on the same files in one run.

    python scripts/bench_compare.py [SESSIONS_FOLDER] [--other PYTHON] [--calls N,N,...] [--limit SECONDS]

The other program runs in an environment of its own: ``--other`` names its Python, else one is made in a folder of
this run with pip. Both get the same payload files, made of the real sessions (with the workspace that each session
recorded put back on disk) and of made-up sessions of growing length. Measured: the pass alone (best of three, of
one for a long session), the whole command from start to exit, the peak memory of a process that ran the pass,
the share of the results' characters that went, and the notes that cannot be followed by a program that shares
nothing with either (scripts/follow.py). A run that takes longer than the limit is stopped and shown as such.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import grown
from follow import follow, results_of
from replay import cuts, sessions, write_files

OTHER = "local-context-compiler==1.2.0"
RUNNER = Path(__file__).with_name("compare_runner.py")
CLIENT = Path(__file__).parents[1] / "hook" / "lcc_hook" / "client.py"
ROUND_TRIPS = 15
MODES = ("lossless", "recoverable", "stashed")
SHARED = Path(__file__).parents[2] / "shared" / "sessions"


class Program:
    """One of the two, in its environment."""

    def __init__(self, name: str, python: Path, folder: Path, limit: float) -> None:
        self.name, self.python, self.folder, self.limit = name, python, folder, limit
        self.command = python.with_name("lcc")
        self.stash = folder / "stash"
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYTHONPATH", "LCC_"))},
            "LCC_STASH_DIR": str(self.stash),
            "LCC_DISABLE_NETWORK": "1",
        }
        folder.mkdir(parents=True)

    def run_pass(self, payload: Path, mode: str, root: str, repeats: int) -> dict[str, Any] | None:
        """The runner's figures with the compacted messages; None when it took too long."""
        out = self.folder / "out.json"
        words = [str(self.python), str(RUNNER), str(payload), mode, root, str(repeats), str(out)]
        done = self._run(words)
        if done is None:
            return None
        return {**json.loads(done.stdout), "messages": json.loads(out.read_text(encoding="utf-8"))}

    def run_command(self, payload: Path, mode: str) -> float | None:
        """CPU seconds of the whole command, from its start to its exit."""
        words = [str(self.command), "compact", str(payload), "-q", "go on", "--mode", "tool-calls"]
        words += ["--provider", "rules", "--rules-mode", mode, "-o", str(self.folder / "cli.json")]
        words += ["-r", str(self.folder / "report.json")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if self._run(words) is None:
            return None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def time_of_day(self, payload: Path, mode: str) -> float:
        """Seconds of the whole command by the clock, as someone waits for it."""
        started = time.perf_counter()
        self.run_command(payload, mode)
        return time.perf_counter() - started

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str] | None:
        """Run a program of this environment; None when it used up its CPU time."""
        limit = math.ceil(self.limit)
        done = subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {limit}; exec "$@"', "sh", *words],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL, 128 + signal.SIGXCPU, 128 + signal.SIGKILL):
            return None
        done.check_returncode()
        return done

    def stashed(self, names: list[str]) -> dict[str, str | None]:
        """Texts from the program's stash, by id."""
        source, target = self.folder / "ids.json", self.folder / "texts.json"
        source.write_text(json.dumps(names), encoding="utf-8")
        words = [str(self.python), str(RUNNER), "recall", str(source), str(target)]
        subprocess.run(words, env=self.env, cwd=self.folder, check=True)
        texts: dict[str, str | None] = json.loads(target.read_text(encoding="utf-8"))
        return texts


def other_python(folder: Path) -> Path:
    """An environment with the other program, made with pip."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", OTHER], check=True)
    return python


def share_removed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> tuple[int, int]:
    """The characters of all results, and how many of them went."""
    old, new = results_of(before), results_of(after)
    total = sum(map(len, old.values()))
    return total, total - sum(len(new.get(name, "")) for name in old)


def seconds(value: float | None, limit: float) -> str:
    if value is None:
        return f"> {limit:.0f} s"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"


def real_sessions(programs: list[Program], folder: Path, work: Path) -> None:
    """The table over real sessions: all files together, by mode."""
    payloads = []
    for path in sessions(folder):
        root = work / "workspaces" / path.stem
        cut = next(cuts(path, (1.0,), root))
        write_files(cut.files)
        target = work / f"{path.stem}.json"
        target.write_text(json.dumps(cut.before), encoding="utf-8")
        payloads.append((target, root, cut.before))
    print(f"{len(payloads)} real sessions, all together\n")
    print("| mode | program | pass (sum) | command (median) | peak memory | freed | notes | cannot be followed |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for mode in MODES:
        for program in programs:
            print(_real_row(program, mode, payloads), flush=True)


def _real_row(program: Program, mode: str, payloads: list[tuple[Path, Path, list[dict[str, Any]]]]) -> str:
    passes, commands, peaks, total, gone, notes = 0.0, [], [], 0, 0, 0
    broken: Counter[str] = Counter()
    for payload, root, before in payloads:
        figures = program.run_pass(payload, mode, str(root), 3)
        command = program.run_command(payload, mode)
        if figures is None or command is None:
            return f"| {mode} | {program.name} | over the limit | | | | | |"
        passes += figures["pass_s"]
        commands.append(command)
        peaks.append(figures["peak_mb"])
        characters, removed = share_removed(before, figures["messages"])
        total, gone = total + characters, gone + removed
        names = [found.target for found in follow(before, figures["messages"]).values() if found.kind == "stash"]
        texts = program.stashed([name for name in names if name])
        followed = follow(before, figures["messages"], texts.get)
        notes += len(followed)
        broken.update(found.kind for found in followed.values() if not found.works)
    failed = ", ".join(f"{number} {kind}" for kind, number in sorted(broken.items())) or "0"
    return (
        f"| {mode} | {program.name} | {seconds(passes, 0)} | {seconds(median(commands), 0)} | {max(peaks):.0f} MB "
        f"| {gone / total:.1%} | {notes} | {failed} |"
    )


def growth(programs: list[Program], mode: str, sizes: list[int], work: Path, limit: float) -> None:
    """The table over sessions of growing length: the pass and the whole command."""
    print(f"\nMade-up sessions of growing length, mode {mode}\n")
    print("| calls | size | program | pass | command | peak memory | freed | cannot be followed |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    too_slow: set[str] = set()
    for calls in sizes:
        before = grown.session(calls)
        payload = work / f"grown-{calls}.json"
        payload.write_text(json.dumps(before), encoding="utf-8")
        size = f"{payload.stat().st_size / 1e6:.1f} MB"
        for program in programs:
            row = f"| {calls:,} | {size} | {program.name} |"
            if program.name in too_slow:
                print(f"{row} not tried | | | | |", flush=True)
                continue
            figures = program.run_pass(payload, mode, "", 3 if calls <= 1000 else 1)
            if figures is None:
                too_slow.add(program.name)
                print(f"{row} > {limit:.0f} s | | | | |", flush=True)
                continue
            command = seconds(program.run_command(payload, mode), limit)
            total, gone = share_removed(before, figures["messages"])
            followed = follow(before, figures["messages"])
            broken = sum(not found.works for found in followed.values())
            print(
                f"{row} {seconds(figures['pass_s'], limit)} | {command} | {figures['peak_mb']:.0f} MB "
                f"| {gone / total:.1%} | {broken} |",
                flush=True,
            )


class Hook:
    """What Claude Code starts for lcc: the hook client, with a daemon of this run's own behind it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.env = {
            "HOME": str(folder),
            "PATH": os.environ.get("PATH", ""),
            "LCC_RUNTIME_DIR": str(folder / "run"),
            "LCC_STATE_DIR": str(folder / "state"),
            "LCC_PYTHON": sys.executable,
            "LCC_BUDGET_MS": "30000",
            "LCC_START_BUDGET_MS": "60000",
        }
        self.folder = folder

    def round_trip(self, event: bytes) -> tuple[float, dict[str, Any]]:
        """Seconds from the client's start to its exit, and the plan that it printed."""
        words = [sys.executable, "-I", "-S", "-E", str(CLIENT), "compact"]
        started = time.perf_counter()
        done = subprocess.run(words, input=event, env=self.env, cwd=self.folder, capture_output=True, check=True)
        return time.perf_counter() - started, json.loads(done.stdout)

    def stop(self) -> None:
        subprocess.run([sys.executable, "-m", "lcc_daemon", "stop"], env=self.env, capture_output=True, check=False)


def hook_table(other: Program, payloads: dict[str, list[dict[str, Any]]], work: Path) -> None:
    """The hook's round trip with a warm daemon beside the other program's command, on the same messages."""
    print("\nThe hook's round trip (process start to exit, warm daemon) beside the other's command, median\n")
    print("| session | hook of lcc | command of the other | times faster |")
    print("| --- | ---: | ---: | ---: |")
    # A socket's path must be short, so the daemon's folder is not below the run's own.
    with tempfile.TemporaryDirectory(prefix="lcc-hook-") as short:
        hook = Hook(Path(short) / "h")
        try:
            for name, messages in payloads.items():
                event = json.dumps({"v": 1, "trigger": "manual", "session_id": "compare", "cwd": short,
                                    "options": {"min_reduction": 0}, "messages": messages}).encode()  # fmt: skip
                _, plan = hook.round_trip(event)
                ours = median(hook.round_trip(event)[0] for _ in range(ROUND_TRIPS))
                payload = work / "event.json"
                payload.write_text(json.dumps(messages), encoding="utf-8")
                theirs = median(other.time_of_day(payload, "recoverable") for _ in range(3))
                title = f"{name} ({plan.get('action')})"
                print(f"| {title} | {seconds(ours, 0)} | {seconds(theirs, 0)} | {theirs / ours:.0f} |", flush=True)
        finally:
            hook.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="lcc beside local-context-compiler on the same files.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--other", type=Path, metavar="PYTHON")
    parser.add_argument("--calls", default="100,1000,10000,50000")
    parser.add_argument("--limit", type=float, default=300.0, metavar="SECONDS")
    options = parser.parse_args()
    # Not in the system's temporary folder: the other program points at no file there.
    place = Path.home() / ".cache"
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lcc-compare-", dir=place) as name:
        work = Path(name)
        other = options.other.absolute() if options.other else other_python(work / "environment")
        programs = [
            Program("lcc", Path(sys.executable).absolute(), work / "ours", options.limit),
            Program(OTHER, other, work / "theirs", options.limit),
        ]
        if options.folder.is_dir():
            real_sessions(programs, options.folder, work)
        else:
            print(f"{options.folder}: no such folder; made-up sessions only")
        events = {"1,000 made-up calls": grown.session(1000)}
        if options.folder.is_dir():
            real = {path.name: next(cuts(path, (1.0,), work)) for path in sessions(options.folder)}
            largest = max(real.values(), key=lambda cut: sum(map(len, results_of(cut.before).values())))
            events = {largest.session: largest.before, **events}
        hook_table(programs[1], events, work)
        for mode in ("lossless", "recoverable"):
            growth(programs, mode, [int(calls) for calls in options.calls.split(",")], work, options.limit)


if __name__ == "__main__":
    main()
