"""`lcc restore` as a person runs it: what it never overwrites, and what it says of files that may have changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import programs
import pytest
from making import MadeSession, numbered

LINES = "".join(f"line {number} of the file that was read\n" for number in range(1, 60))


def lcc(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The program itself, in ``folder``, with a stash of its own."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LCC_STASH_DIR": str(folder / "stash")}
    return programs.run_text("lcc", *words, env=env, cwd=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session that read ``notes.txt``, compacted with its report."""
    (tmp_path / "notes.txt").write_text(LINES)
    session = MadeSession("Read it.")
    session.read(str(tmp_path / "notes.txt"), numbered(LINES, form="{}\t{}"))
    session.talk(8)
    (tmp_path / "session.json").write_bytes(session.raw())
    done = lcc(
        tmp_path, "compact", "session.json", "--provider", "rules", "--rules-mode", "recoverable",
        "--workspace-root", ".", "-o", "compacted.json", "-r", "report.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.parametrize("target", ["compacted.json", "report.json", "session.json"])
def test_what_is_read_is_never_overwritten(folder: Path, target: str) -> None:
    """-o on the compacted session, a report or the original is bad input, and the file stays as it was."""
    before = (folder / target).read_bytes()

    done = lcc(
        folder, "restore", "compacted.json", "-r", "report.json", "--against", "session.json", "-o", f"./{target}"
    )

    assert done.returncode == 2
    assert target in done.stderr
    assert (folder / target).read_bytes() == before


def test_a_file_without_a_report_is_not_called_restored(folder: Path) -> None:
    """Without a report nothing tells whether the file changed: exit 1, and it is said; with the report it is known."""
    done = lcc(folder, "restore", "compacted.json", "-o", "back.json")
    assert done.returncode == 1
    assert "files as they are now" in done.stderr

    done = lcc(folder, "restore", "compacted.json", "-r", "report.json", "-o", "back.json")
    assert done.returncode == 0
    assert (folder / "back.json").read_bytes() == (folder / "session.json").read_bytes()

    (folder / "notes.txt").write_text(LINES.replace("line 7 ", "LINE 7 "))
    done = lcc(folder, "restore", "compacted.json", "-r", "report.json", "-o", "back.json")
    assert done.returncode == 1
    assert "c1" in done.stderr
