"""Runs every case of a folder and prints its name and outcome; exit 1 when one fails.

    python scripts/run_cases.py FOLDER [NAME ...]

A case is a folder with a run.py, a run.sh, or a README.md with a command in a ```sh block, which is run in a copy of
the folder. What tells the outcome is one of these; where there is none of them, the row is "read": what was expected
stands beside what was got, for a person. NAMEs are beginnings of names. Exit 2: bad words, or no `lcc`.

- a run.py, and a folder ``live-…``, which drives the client that CLAUDE names (skipped without it): the exit code
- what the README expects, in the words that such pages use: calls that are kept or replaced; a decision with its
  reason, or a reason alone, which the report must have (and not the one behind "Got:"); "exit 0 or 2"; an exit code
  that is not to be the one behind "Got:"
- `lcc restore`: every output that it restored is proven, or it ends with 1
- a case of `SIGNS` below, whose README says in free words what is right: what must stand in what it said and wrote
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
_EXPECTED = re.compile(r"\b(?:Expected|Right):? ?(.*?)(?=Got\b|Severity:|\n|$)")
_GOT = re.compile(r"\bGot\b[^:\n]*: ?(.*)")
_KEPT = re.compile(r"`?(\w+)`?(?: and `?(\w+)`?)? (?:is |are )?(?:kept|stays?)\b")
_DECIDED = re.compile(r"^(\S+) (keep|replace|dedupe|trim|drop) (\w+)", re.MULTILINE)
_RULING = re.compile(r"\b(keep|replaced?|dedupe|trim|drop),? (\w+_\w+)")
_REASON = re.compile(r"\b((?:keep|recoverable|lossless|named|trim|file)_\w+)")
_EXITS = re.compile(r"\bexit (\d)(?: or (\d))?")
_EXIT_GOT = re.compile(r"(?:exit code |never ends with )(\d)")
_RESTORED = re.compile(r"(\d+) outputs restored, (\d+) of them proven")
_FAULT = re.compile(r"^FAIL|a fault in lcc", re.MULTILINE)

SIGNS: Mapping[str, str] = {
    "codex-second-session-meta": r"c1 replace replace_disk_verified[\s\S]*^session_id 019a\S*0c411d",
    "daemon/xdg-data-of-another-session": r" 0 notes$",
    "pass/image-of-a-pinned-pair": r'"type": ?"image", ?"source"',
    "pass/rewind-behind-the-target": r"warning: c0: its note names c1\b.* the text was put back",
    "pass/verified-note-for-a-relative-path-of-another-folder": r"\[removed: re-read \S*w/sub/a\.py to recover",
    "relative-path-other-folder": r"re-read \S*pkg/conf\.py|^toolu_1 keep ",
    "worktree-removed": r"^toolu_1 replace replace_disk_verified[\s\S]*^toolu_3 keep ",
}
"""What is right in a case whose README cannot be held against a run: a pattern for what it said and its out.json.

`daemon/xdg-…`: its session has no way to recall, so nothing may be stashed; its own program counts on a note."""


class Outcome(NamedTuple):
    """What became of a case, and why in a few words."""

    verdict: Verdict
    why: str


class Ran(NamedTuple):
    """What a case's program said, its exit code, and the decisions of its report with their reasons, by call id."""

    code: int
    said: str
    decisions: Mapping[str, tuple[str, str]]
    wrote: str
    """Its out.json, or nothing."""

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


def outcome_of(case: Path, env: Mapping[str, str], sign: str | None = None) -> Outcome:
    """Runs a case. ``sign``: the pattern that tells its outcome, where there is one."""
    drives_client = case.name.startswith("live-")
    if drives_client and "CLAUDE" not in env:
        return Outcome("skip", "name the client's program in CLAUDE")
    try:
        ran = _run(case, env)
    except subprocess.TimeoutExpired:
        return Outcome("FAIL", f"no end within {SECONDS} seconds")
    if _FAULT.search(ran.said):
        return Outcome("FAIL", ran.last)
    if sign is not None:
        found = re.search(sign, f"{ran.said}\n{ran.wrote}", re.MULTILINE)
        return Outcome("ok", _line_of(found)) if found else Outcome("FAIL", f"not said or written: {sign}")
    if (case / "run.py").exists() or drives_client:
        return Outcome("ok" if ran.code == 0 else "FAIL", f"exit code {ran.code}: {ran.last}")
    readme = _readme(case)
    right, got = _EXPECTED.search(readme), _GOT.search(readme)
    expected = right[1].strip() if right else ""
    told = _told(ran, expected, got[1] if got else "")
    return told or Outcome("read", f"expected: {expected or '?'} | got: exit code {ran.code}, {ran.last}")


def _line_of(found: re.Match[str]) -> str:
    """The line in which a match ends, short."""
    return found.string[: found.end()].rpartition("\n")[2][-160:].strip()


def _told(ran: Ran, expected: str, got: str) -> Outcome | None:
    """What the words of a README say of a run; None where they cannot be held against it."""
    kept = _KEPT.search(expected)
    calls = [call for call in kept.groups() if call in ran.decisions] if kept else []
    if calls:
        wrong = [f"{call} {ran.decisions[call][0]}" for call in calls if ran.decisions[call][0] != "keep"]
        return Outcome("FAIL" if wrong else "ok", ", ".join(wrong or [f"{call} kept" for call in calls]))
    rulings = set(ran.decisions.values())
    if (ruling := _RULING.search(expected)) and rulings:
        had = _RULING.search(got)
        wanted = (ruling[1], ruling[2]) in rulings and (had is None or (had[1], had[2]) not in rulings)
        return Outcome("ok" if wanted else "FAIL", f"wanted {ruling[0]}; {_listed(rulings)}")
    if expected.startswith("replaced") and rulings:
        is_replaced = any(decision == "replace" for decision, _ in rulings)
        return Outcome("ok" if is_replaced else "FAIL", f"wanted a replacement; {_listed(rulings)}")
    if (reason := _REASON.search(expected)) and rulings:
        has = any(each == reason[1] for _, each in rulings)
        return Outcome("ok" if has else "FAIL", f"wanted {reason[1]}; {_listed(rulings)}")
    if restored := _RESTORED.search(ran.said):
        total, proven = int(restored[1]), int(restored[2])
        if total or ran.code == 1:
            is_whole = ran.code in (0, 1) and (total == proven or ran.code == 1)
            return Outcome("ok" if is_whole else "FAIL", restored[0])
        return None
    if exits := _EXITS.match(expected):
        allowed = [int(code) for code in exits.groups() if code]
        return Outcome("ok" if ran.code in allowed else "FAIL", f"exit code {ran.code}")
    if ran.last.endswith(" ok"):
        return Outcome("ok", ran.last)
    had_code = _EXIT_GOT.search(got) or _EXIT_GOT.search(expected)
    now = _EXIT_GOT.findall(ran.said)
    if had_code and now:
        return Outcome("ok" if set(now) == {"0"} else "FAIL", f"exit code {', '.join(now)}; it was {had_code[1]}")
    return None


def _listed(rulings: set[tuple[str, str]]) -> str:
    return "got " + ", ".join(sorted(f"{decision} {reason}" for decision, reason in rulings))


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
        decided = {call: (decision, reason) for call, decision, reason in _DECIDED.findall(said)}
        written = place / "out.json"
        return Ran(
            done.returncode, said, decided or _decisions(place), written.read_text("utf-8") if written.exists() else ""
        )


def _decisions(place: Path) -> dict[str, tuple[str, str]]:
    for report in sorted(place.glob("r*.json"), reverse=True):
        value = json.loads(report.read_bytes())
        if isinstance(value, dict) and "decisions" in value:
            return {
                str(each["id"]): (str(each["decision"]), str(each.get("reason")).partition(":")[0])
                for each in value["decisions"]
            }
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
        outcome = outcome_of(case, env, SIGNS.get(name))
        counts[outcome.verdict] += 1
        print(f"{outcome.verdict:4} {name}: {outcome.why}", flush=True)
    print(f"{counts['ok']} ok, {counts['FAIL']} failed, {counts['read']} to be read, {counts['skip']} skipped")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
