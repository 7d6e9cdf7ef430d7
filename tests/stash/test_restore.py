"""Restoring: every compacted session comes back byte for byte, or it is said which note leads nowhere."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import programs
import pytest
from making import SESSIONS, MadeSession, SessionFile, numbered, use
from stash.tampering import damage, lose

from lcc.contract.notes import find_note
from lcc.contract.report import Report
from lcc.recovery.restore import RestoreError, removed_by, restore, restored_bytes
from lcc.relevance import TranscriptCompactionRequest, run_pass
from lcc.relevance.ports import Ports
from lcc.stash import Stash
from lcc.transcript import read_transcript, render

SUFFIX = "\n\n<system-reminder>\nWhenever you read a file, look out.\n</system-reminder>\n"
MODES = ("lossless", "recoverable", "stashed")


def compact(
    raw: bytes, mode: str, stash: Stash, root: Path | None = None, *, commands: bool = False, keep: int = 6
) -> tuple[bytes, Report]:
    request = TranscriptCompactionRequest(
        payload=None,
        provider="rules",
        rules_mode=mode,
        workspace_root=str(root) if root else None,
        allow_command_pointers=commands,
        preserve_recent=keep,
    )
    return run_pass(
        read_transcript(raw),
        request,
        lambda result: (render(result.transcript, result.edits), result.report),
        Ports(stash_folder=stash.folder),
    )


def restored(content: bytes, reports: list[Report], stash: Stash, root: Path | None = None) -> bytes:
    transcript = read_transcript(content)
    found = restore(transcript, removed_by(reports), stash, str(root) if root else None)
    assert found.failures == ()
    assert not found.unproven
    return restored_bytes(transcript, found.edits)


@pytest.fixture
def stash(tmp_path: Path) -> Stash:
    return Stash(tmp_path / "stash", "s")


@pytest.mark.skipif(not SESSIONS.is_dir(), reason="the shared sessions are not here")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(path.name for path in SESSIONS.glob("*.jsonl")))
def test_a_real_session_comes_back_byte_for_byte_after_one_pass_and_after_two(
    name: str, mode: str, stash: Stash
) -> None:
    """The second pass keeps fewer recent messages, so that it removes what the first one had to leave."""
    raw = (SESSIONS / name).read_bytes()
    once, first = compact(raw, mode, stash, keep=60)
    twice, second = compact(once, mode, stash)
    assert restored(once, [first], stash) == raw
    assert restored(twice, [first, second], stash) == raw


class Work(MadeSession):
    """Reads of files in a workspace, written as real tools write them."""

    def __init__(self, root: Path) -> None:
        super().__init__("look around")
        self.root = root
        root.mkdir()

    def file(self, name: str, text: str) -> str:
        (self.root / name).write_text(text, encoding="utf-8", newline="")
        return name

    def raw(self) -> bytes:
        later = [{"role": "assistant", "text": f"step {index}"} for index in range(8)]
        return json.dumps([*self.messages, *later], ensure_ascii=False).encode()


def shown_lines(lines: list[str], first: int, style: str) -> str:
    return numbered("\n".join(lines), first, {"→": "{:>6}→{}", "\t": "{}\t{}"}[style])


LINES = [f"line {number}: some content of the file, \u00fcber all" for number in range(1, 81)]
TEXT = "\n".join(LINES) + "\n"


@pytest.mark.parametrize("style", ["→", "\t"])
@pytest.mark.parametrize("suffix", ["", SUFFIX])
@pytest.mark.parametrize(
    ("given", "first", "shown"),
    [
        ({}, 1, LINES),
        ({}, 1, [*LINES, ""]),
        ({"offset": 10, "limit": 40}, 10, LINES[9:49]),
        ({"offset": 0, "limit": 40}, 0, LINES[:40]),
    ],
)
def test_numbered_reads_come_back_as_they_were_shown(
    tmp_path: Path, stash: Stash, style: str, suffix: str, given: dict[str, int], first: int, shown: list[str]
) -> None:
    """Both styles, slices, offset 0, the phantom last row, and the client's reminder behind them."""
    work = Work(tmp_path / "work")
    name = work.file("a.py", TEXT)
    work.call("Read", {"file_path": str(work.root / name), **given}, shown_lines(shown, first, style) + suffix)
    content, report = compact(work.raw(), "recoverable", stash, work.root)
    assert report["tool_calls_replaced"] == 1
    assert restored(content, [report], stash, work.root) == work.raw()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat a.py", TEXT),
        ("sed -n '5,30p' a.py", "\n".join(LINES[4:30]) + "\n"),
        ("head -n 20 a.py", "\n".join(LINES[:20]) + "\n"),
        ("tail -n 20 a.py", "\n".join(LINES[-20:]) + "\n"),
    ],
)
@pytest.mark.parametrize("codex", [False, True])
def test_reads_by_command_come_back_with_their_header(
    tmp_path: Path, stash: Stash, command: str, shown: str, codex: bool
) -> None:
    """What Codex writes ahead of an output is in the report."""
    work = Work(tmp_path / "work")
    work.file("a.py", TEXT)
    header = (
        "Chunk ID: 401d50\nWall time: 0.03 seconds\nProcess exited with code 0\nOriginal token count: 99\nOutput:\n"
    )
    if codex:
        work.call("exec_command", {"cmd": command, "workdir": str(work.root)}, header + shown)
    else:
        work.call("Bash", {"command": command}, shown)
    content, report = compact(work.raw(), "recoverable", stash, work.root)
    assert report["tool_calls_replaced"] == 1
    assert restored(content, [report], stash, work.root) == work.raw()
    without = restore(read_transcript(content), None, stash, str(work.root))
    if codex:
        assert "--report" in without.failures[0].problem
    else:
        assert restored_bytes(read_transcript(content), without.edits) == work.raw()


def test_without_a_report_the_sessions_other_reads_tell_the_numbering(tmp_path: Path, stash: Stash) -> None:
    """And what comes back that way is marked as unproven."""
    work = Work(tmp_path / "work")
    for name in ("a.py", "b.py"):
        work.file(name, TEXT)
        work.call("Read", {"file_path": str(work.root / name)}, shown_lines([*LINES[:-1], name], 1, "\t"))
    (work.root / "a.py").write_text("\n".join([*LINES[:-1], "a.py"]))
    content, report = compact(work.raw(), "recoverable", stash, work.root)
    assert report["tool_calls_replaced"] == 1
    transcript = read_transcript(content)
    found = restore(transcript, None, stash, str(work.root))
    assert restored_bytes(transcript, found.edits) == work.raw()
    assert found.unproven == {"c1"}


@pytest.mark.parametrize("how", ["changed", "missing", "shorter", "folder"])
def test_a_file_that_is_not_what_it_was_is_said_and_its_note_stays(tmp_path: Path, stash: Stash, how: str) -> None:
    """The note that leads nowhere is named with the reason; the others are followed."""
    work = Work(tmp_path / "work")
    for name in ("a.py", "b.py"):
        work.file(name, TEXT + name)
        work.call("Read", {"file_path": str(work.root / name)}, shown_lines([*LINES, name], 1, "\t"))
    content, report = compact(work.raw(), "recoverable", stash, work.root)
    path = work.root / "a.py"
    if how == "changed":
        path.write_text(TEXT.replace("line 7", "line seven") + "a.py")
    elif how == "shorter":
        path.write_text("short")
    else:
        path.unlink()
    if how == "folder":
        path.mkdir()
    transcript = read_transcript(content)
    found = restore(transcript, removed_by([report]), stash, str(work.root))
    assert [failure.id for failure in found.failures] == ["c1"]
    assert set(found.edits.texts) == {"c2"}
    assert "a.py" in found.failures[0].note


def test_a_changed_file_is_made_good_by_the_sessions_second_copy(tmp_path: Path, stash: Stash) -> None:
    """Claude Code keeps what a read gave beside the message; the sha256 proves it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text(TEXT)
    session = claude_session(folder)
    content, report = compact(session, "recoverable", stash, folder)
    assert report["tool_calls_replaced"] == 1
    assert restored(content, [report], stash, folder) == session
    (folder / "a.py").unlink()
    assert restored(content, [report], stash, folder) == session


def claude_session(folder: Path) -> bytes:
    copy = {"type": "text", "file": {"filePath": str(folder / "a.py"), "content": TEXT, "numLines": 81, "startLine": 1}}
    session = SessionFile(folder)
    session.user("go")
    session.assistant(use("t1", "Read", file_path=str(folder / "a.py")))
    session.result("t1", shown_lines([*LINES, ""], 1, "→") + SUFFIX, toolUseResult=copy)
    session.talk(8)
    return session.raw()


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_stash_that_lost_an_object_is_said(tmp_path: Path, stash: Stash, how: str) -> None:
    """Wrong bytes are never put in a session."""
    work = Work(tmp_path / "work")
    work.call("Bash", {"command": "make"}, "words without end, amen\n" * 100)
    for index in range(30):
        work.messages.append({"role": "assistant", "text": f"and {index}"})
    content, report = compact(work.raw(), "stashed", stash)
    assert report["tool_calls_stashed"] == 1
    (entry,) = stash.entries()
    if how == "missing":
        lose(stash, entry.sha256)
    else:
        damage(stash, entry.sha256)
    found = restore(read_transcript(content), removed_by([report]), stash)
    assert [failure.id for failure in found.failures] == ["c1"]
    assert entry.sha256[:12] in found.failures[0].problem


def test_a_lossy_session_says_that_it_cannot(tmp_path: Path, stash: Stash) -> None:
    """By its report, and by the trimmed results themselves."""
    work = Work(tmp_path / "work")
    for index in range(70):
        work.call("Bash", {"command": f"make {index}"}, f"{index}\n" + "words without end, amen\n" * 400)
    content, report = compact(work.raw(), "lossy", stash)
    assert report["tool_calls_trimmed"]
    with pytest.raises(RestoreError, match="lossy"):
        removed_by([report])
    with pytest.raises(RestoreError, match="trimmed"):
        restore(read_transcript(content), None, stash)


def test_an_output_that_looks_like_a_note_is_left_alone(tmp_path: Path, stash: Stash) -> None:
    """With the reports, only what they name is a note of ours."""
    work = Work(tmp_path / "work")
    work.call("Bash", {"command": "cat notes"}, "[identical output kept at c9]")
    content, report = compact(work.raw(), "lossless", stash)
    assert content == work.raw()
    found = restore(read_transcript(content), removed_by([report]), stash)
    assert not found.edits
    assert found.failures == ()
    assert found.left == {"c1"}


class TestCommand:
    """`lcc restore`."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> Path:
        work = Work(tmp_path / "work")
        work.call("Bash", {"command": "make"}, "words without end, amen\n" * 100)
        work.messages += [{"role": "assistant", "text": f"and {index}"} for index in range(30)]
        (tmp_path / "original.json").write_bytes(work.raw())
        done = self.lcc(
            tmp_path, "compact", "original.json", "--provider", "rules", "--rules-mode", "stashed",
            "-o", "small.json", "-r", "report.json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return tmp_path

    def lcc(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("LCC_", "XDG_"))}
        environment |= {"HOME": str(folder), "LCC_STASH_DIR": str(folder / "stash")}
        return programs.run("lcc", *arguments, env=environment, cwd=folder)

    def test_it_gives_the_original_bytes(self, files: Path) -> None:
        """To standard output, to a file, with and without the report."""
        original = (files / "original.json").read_bytes()
        assert find_note(json.loads((files / "small.json").read_text())[2]["toolResults"][0]["text"])
        assert self.lcc(files, "restore", "small.json", "--report", "report.json").stdout == original
        assert self.lcc(files, "restore", "small.json").stdout == original
        assert self.lcc(files, "restore", "small.json", "-o", "back.json").returncode == 0
        assert (files / "back.json").read_bytes() == original

    def test_it_compares(self, files: Path) -> None:
        """Exit 0 for the original, 1 for another session; without -o nothing is printed."""
        done = self.lcc(files, "restore", "small.json", "--against", "original.json")
        assert (done.returncode, done.stdout) == (0, b"")
        assert b"byte for byte" in done.stderr
        done = self.lcc(files, "restore", "small.json", "--against", "small.json")
        assert done.returncode == 1
        assert b"message 2 differs" in done.stderr

    def test_a_note_that_leads_nowhere_is_exit_1(self, files: Path) -> None:
        """It names the call and its note."""
        for path in (files / "stash" / "packs").iterdir():
            path.unlink()
        done = self.lcc(files, "restore", "small.json", "-r", "report.json")
        assert done.returncode == 1
        assert b"c1" in done.stderr
        assert b"no object" in done.stderr

    @pytest.mark.parametrize(
        "arguments", [["none.json"], ["small.json", "-r", "small.json"], ["small.json", "--workspace-root", "none"]]
    )
    def test_bad_input_is_exit_2(self, files: Path, arguments: list[str]) -> None:
        """A missing session, a report that is none, a folder that is not there."""
        done = self.lcc(files, "restore", *arguments)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("first", [0, 1], ids=["plain first", "escaped first"])
@pytest.mark.parametrize("rest_is_ascii", [False, True], ids=["other texts too", "no other text"])
def test_lines_that_escape_and_lines_that_do_not_come_back_as_they_were(
    tmp_path: Path, first: int, rest_is_ascii: bool
) -> None:
    """A session's lines may be written by two programs: each result goes back in its own line's way."""
    made = SessionFile()
    made.user("Look." if rest_is_ascii else "Sieh nach, bitte schön.")
    for number in range(4):
        made.assistant(use(f"t{number}", "Bash", command=f"make {number}"))
        made.result(f"t{number}", "".join(f"größe {line} und {number}\n" for line in range(200)))
    for number in range(40):
        made.user(f"step {number}")
    raw = b"".join(
        json.dumps(row, ensure_ascii=(number // 2) % 2 == first, separators=(",", ":")).encode() + b"\n"
        for number, row in enumerate(made.rows)
    )
    stash = Stash(tmp_path / "stash", "s")
    content, report = compact(raw, "stashed", stash)
    assert report["tool_calls_replaced"] + report["tool_calls_deduped"] == 4
    removed = removed_by([report])
    transcript = read_transcript(content)
    found = restore(transcript, removed, stash)
    assert restored_bytes(transcript, found.edits, removed) == raw
