"""Runs every case of a folder and prints its name and outcome; exit 1 when one fails.

    python scripts/run_cases.py FOLDER [NAME ...]

A case is a folder with a run.py, a run.sh, or a README.md with a command in a ```sh block, which is run in a copy of
the folder. What tells the outcome is one of these; where there is none of them, the row is "read": what was expected
stands beside what was got, for a person. NAMEs are beginnings of names. Exit 2: bad words, or no `lcc`.

- a run.py, and a folder ``live-…``, which drives the client that CLAUDE names (skipped without it): the exit code
- "Expected: … kept" in the README: whether the report keeps the calls that it names
- a line that begins with FAIL, or a fault of lcc itself: a failure, whatever else is said
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Verdict = Literal["ok", "FAIL", "read", "skip"]

SECONDS = 180
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_EXPECTED = re.compile(r"^(?:Expected|Right):? ?(.*)$", re.MULTILINE)
_KEPT = re.compile(r"`?(\w+)`?(?: and `?(\w+)`?)? (?:is |are )?(?:kept|stays?)\b")
_DECIDED = re.compile(r"^(\S+) (keep|replace|dedupe|trim|drop) ", re.MULTILINE)
_FAULT = re.compile(r"^FAIL|a fault in lcc", re.MULTILINE)


class Outcome(NamedTuple):
    """What became of a case, and why in a few words."""

    verdict: Verdict
    why: str


class Ran(NamedTuple):
    """What a case's program said, its exit code, and the decisions of its report, by call id."""

    code: int
    said: str
    decisions: Mapping[str, str]

    @property
    def last(self) -> str:
        """The last line that says something."""
        return next((line for line in reversed(self.said.splitlines()) if line.strip()), "")[:160]


def cases_in(folder: Path) -> Iterator[Path]:
    """The folders with a case, at any depth, by name."""
    for place in sorted(path for path in folder.rglob("*") if path.is_dir()):
        if (place / "run.py").exists() or (place / "run.sh").exists() or _BLOCK.search(_readme(place)):
            yield place


def _readme(place: Path) -> str:
    readme = place / "README.md"
    return readme.read_text("utf-8") if readme.exists() else ""


def outcome_of(case: Path, env: Mapping[str, str]) -> Outcome:
    """Runs a case."""
    drives_client = case.name.startswith("live-")
    if drives_client and "CLAUDE" not in env:
        return Outcome("skip", "name the client's program in CLAUDE")
    try:
        ran = _run(case, env)
    except subprocess.TimeoutExpired:
        return Outcome("FAIL", f"no end within {SECONDS} seconds")
    if _FAULT.search(ran.said):
        return Outcome("FAIL", ran.last)
    if (case / "run.py").exists() or drives_client:
        return Outcome("ok" if ran.code == 0 else "FAIL", f"exit code {ran.code}: {ran.last}")
    expected = _EXPECTED.search(_readme(case))
    kept = _KEPT.search(expected[1]) if expected else None
    calls = [call for call in kept.groups() if call in ran.decisions] if kept else []
    if not calls:
        return Outcome("read", f"expected: {expected[1] if expected else '?'} | got: exit code {ran.code}, {ran.last}")
    wrong = [f"{call} {ran.decisions[call]}" for call in calls if ran.decisions[call] != "keep"]
    return Outcome("FAIL" if wrong else "ok", ", ".join(wrong or [f"{call} kept" for call in calls]))


def _run(case: Path, env: Mapping[str, str]) -> Ran:
    """A program of the case's own in its place; a command of its README in a copy. Raises TimeoutExpired."""
    with tempfile.TemporaryDirectory(prefix="lcc-case-") as work:
        place = case
        if (case / "run.py").exists():
            command = [sys.executable, "run.py"]
        elif (case / "run.sh").exists():
            command = ["bash", "run.sh"]
        else:
            place = Path(work) / "case"
            shutil.copytree(case, place, symlinks=True)
            command = ["bash", "-c", "\n".join(_BLOCK.findall(_readme(case)))]
        done = subprocess.run(
            command, cwd=place, env=env, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
        )
        said = done.stdout + done.stderr
        return Ran(done.returncode, said, dict(_DECIDED.findall(said)) or _decisions(place))


def _decisions(place: Path) -> dict[str, str]:
    for report in sorted(place.glob("r*.json"), reverse=True):
        value = json.loads(report.read_bytes())
        if isinstance(value, dict) and "decisions" in value:
            return {record["id"]: record["decision"] for record in value["decisions"]}
    return {}


def main() -> int:
    """Run the cases of the folder that is named on the command line."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        print("usage: python scripts/run_cases.py FOLDER [NAME ...]", file=sys.stderr)
        return 2
    folder, wanted = Path(sys.argv[1]).resolve(), tuple(sys.argv[2:])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    lcc = shutil.which("lcc", path=path)
    if lcc is None:
        print("no lcc command is beside this Python or on the PATH", file=sys.stderr)
        return 2
    plugin = str(Path(__file__).resolve().parents[1])
    env = {**os.environ, "PATH": path, "LCC": lcc, "LCC_ENV": str(Path(lcc).parents[1]), "PLUGIN": plugin}
    counts: Counter[Verdict] = Counter()
    for case in cases_in(folder):
        name = str(case.relative_to(folder))
        if wanted and not name.startswith(wanted):
            continue
        outcome = outcome_of(case, env)
        counts[outcome.verdict] += 1
        print(f"{outcome.verdict:4} {name}: {outcome.why}", flush=True)
    print(f"{counts['ok']} ok, {counts['FAIL']} failed, {counts['read']} to be read, {counts['skip']} skipped")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
