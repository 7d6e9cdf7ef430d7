"""CPU of the tests that two checkouts have in common, each run by its own environment.

    python scripts/bench_suite.py --against CHECKOUT

Both have been set up (`python3 scripts/set_up.py --dev`). The cases that both collect under one name are run in both,
one checkout after the other, once to fill the bytecode caches (`--collect-only`) and once for the figure: seconds of
a processor, of the tests and of all processes that they start, and the cases that passed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
_CASE = re.compile(r"^tests/\S.*::.*$", re.MULTILINE)
_PASSED = re.compile(r"(\d+) passed")


def pytest(checkout: Path, *words: str) -> str:
    """What pytest prints in a checkout."""
    command = [str(checkout / ".venv" / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(checkout / ".venv" / "compiled")}
    return subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False).stdout


def cases(checkout: Path) -> list[str]:
    """The names of all cases, in the order in which they are run."""
    return _CASE.findall(pytest(checkout, "--collect-only"))


def run(checkout: Path, names: Sequence[str]) -> tuple[float, int]:
    """Seconds of a processor for those cases, and how many passed."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(names))
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = pytest(checkout, "-n", "auto", "--dist", "loadfile", f"@{file.name}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    passed = _PASSED.search(said)
    if passed is None:
        raise SystemExit(f"{checkout}: nothing passed:\n{said[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(passed[1])


def main() -> int:
    """Print the figure of both, and the share that went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", type=Path, required=True, help="the other checkout")
    other: Path = parser.parse_args().against.resolve()
    known = set(cases(other))
    names = [name for name in cases(HERE) if name in known]
    print(f"{len(names)} cases in common")
    (there, passed_there), (here, passed_here) = (run(checkout, names) for checkout in (other, HERE))
    print(f"there {there:.0f} s of a processor, {passed_there} passed")
    print(f"here  {here:.0f} s of a processor, {passed_here} passed: {1 - here / there:.1%} less")
    return 0


if __name__ == "__main__":
    sys.exit(main())
