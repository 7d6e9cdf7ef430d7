"""What the transcript alone can and cannot say about a file: pointers that have to hold without a look at the disk."""

from __future__ import annotations

import pytest
from making import MadeSession, long_text, numbered

TEXT = long_text("a.py")


def test_a_stripped_command_output_names_its_lines() -> None:
    """A client strips the newline that ends an output: the lines came from the file, its end is unknown."""
    session = MadeSession(cwd="/w")
    stripped = session.bash("cat a.py", TEXT.rstrip())
    session.call("exec_command", {"cmd": "cat b.py"}, TEXT.replace("a.py", "b.py"))
    session.filler()

    texts = session.compact("recoverable").texts

    assert texts[stripped] == "[removed: re-read a.py (lines 1-20) to recover]"
    assert texts["c2"] == "[removed: re-read b.py to recover]"


def test_a_read_that_was_cut_off_at_the_tools_limit_names_its_lines() -> None:
    """A read tool shows the first 2000 lines of a longer file, and does not say so."""
    session = MadeSession(cwd="/w")
    cut = session.read("/w/long.py", numbered("\n".join(f"value {n}" for n in range(2000))))
    whole = session.read("/w/short.py", numbered("\n".join(f"value {n}" for n in range(1999))))
    session.filler()

    texts = session.compact("recoverable").texts

    assert texts[cut] == "[removed: re-read /w/long.py (lines 1-2000) to recover]"
    assert texts[whole] == "[removed: re-read /w/short.py to recover]"


def test_numbers_that_a_command_wrote_and_a_client_cut_are_no_proof() -> None:
    """`cat -n` whose last row was stripped of its tab is not what any lines of the file look like."""
    session = MadeSession(cwd="/w")
    call = session.bash(
        "cat -n a.py", numbered("a line long enough to be worth a note of its own\n", 1, "{:>6}\t{}").rstrip()
    )
    session.filler()

    assert session.compact("recoverable").reason(call) == "read_range_unknown"


@pytest.mark.parametrize(
    "given",
    [
        {"command": "npm run build", "run_in_background": True},
        {"command": "npm run build &"},
        {"command": "nohup npm run build >/dev/null 2>&1"},
    ],
)
def test_what_runs_in_the_background_may_write_later(given: dict[str, object]) -> None:
    """A command that was started before the read, and goes on, may have written the file after it."""
    session = MadeSession(cwd="/w")
    session.call("Bash", given, "started")
    read = session.read("/w/a.py", numbered(TEXT))
    session.filler()

    assert session.compact("recoverable").reason(read) == "file_written_later"


def test_what_has_ended_before_the_read_does_not_count() -> None:
    """A command in the foreground is over when the file is read."""
    session = MadeSession(cwd="/w")
    session.bash("npm run build 2>&1 && echo done", "built")
    read = session.read("/w/a.py", numbered(TEXT))

    assert session.compact("recoverable").reason(read) == "recoverable_file_read"


@pytest.mark.parametrize("path", ["sub/a.py", "./sub/a.py", "/w/sub/a.py"])
def test_a_stub_finds_its_read_however_the_path_is_written(path: str) -> None:
    """What a "file unchanged" stub refers to stays, whether either call wrote the path in full or not."""
    session = MadeSession()
    source = session.read(path, numbered(TEXT))
    stub = session.read("/w/sub/a.py", "File unchanged since last read. Refer to the earlier result.")
    session.filler()

    answer = session.compact("recoverable", workspace_root="/w", disk_check=False)

    assert answer.reason(source) == "referred_to_by_unchanged_stub"
    assert answer.reason(stub) == "unchanged_since_last_read_stub"


def test_a_stub_finds_its_read_where_no_directory_is_known() -> None:
    """A relative path and a full one may name the same file: with nothing to tell by, the file's name decides."""
    session = MadeSession()
    source = session.read("sub/a.py", numbered(TEXT))
    session.bash("make", numbered(TEXT))
    session.read("/somewhere/sub/a.py", "File unchanged since last read. Refer to the earlier result.")

    assert session.compact("lossless").reason(source) == "referred_to_by_unchanged_stub"


CUT = [
    TEXT + "\n\n... [19966 characters truncated] ...\n\n" + TEXT,
    TEXT + "\n\n... [560 lines truncated] ...",
    TEXT + "…5321 tokens truncated…" + TEXT,
    "Total output lines: 812\n\n" + TEXT,
    TEXT + "Shell cwd was reset to /w",
    TEXT + "\n\n<system-reminder>\nThink.\n</system-reminder>\n",
]


@pytest.mark.parametrize("text", CUT, ids=lambda text: text.replace(TEXT, "")[:30])
@pytest.mark.parametrize("codex", [False, True])
@pytest.mark.parametrize("command", ["cat a.py", "head -n 500 a.py", "sed -n '1,500p' a.py"])
def test_an_output_with_words_of_the_client_in_it_is_kept(text: str, codex: bool, command: str) -> None:
    """What a client cut out of an output, or added to it, is not in the file: no lines of it are that output."""
    session = MadeSession(cwd="/w")
    if codex:
        header = "Chunk ID: a\nWall time: 1 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\n"
        call = session.call("exec_command", {"cmd": command}, header + text)
    else:
        call = session.bash(command, text)
    session.filler()

    assert session.compact("recoverable").reason(call) == "read_range_unknown"


@pytest.mark.parametrize("suffix", ["\n\n(More lines follow.)", "\nPostToolUse hook: formatted", "\n\n\n"])
@pytest.mark.parametrize("given", [{}, {"offset": 1, "limit": 21}])
def test_rows_with_something_else_behind_them_are_kept(suffix: str, given: dict[str, int]) -> None:
    """Rows that are followed by other words than a reminder are not what the read tool showed of the file."""
    session = MadeSession(cwd="/w")
    call = session.read("/w/a.py", numbered(TEXT) + suffix, **given)
    session.filler()

    assert session.compact("recoverable").reason(call) == "read_range_unknown"


@pytest.mark.parametrize("command", ["cd /other", "cd /other && ls", "mkdir x; pushd /other", "(cd /other)\npopd"])
def test_a_shell_that_went_elsewhere_may_write_there(command: str) -> None:
    """A shell stays where `cd` took it: a later command without a directory of its own may write anywhere."""
    session = MadeSession(cwd="/w")
    session.bash(command, "ok")
    read = session.read("/other/a.py", numbered(TEXT))
    session.bash("make", "ok")
    session.filler()
    own = MadeSession(cwd="/w")
    own.bash(command, "ok", cwd="/w")
    own_read = own.read("/other/a.py", numbered(TEXT))
    own.bash("make", "ok", cwd="/w")
    own.filler()

    assert session.compact("recoverable").reason(read) == "file_written_later"
    assert own.compact("recoverable").reason(own_read) == "recoverable_file_read"
