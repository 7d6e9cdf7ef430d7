"""A session with everything that the ladder removes, replayed as `scripts/replay_sessions.py` does: all comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from making import SessionFile, text, use

pytestmark = pytest.mark.client

SCRIPT = Path(__file__).parents[2] / "scripts" / "replay_sessions.py"
CODE = "".join(f"    total_{number} = frobnicate(value_{number})\n" for number in range(60))


def session(project: Path) -> SessionFile:
    """Two long outputs, one of many lines, and far longer inputs of calls; then enough to make them old."""
    made = SessionFile(project)
    made.user("Go on.")
    made.assistant(use("toolu_few", command="make few"))
    made.result(
        "toolu_few", "".join(f"step {number} of the build took its time and went well enough; " for number in range(30))
    )
    made.assistant(use("toolu_many", command="make many"))
    made.result(
        "toolu_many", "".join(f"line {number}: the build went on and on and was well\n" for number in range(90))
    )
    for number in range(12):
        made.assistant(
            use(f"toolu_w{number}", "Write", file_path=f"{project}/made_{number}.py", content=CODE * 2 + str(number))
        )
        made.result(f"toolu_w{number}", "ok")
        made.assistant(
            use(f"toolu_e{number}", "Edit", file_path=f"{project}/made_{number}.py", old_string="a", new_string="b")
        )
        made.result(f"toolu_e{number}", "ok")
    for number in range(14):
        made.user(f"Question {number}?")
        made.assistant(text(f"Answer {number}."))
    return made


def test_everything_that_went_comes_back(current_client: Path, tmp_path: Path) -> None:
    """The plugin's defaults: results, then inputs; a note, an excerpt and an input give their bytes, and it resumes."""
    (tmp_path / "one.jsonl").write_bytes(session(tmp_path / "project").raw())

    ran = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "| replaced | right | excerpt ok, input ok, note ok |" in ran.stdout
