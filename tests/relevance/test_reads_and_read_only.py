"""What is a read of a file, how a note names it, and which commands only read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from making import MadeSession, numbered

from lcc.contract.notes import find_note
from lcc.relevance.reading.commands import command_effect

TEXT = "".join(f"line {n} of this file\n" for n in range(1, 21))


@pytest.mark.parametrize(
    "command",
    [
        "tree -ao",
        "tree -ioa x",
        "tree -fo out .",
        "tail -qf log",
        "tail -n5F log",
        "tail --f log",
        "cat",
        "cat -",
        "cat -n",
        "cat a -",
        "wc -l",
        "nl",
        "head -n 5",
        "head -c 9",
        "tail -n 3",
        "grep x",
        "grep -n x",
        "grep -f - a",
        "grep -rf- a",
        "git log --show-signature",
        "cat /dev/stdin",
        "cat /dev/zero",
        "wc --files0-from=-",
        "find -files0-from - -ls",
        "./gen.sh --version",
        "../bin/tool --version",
        "mytool --version",
        "sed -n 1,5p",
        "git diff --outp=x",
        "git log --ext-d",
        "git show --textc",
        "tree --fromfile",
        "/usr/local/bin/own --version",
    ],
)
def test_what_writes_or_runs_or_never_ends_is_not_read_only(command: str) -> None:
    assert command_effect(command) != "read_only"


@pytest.mark.parametrize(
    "command",
    [
        "tree -a src",
        "tree -L 2",
        "tail -n 3 log",
        "tail -5 log",
        "head -n 5 a",
        "head a",
        "cat a b",
        "wc -l a",
        "grep -rn x",
        "grep -n x a",
        "grep -e x a",
        "git --version",
        "python3 --version",
        "node --version",
        "sed -n 1,5p a",
        "git log --oneline",
        "git diff --stat",
        "ls",
        "pwd",
        "nl -ba a",
    ],
)
def test_what_only_reads_stays_read_only(command: str) -> None:
    assert command_effect(command) == "read_only"


def decided(root: Path | None, tool: str, given: Any, text: str) -> dict[str, Any]:
    session = MadeSession()
    session.call(tool, given, text, id="r")
    session.filler()
    options: dict[str, Any] = {"workspace_root": str(root)} if root else {"disk_check": False}
    return session.compact("recoverable", **options).records["r"]


@pytest.mark.parametrize(
    ("tool", "given", "text"),
    [
        (
            "Bash",
            {"command": "cat notes", "run_in_background": True},
            f"Command running in background with ID: b1. {TEXT}",
        ),
        ("Bash", {"command": "cat notes"}, f"Command was manually backgrounded by user with ID: b1. {TEXT}"),
        ("Read", {"file_path": "/w/nope.py"}, f"File does not exist. Did you mean one of these? {TEXT}"),
        ("Read", {"file_path": "/w/a.py"}, f"The file has changed in a way nobody foresaw. {TEXT}"),
        ("view_file", {"path": "/w/a.py"}, "".join(f"L{n}: {line}\n" for n, line in enumerate(TEXT.split("\n"), 1))),
        ("view_file", {"path": "/w/a.py"}, "".join(f"{n} | {line}\n" for n, line in enumerate(TEXT.split("\n"), 1))),
        ("shell", {"cmd": "cat a.py"}, '{"output":"' + TEXT.replace("\n", "\\n") + '","metadata":{"exit_code":0}}'),
    ],
)
def test_what_is_no_content_of_a_file_is_never_a_read(tool: str, given: Any, text: str) -> None:
    assert decided(None, tool, given, text)["decision"] == "keep"


def test_a_first_column_of_numbers_is_not_taken_for_row_numbers(tmp_path: Path) -> None:
    (tmp_path / "table.tsv").write_text("".join(f"value {n}\n" for n in range(1, 31)))
    shown = "".join(f"{n}\tvalue {n}\n" for n in range(1, 31))
    given = {"path": str(tmp_path / "table.tsv")}
    assert decided(tmp_path, "read_file", given, shown)["reason"] == "keep_disk_mismatch"
    rows = numbered("".join(f"value {n}\n" for n in range(1, 31)), form="{}\t{}")
    assert decided(tmp_path, "Read", {"file_path": given["path"]}, rows)["decision"] == "replace"


def test_a_range_ends_where_the_file_ends(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    last = "".join(TEXT.splitlines(keepends=True)[5:])
    found = decided(tmp_path, "Bash", {"command": f"sed -n 6,40p {tmp_path}/a.py"}, last)
    assert found["recover"] == {"kind": "file", "path": f"{tmp_path}/a.py", "cwd": None, "lines": [6, 20]}


def test_the_last_newline_and_a_reminder_stay_behind_the_note(tmp_path: Path) -> None:
    """A range that was asked for past the file's end shows that newline too: it is no part of the proven lines."""
    (tmp_path / "a.txt").write_text(TEXT)
    reminder = "\n\n<system-reminder>\nConsider it.\n</system-reminder>\n"
    session = MadeSession(cwd=str(tmp_path))
    call = session.read(str(tmp_path / "a.txt"), TEXT + reminder, limit=50)
    session.filler(4)

    answer = session.compact("recoverable", workspace_root=str(tmp_path))

    note = f"[removed: re-read {tmp_path}/a.txt (lines 1-20) to recover; content verified on disk at compaction time]"
    assert answer.texts[call] == note + "\n" + reminder
    assert answer.report["lossless_violations"] == []
    again = find_note(answer.texts[call])
    assert again is not None
    assert again.text == note
    assert find_note(note + "\n\n" + reminder) is None, "two newlines are something of the output's own"
