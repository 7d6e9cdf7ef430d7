"""Runs every case of a folder and prints its name and outcome; exit 1 when one fails.

A case is a folder with a README.md and either a run.sh, or a command in the README's ```sh block that is run in a
copy of the folder. It fails when it exits other than 0, prints a line that begins with FAIL, or, where its README
says "`c1` kept" or "c1 is kept" behind Expected, when the report does not keep that call.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS = 180
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_KEPT = re.compile(
    r"^Expected: .*?\b(\w+)`?(?: and \w+)? (?:is |are )?(?:kept|stays?)\b|Expected: keep\b", re.MULTILINE
)
_DECIDED = re.compile(r"^(\S+) (keep|replace|dedupe|trim|drop) ", re.MULTILINE)


def main() -> int:
    """Run the cases of the folder that is named on the command line."""
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        print("usage: python scripts/run_cases.py FOLDER [NAME ...]", file=sys.stderr)
        return 2
    here = Path(__file__).resolve().parent.parent
    lcc = shutil.which("lcc", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if lcc is None:
        print("no lcc command is beside this Python or on the PATH", file=sys.stderr)
        return 2
    path = f"{Path(lcc).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    env = {**os.environ, "PATH": path, "LCC": lcc, "LCC_ENV": str(Path(lcc).parent.parent), "PLUGIN": str(here)}
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / "cases"
        shutil.copytree(sys.argv[1], root, symlinks=True)
        for readme in sorted(root.rglob("README.md")):
            case = readme.parent
            name = str(case.relative_to(root))
            if case == root or (len(sys.argv) > 2 and not name.startswith(tuple(sys.argv[2:]))):
                continue
            outcome = _outcome(case, name, readme.read_text(), env)
            failed += outcome.startswith("FAIL")
            print(f"{name} -> {outcome}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


def _outcome(case: Path, name: str, readme: str, env: dict[str, str]) -> str:
    live = (case / "run.sh").exists() and "CLAUDE" in (case / "run.sh").read_text().partition("\n")[2].partition("\n")[
        2
    ]
    if live and "CLAUDE" not in env:
        return "skipped: name the client in CLAUDE"
    if (case / "run.sh").exists():
        command = ["bash", "run.sh"]
    elif (case / "run.py").exists():
        command = [sys.executable, "run.py"]
    else:
        command = ["bash", "-c", "\n".join(_BLOCK.findall(readme))]
    try:
        done = subprocess.run(
            command, cwd=case, env=env, capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"FAIL: no end within {SECONDS} seconds"
    said = done.stdout + done.stderr
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "")[:120]
    if "a fault in lcc" in said or re.search(r"^FAIL", said, re.MULTILINE):
        return f"FAIL: {last}"
    decided = dict(_DECIDED.findall(said)) or _decisions(case)
    wanted = _KEPT.search(readme)
    if wanted is not None and decided:
        call = wanted[1] or next(iter(decided))
        if call in decided:
            return f"ok: {call} kept" if decided[call] == "keep" else f"FAIL: {call} {decided[call]}"
    return f"ok: {last}" if done.returncode == 0 else f"FAIL: exit code {done.returncode}: {last}"


def _decisions(case: Path) -> dict[str, str]:
    for report in sorted(case.glob("r*.json"), reverse=True):
        value = json.loads(report.read_bytes())
        if isinstance(value, dict) and "decisions" in value:
            return {record["id"]: record["decision"] for record in value["decisions"]}
    return {}


if __name__ == "__main__":
    sys.exit(main())
