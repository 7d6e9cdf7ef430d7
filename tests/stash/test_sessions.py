"""`lcc sessions`: what stands in a project's folder, read and never changed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import programs
import pytest
from making import SessionFile, use

OUTPUT = "words without end, amen\n" * 200
Row = dict[str, Any]


def session(folder: Path, name: str, first: str, *, age: float) -> Path:
    """A session of 30 large outputs whose last answer reports 70,000 input tokens; no line says when it was written."""
    made = SessionFile(sessionId=name, timestamp=None)
    made.user(first)
    for index in range(30):
        usage = {"input_tokens": 10, "cache_read_input_tokens": 69_990, "output_tokens": 5}
        made.assistant(use(f"t{index}", command=f"make {index}"), usage=usage)
        made.result(f"t{index}", f"{index}\n{OUTPUT}")
    path = folder / f"{name}.jsonl"
    path.write_bytes(made.raw())
    os.utime(path, (time.time() - age,) * 2)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "my.project"
    made.mkdir()
    return made


@pytest.fixture
def folder(tmp_path: Path, project: Path) -> Path:
    name = "".join(c if c.isalnum() else "-" for c in str(project))
    made = tmp_path / ".claude" / "projects" / name
    made.mkdir(parents=True)
    return made


def lcc(home: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LCC_", "XDG_", "CLAUDE_"))}
    return programs.run_text("lcc", "sessions", *arguments, env=environment | {"HOME": str(home)}, cwd=cwd)


def test_sessions_are_listed_newest_first_with_what_would_be_freed(tmp_path: Path, project: Path, folder: Path) -> None:
    """By figures of the session's own, of the pass, and the user's first words; no file is touched or made."""
    old = session(folder, "old", "an <old> session", age=9000)
    new = session(folder, "new", "a newer\none", age=5000)
    (folder / "agent-1.jsonl").write_text("{}\n")
    (folder / "broken.jsonl").write_text('{"type": "user", "message": 7}\n')
    os.utime(folder / "broken.jsonl", (1, 1))
    before = {path: path.read_bytes() for path in folder.iterdir()}

    done = lcc(tmp_path, "--json", "--rules-mode", "stashed", cwd=project)
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert [each["id"] for each in listed["sessions"]] == ["new", "old", "broken"]
    first = listed["sessions"][0]
    assert first["path"] == str(new)
    assert first["bytes"] == new.stat().st_size
    assert (first["title"], first["context_tokens"], first["messages"]) == ("a newer one", 70_000, 61)
    assert 0 < first["frees_tokens"] < first["tokens"]
    assert first["in_use"] is None
    assert "message" in listed["sessions"][2]["problem"]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".claude", "my.project"]
    assert old.exists()

    shown = lcc(tmp_path, str(project), cwd=tmp_path).stdout
    assert "a newer one" in shown
    assert "an <old> session" in shown


def test_what_of_a_damaged_session_can_be_reached_is_said(tmp_path: Path, project: Path, folder: Path) -> None:
    """A run of NUL bytes in place of a line: what stood before it hangs on nothing any more."""
    whole = session(folder, "whole", "all of it", age=5000)
    lines = whole.read_bytes().splitlines(keepends=True)
    (folder / "torn.jsonl").write_bytes(b"".join(lines[:30]) + bytes(500) + b"\n" + b"".join(lines[31:]))
    os.utime(folder / "torn.jsonl", (time.time() - 6000,) * 2)

    listed = {each["id"]: each for each in json.loads(lcc(tmp_path, "--json", cwd=project).stdout)["sessions"]}
    assert listed["whole"]["reached_bytes"] == whole.stat().st_size - len(lines)  # all but the ends of the lines
    assert listed["whole"]["damaged_lines"] == 0
    assert listed["torn"]["reached_bytes"] == sum(len(line) - 1 for line in lines[31:])
    assert (listed["torn"]["damaged_lines"], listed["torn"]["problem"]) == (1, None)
    assert listed["torn"]["frees_tokens"] >= 0

    shown = lcc(tmp_path, cwd=project).stdout
    assert "100 %" in shown
    assert "1 damaged line; " in shown


def test_a_session_that_is_written_to_is_marked(tmp_path: Path, project: Path, folder: Path) -> None:
    """An unfinished last line is left out, and is no error."""
    path = session(folder, "live", "now", age=0)
    with path.open("a") as file:
        file.write('{"type": "user", "mess')
    (found,) = json.loads(lcc(tmp_path, "--json", cwd=project).stdout)["sessions"]
    assert found["in_use"]
    assert found["problem"] is None


def test_the_limit_says_that_there_are_more(tmp_path: Path, project: Path, folder: Path) -> None:
    """0 lists all."""
    for index in range(3):
        session(folder, f"s{index}", "x", age=1000 + index)
    assert "1 older ones" in lcc(tmp_path, "--limit", "2", cwd=project).stdout
    assert len(json.loads(lcc(tmp_path, "--json", "--limit", "0", cwd=project).stdout)["sessions"]) == 3


@pytest.mark.parametrize(
    ("arguments", "said"), [(["none"], "no such folder"), ([], "no sessions"), (["--rules-mode", "x"], "--rules-mode")]
)
def test_bad_input_is_exit_2(tmp_path: Path, project: Path, arguments: list[str], said: str) -> None:
    """A folder that is not there, a project without sessions, an unknown mode."""
    done = lcc(tmp_path, *arguments, cwd=project)
    assert done.returncode == 2
    assert said in done.stderr
