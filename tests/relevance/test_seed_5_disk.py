"""The seed's section 5, mode `recoverable` with the disk check: the file is asked, and nothing else counts."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from making import REMINDER, Answer, MadeSession, long_text, numbered

from lcc.contract.reasons import KEEP_DISK_MISSING
from lcc.relevance import verify_recoverable
from lcc.relevance.evidence.disk import read_file

TEXT = long_text("a.py")
VERIFIED = "; content verified on disk at compaction time]"
MIB = 1024 * 1024


def whole(path: object) -> str:
    """The note for a whole file."""
    return f"[removed: re-read {path} to recover{VERIFIED}"


def lines(path: object, first: int, last: int) -> str:
    """The note for lines of a file."""
    return f"[removed: re-read {path} (lines {first}-{last}) to recover{VERIFIED}"


class Workspace:
    """A workspace with one file, and a session whose call "r" reads it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.path = self.root / "a.py"
        self.path.write_text(TEXT)
        self.session = MadeSession()

    def read(self, text: str = "", path: object = None, **given: Any) -> Answer:
        """The answer to a session in which the read tool gave ``text``; the whole numbered file by default."""
        return self.call("Read", {"file_path": str(path or self.path), **given}, text or numbered(TEXT))

    def call(self, tool: str, given: Any, text: str, **more: Any) -> Answer:
        """The answer to a session with this call."""
        self.session.call(tool, given, text, id="r", **more)
        self.session.filler()
        return self.compact()

    def compact(self, **options: Any) -> Answer:
        """One pass, which its own verification must confirm."""
        answer = self.session.compact("recoverable", **{"workspace_root": str(self.root), **options})
        assert answer.report["lossless_violations"] == []
        assert verify_recoverable(self.session.messages, answer.messages) == []
        return answer


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    """A fresh workspace."""
    return Workspace(tmp_path)


def test_the_pointer_says_that_the_disk_was_asked(work: Workspace) -> None:
    """§5: the pointer says so, reason replace_disk_verified, and the record holds the file and its sha256."""
    answer = work.read()

    assert answer.texts["r"] == whole(work.path)
    record = answer.records["r"]
    assert (record["decision"], record["reason"]) == ("replace", "replace_disk_verified")
    assert record["recoverability_check"] == answer.report["recoverability_check"] == "disk"
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert record["disk"] == {"path": str(work.path), "real": os.path.realpath(work.path), "sha256": digest}
    assert record["recover"] == {"kind": "file", "path": str(work.path), "cwd": None, "lines": None}


@pytest.mark.parametrize("options", [{"workspace_root": None}, {"disk_check": False}])
def test_without_a_root_or_with_the_check_off_the_transcript_decides(work: Workspace, options: Any) -> None:
    """§5: disk is the form with workspace_root set and disk_check on; else transcript_proxy."""
    work.read()
    work.path.unlink()

    answer = work.compact(**options)

    assert answer.texts["r"] == f"[removed: re-read {work.path} to recover]"
    assert answer.report["recoverability_check"] == "transcript_proxy"


def test_the_disk_check_is_on_by_default(work: Workspace) -> None:
    """§5: disk_check is on by default."""
    work.path.write_text("other")

    assert work.read().reason("r") == "keep_disk_mismatch"


@pytest.mark.parametrize("command", ["make", "git checkout main", "rm a.py"])
def test_later_writes_do_not_matter(work: Workspace, command: str) -> None:
    """§5: later writes, opaque or not, do not matter: what the agent re-reads is what was removed."""
    work.read()
    work.session.bash(command, "done")
    work.session.call("Edit", {"file_path": str(work.path), "old_string": "a", "new_string": "a"}, "edited")

    assert work.compact().texts["r"] == whole(work.path)


@pytest.mark.parametrize("form", ["{:>6}→{}", "{}\t{}"])
@pytest.mark.parametrize("final", ["\n", ""])
@pytest.mark.parametrize("suffix", ["", REMINDER, REMINDER.rstrip("\n")])
def test_numbers_in_both_styles_are_taken_off(work: Workspace, form: str, final: str, suffix: str) -> None:
    """§5: the read tool's line numbers are stripped; what the client put behind them stays behind the note."""
    content = TEXT.rstrip("\n") + final
    work.path.write_text(content)

    assert work.read(numbered(content, 1, form) + suffix).texts["r"] == whole(work.path) + suffix


@pytest.mark.parametrize("form", ["{:>6}→{}", "{}\t{}"])
@pytest.mark.parametrize("suffix", ["", REMINDER])
def test_a_last_empty_row_may_be_missing(work: Workspace, form: str, suffix: str) -> None:
    """§5: without a row for the empty line after the last newline, what was read is lines 1 to n."""
    answer = work.read(numbered(TEXT.rstrip("\n"), 1, form) + suffix)

    assert answer.texts["r"] == lines(work.path, 1, 20) + suffix


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (1, 1), (5, 5), (11, 11)])
@pytest.mark.parametrize("form", ["{:>6}→{}", "{}\t{}"])
def test_the_reads_line_range_is_enough(work: Workspace, offset: int, first: int, form: str) -> None:
    """§5: the file holds the read's line range; a read with offset 0 begins at line 1 and numbers it 0."""
    start = max(offset, 1)
    part = "\n".join(TEXT.split("\n")[start - 1 : start + 9])

    answer = work.read(numbered(part, first, form), offset=offset, limit=10)

    assert answer.texts["r"] == lines(work.path, start, start + 9)
    assert answer.records["r"]["recover"]["lines"] == [start, start + 9]


@pytest.mark.parametrize(
    "content",
    [
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("line 7", "line seven"),
        TEXT + "one more line\n",
        TEXT.rstrip("\n"),
        "\ufeff" + TEXT,
        TEXT.replace(" ", "\u00a0"),
        "\n" + TEXT,
        "",
    ],
)
def test_any_other_bytes_are_a_mismatch(work: Workspace, content: str) -> None:
    """§5: its bytes hold exactly the removed output: CRLF never matches LF, a final newline counts."""
    work.path.write_bytes(content.encode())

    answer = work.read()

    assert answer.texts["r"] == numbered(TEXT)
    assert answer.reason("r") == "keep_disk_mismatch"


def test_a_crlf_file_matches_its_own_bytes(work: Workspace) -> None:
    """§5: CRLF is content: a file with CRLF gives back an output with CRLF."""
    content = TEXT.replace("\n", "\r\n")
    work.path.write_bytes(content.encode())

    assert work.read(numbered(content)).texts["r"] == whole(work.path)


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\r", "\x1c", "\x1e"])
def test_lines_end_at_lf_alone(work: Workspace, odd: str) -> None:
    """Report page: lines end at LF alone, never at CR, VT, FF, NEL, U+2028 or U+2029."""
    content = "".join(f"line {number}, with{odd}something odd in it\n" for number in range(1, 19))
    work.path.write_bytes(content.encode())
    part = "\n".join(content.split("\n")[2:12])

    assert work.read(numbered(part, 3), offset=3, limit=10).texts["r"] == lines(work.path, 3, 12)


@pytest.mark.parametrize(
    ("command", "printed", "note"),
    [
        ("cat {}", TEXT, whole),
        ("cat {}", TEXT.rstrip("\n"), lambda path: lines(path, 1, 20)),
        ("cat -n {}", numbered(TEXT.rstrip("\n"), 1, "{:>6}\t{}"), lambda path: lines(path, 1, 20)),
        ("nl -ba {}", numbered(TEXT.rstrip("\n"), 1, "{:>6}\t{}"), lambda path: lines(path, 1, 20)),
        ("sed -n '3,9p' {}", "\n".join(TEXT.split("\n")[2:9]), lambda path: lines(path, 3, 9)),
        ("sed -n '3,9p' {}", "\n".join(TEXT.split("\n")[2:9]) + "\n", None),
        ("head -n 9 {}", "\n".join(TEXT.split("\n")[:9]), lambda path: lines(path, 1, 9)),
        ("tail -n 9 {}", "\n".join(TEXT.split("\n")[11:20]), lambda path: lines(path, 12, 20)),
    ],
)
@pytest.mark.parametrize("codex", [False, True])
def test_commands_that_read_one_file(work: Workspace, command: str, printed: str, note: Any, codex: bool) -> None:
    """§5: a file read by a command; a Codex exec header is stripped; the newline that ends the output stays."""
    text = printed
    if codex:
        text = (
            f"Chunk ID: a\nWall time: 1 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\n{text}"
        )
    given = {"cmd" if codex else "command": command.format(work.path)}

    answer = work.call("exec_command" if codex else "Bash", given, text)

    if codex and ("cat -n" in command or "nl" in command):
        assert answer.reason("r") == "keep_disk_mismatch"  # rows behind a header are not told from content
    else:
        assert answer.texts["r"] == (note(work.path) if note else lines(work.path, 3, 9) + "\n")


@pytest.mark.parametrize(
    ("tool", "given"),
    [("Grep", {"pattern": "x"}), ("Bash", {"command": "cat {}"}), ("Bash", {"command": "head -n 50 {}"})],
)
def test_numbers_are_taken_off_only_where_the_tool_numbers(work: Workspace, tool: str, given: Any) -> None:
    """Issue: line numbers are stripped only where the tool numbers its lines."""
    given = {key: value.format(work.path) for key, value in given.items()}

    assert work.call(tool, given, numbered(TEXT)).texts["r"] == numbered(TEXT)


def test_a_file_whose_text_looks_numbered_is_compared_as_it_is(work: Workspace) -> None:
    """§5: exactly the removed output: a file of numbered rows, printed as it is, is that file."""
    work.path.write_text(numbered(TEXT))

    assert work.call("Bash", {"command": f"cat {work.path}"}, numbered(TEXT)).texts["r"] == whole(work.path)


def make(kind: str, work: Workspace) -> Path:
    """A path of this kind, at which the bytes of the file would be found if all were well."""
    path = work.root / "other"
    if kind == "missing":
        return path
    if kind in ("nul", "long name", "long path", "below a file", "trailing slash"):
        path.write_text(TEXT)
        return Path("/") if kind == "nul" else path
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as listener:
            here = os.getcwd()
            os.chdir(work.root)
            listener.bind("other")
            os.chdir(here)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "link out":
        target = work.root.parent / "outside.py"
        target.write_text(TEXT)
        path.symlink_to(target)
    elif kind == "link to a sibling folder's file":
        (work.root / "sub").mkdir()
        path = work.root / "sub" / "link"
        path.symlink_to("../a.py")
    elif kind == "link to a folder":
        path.symlink_to(work.root.parent)
    elif kind == "too large":
        path.write_bytes(TEXT.encode())
        os.truncate(path, 4 * MIB + 1)
    elif kind == "not utf-8":
        path.write_bytes(TEXT.encode() + b"\xff")
    elif kind == "utf-16":
        path.write_bytes(TEXT.encode("utf-16"))
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "unreadable":
        path.write_text(TEXT)
        path.chmod(0)
    elif kind == "dotdot":
        path = work.root / ".." / "work" / "a.py"
    return path


REASONS = {
    "missing": "keep_disk_missing",
    "below a file": "keep_disk_missing",
    "trailing slash": "keep_disk_missing",
    "nul": "keep_disk_missing",
    "long name": "keep_disk_missing",
    "long path": "keep_disk_missing",
    "dangling": "keep_disk_missing",
    "folder": "keep_disk_not_regular",
    "fifo": "keep_disk_not_regular",
    "socket": "keep_disk_not_regular",
    "device": "keep_disk_not_regular",
    "loop": "keep_disk_unreadable",
    "link out": "keep_disk_outside_root",
    "link to a sibling folder's file": "keep_disk_outside_root",
    "link to a folder": "keep_disk_outside_root",
    "dotdot": "keep_disk_outside_root",
    "too large": "keep_disk_too_large",
    "not utf-8": "keep_disk_unreadable",
    "utf-16": "keep_disk_unreadable",
    "unreadable": "keep_disk_unreadable",
}


@pytest.mark.parametrize("kind", REASONS)
def test_what_is_no_readable_regular_file_is_kept(work: Workspace, kind: str) -> None:
    """§5: exists, no .. component, no final symlink out of its folder, regular, at most 4 MiB, UTF-8."""
    if kind == "device" and sys.platform == "win32":
        pytest.skip("no such device")
    path = str(make(kind, work))
    path = {
        "nul": path + "a\0b",
        "long name": path + "x" * 300,
        "long path": path + "/x" * 5000,
        "below a file": path + "/below",
        "trailing slash": path + "/",
        "dotdot": f"{work.root}/../work/a.py",
    }.get(kind, path)

    with as_another_user(if_needed=kind == "unreadable"):
        answer = work.read(path=path)

    assert answer.texts["r"] == numbered(TEXT)
    assert answer.reason("r") == REASONS[kind]


@contextlib.contextmanager
def as_another_user(*, if_needed: bool) -> Iterator[None]:
    """Root reads every file, so where root asks, nobody asks instead."""
    nobody = 65534
    if not if_needed or os.geteuid() != 0:
        yield
        return
    os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("path", ["/a\0b", "/a\ud800b", "/" + "x" * 10_000, "", "relative", "/a\nb"])
def test_no_path_makes_the_disk_check_fail(path: str) -> None:
    """Issue: the disk check survives any path that a transcript can hold."""
    assert read_file(path) is KEEP_DISK_MISSING


def test_a_link_within_its_folder_is_followed(work: Workspace) -> None:
    """§5: a final symlink that does not escape the file's own directory is fine."""
    link = work.root / "link.py"
    link.symlink_to("a.py")

    answer = work.read(path=link)

    assert answer.texts["r"] == whole(link)
    assert answer.records["r"]["disk"]["real"] == os.path.realpath(work.path)


def test_a_linked_folder_is_no_final_link(work: Workspace) -> None:
    """§5: only a final symlink is looked at: a linked folder on the way is where the file is."""
    (work.root.parent / "elsewhere").symlink_to(work.root)
    path = work.root.parent / "elsewhere" / "a.py"

    assert work.read(path=path).texts["r"] == whole(path)


def test_files_outside_the_root_are_allowed(work: Workspace) -> None:
    """§5: workspace_root only switches the disk check on, it does not contain reads."""
    outside = work.root.parent / "outside.py"
    outside.write_text(TEXT)

    assert work.read(path=outside).texts["r"] == whole(outside)


def test_a_file_of_exactly_four_mebibytes_is_read(work: Workspace) -> None:
    """§5: at most 4 MiB: the limit itself is within."""
    content = ("x" * 1023 + "\n") * (4 * 1024)
    work.path.write_text(content)
    assert len(content) == 4 * MIB

    assert work.call("Bash", {"command": f"cat {work.path}"}, content).texts["r"] == whole(work.path)


@pytest.mark.parametrize(
    ("path", "more", "session_cwd"),
    [
        ("a.py", {"cwd": "{root}/sub"}, "/nowhere"),
        ("a.py", {}, "{root}/sub"),
        ("sub/a.py", {}, None),
        ("./sub/a.py", {}, None),
        ("a.py", {"workdir": "{root}/sub"}, "/nowhere"),
        ("a.py", {"workdir": "sub"}, "{root}"),
        ("a.py", {"workdir": "sub", "cwd": "{root}/sub"}, "/nowhere"),  # what is recorded has it already
    ],
)
def test_relative_paths(work: Workspace, path: str, more: dict[str, str], session_cwd: str | None) -> None:
    """Issue: relative paths resolve against the call's directory, else the session's, else workspace_root."""
    (work.root / "sub").mkdir()
    work.path.write_text("not this one")
    (work.root / "sub" / "a.py").write_text(TEXT)
    more = {key: value.format(root=work.root) for key, value in more.items()}
    work.session.cwd = session_cwd.format(root=work.root) if session_cwd else None
    workdir = {"workdir": more.pop("workdir")} if "workdir" in more else {}

    answer = work.call("exec_command", {"cmd": f"cat {path}", **workdir}, TEXT, **more)

    elsewhere = bool(workdir or more)  # the session's folder has another a.py, or none
    assert answer.texts["r"] == whole(work.root / "sub" / "a.py" if elsewhere else path)
    assert answer.records["r"]["disk"]["path"] in (f"{work.root}/sub/a.py", f"{work.root}/./sub/a.py")


@pytest.mark.parametrize(
    "name", ["new\nline", "x (lines 1-2)", "u\u2028s", "a to recover] b", "trail ", "bidi\u202e", "tab\t"]
)
def test_a_path_that_cannot_be_written_in_one_line_is_kept(work: Workspace, name: str) -> None:
    """Report page: a path that cannot be written in one line unambiguously is not pointed at."""
    path = work.root / name
    path.write_text(TEXT)

    answer = work.read(path=path)

    assert answer.texts["r"] == numbered(TEXT)
    assert answer.decision("r") == "keep"


@pytest.mark.parametrize("name", ["with space", "x (lines 1-2).py", "tick`", "ünï 🎉", "(lines 1-2)", "a [b]", "-n"])
def test_an_odd_path_that_can_be_written_is_pointed_at(work: Workspace, name: str) -> None:
    """Report page: only what is ambiguous is kept."""
    path = work.root / name
    path.write_text(TEXT)

    assert work.read(path=path).texts["r"] == whole(path)


@pytest.mark.parametrize(
    "text",
    [
        REMINDER.strip(),
        "<system-reminder>Warning: the file exists but is shorter than the provided offset (9).</system-reminder>",
    ],
)
def test_a_read_of_nothing_is_kept(work: Workspace, text: str) -> None:
    """Report page: read_range_empty: nothing of the file was shown."""
    assert work.read(text * 5, offset=99).reason("r") == "read_range_empty"


def test_every_read_of_a_file_opens_it_once(work: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: the disk check opens files once each, the last hash apart."""
    for _ in range(5):
        work.session.read(str(work.path), numbered(TEXT))
        work.session.read(str(work.path), numbered("\n".join(TEXT.split("\n")[:5])), limit=5)
    work.session.filler()
    opened: list[str] = []
    real_open = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: (opened.append(str(path)), real_open(path, *rest, **more))[1]
    )

    work.compact()

    assert opened.count(str(work.path)) == 2
