"""CPU of `lcc --version`, `lcc recall` and `lcc compact` as whole processes, of two checkouts in pairs.

python scripts/bench_start.py --against CHECKOUT [--python PYTHON] [--session FILE] [--runs N]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from lcc.stash import Stash

START = "from lcc.cli import main; main()"


def cpu(checkout: Path, python: str, words: list[str], home: str) -> float:
    """Seconds of CPU, of the process and its children, that one run of ``lcc WORDS`` from ``checkout`` takes."""
    folders = (checkout, checkout / "daemon", checkout / "hook")
    env = {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    env |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}  # as installed, compiled once
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, "-P", "-c", START, *words], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout}: lcc {' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Prints for each command the medians of both checkouts and the median of the pairs' ratios."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--against", type=Path, required=True, help="the other checkout")
    asked.add_argument("--python", default=sys.executable, help="the Python that runs this checkout")
    asked.add_argument("--against-python", default=sys.executable, help="the Python that runs the other checkout")
    asked.add_argument("--session", type=Path, help="a session for compact; left out where none is given")
    asked.add_argument("--runs", type=int, default=7)
    given = asked.parse_args()
    here = Path(__file__).resolve().parents[1]
    content = b"one line of an output\n" * 200
    commands = [["--version"], ["recall", hashlib.sha256(content).hexdigest()[:12]]]
    if given.session:
        commands.append(["compact", str(given.session.resolve()), "-o", os.devnull])
    with tempfile.TemporaryDirectory() as home:
        Stash(Path(home) / "lcc" / "stash").put(content)
        for words in commands:
            pairs = [
                (cpu(given.against, given.against_python, words, home), cpu(here, given.python, words, home))
                for _ in range(given.runs + 1)
            ][1:]
            before, after = (statistics.median(side) for side in zip(*pairs, strict=True))
            ratio = statistics.median(new / old for old, new in pairs)
            print(f"{words[0]:10} {before:.3f} s -> {after:.3f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
