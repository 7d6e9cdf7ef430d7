"""The seed's section 5, mode `recoverable`: what may become a pointer, by the transcript alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from making import MadeSession, long_text, numbered

from lcc.relevance import verify_recoverable

TEXT = long_text("a.py")
ROWS = numbered(TEXT)
CWD = "/w/p"
PATH = "/w/p/a.py"
NOTE = f"[removed: re-read {PATH} to recover]"


def session_with(*after: Callable[[MadeSession], object], before: Callable[[MadeSession], object] | None = None) -> Any:
    """A session whose call "r" reads a file, and what happens after it (and before)."""
    session = MadeSession(cwd=CWD)
    if before:
        before(session)
    session.call("Read", {"file_path": PATH}, ROWS, id="r")
    for happening in after:
        happening(session)
    session.filler(2)
    return session


def bash(command: str, text: str = "ok") -> Callable[[MadeSession], object]:
    """A shell command in the session's directory."""
    return lambda session: session.bash(command, text)


def call(tool: str, given: Any, **more: Any) -> Callable[[MadeSession], object]:
    """Any other call."""
    return lambda session: session.call(tool, given, "ok", **more)


def test_everything_lossless_does_is_done_too() -> None:
    """§5: recoverable does everything lossless does, and a pointer to a kept result comes first."""
    session = MadeSession(cwd=CWD)
    session.read(PATH, ROWS)
    session.bash("make", "x\n" + TEXT)
    session.bash("make", TEXT)
    session.bash("make", ROWS)

    answer = session.compact("recoverable")

    assert answer.texts["c1"] == "[identical output kept at c4]"
    assert answer.records["c1"]["kept_at"] == "c4"
    assert answer.decision("c3") == "keep"


@pytest.mark.parametrize("offset", [None, 1, 7])
def test_a_file_read_becomes_a_pointer(offset: int | None) -> None:
    """§5: [removed: re-read <path> (lines a-b) to recover], the lines being those that the call read."""
    session = MadeSession(cwd=CWD)
    if offset is None:
        session.call("Read", {"file_path": PATH}, ROWS, id="r")
        note, lines = NOTE, None
    else:
        part = numbered("\n".join(TEXT.split("\n")[offset - 1 : offset + 9]), offset)
        session.call("Read", {"file_path": PATH, "offset": offset, "limit": 10}, part, id="r")
        note = f"[removed: re-read {PATH} (lines {offset}-{offset + 9}) to recover]"
        lines = [offset, offset + 9]
    session.filler()

    answer = session.compact("recoverable")

    assert answer.texts["r"] == note
    record = answer.records["r"]
    assert (record["decision"], record["reason"]) == ("replace", "recoverable_file_read")
    assert record["note"] == note
    assert record["recover"] == {"kind": "file", "path": PATH, "cwd": None, "lines": lines}
    assert record["recoverability_check"] == answer.report["recoverability_check"] == "transcript_proxy"
    assert answer.report["semantic_guarantee"] == "recoverable"
    assert verify_recoverable(session.messages, answer.messages) == []


@pytest.mark.parametrize(
    "happening",
    [
        call("Write", {"file_path": PATH, "content": "x"}),
        call("Edit", {"file_path": PATH, "old_string": "a", "new_string": "b"}),
        call("MultiEdit", {"file_path": "a.py", "edits": []}),
        call("apply_patch", "*** Begin Patch\n*** Update File: a.py\n@@\n*** End Patch"),
        call("apply_patch", {"input": "*** Begin Patch\n*** Delete File: a.py\n*** End Patch"}),
        call("exec_command", {"cmd": "apply_patch <<'E'\n*** Begin Patch\n*** Update File: a.py\n*** End Patch\nE"}),
        bash("rm a.py"),
        bash("sed -i s/a/b/ a.py"),
        bash(f"grep -n x {PATH}"),
        bash("git checkout main"),
        bash("git -C /w/p stash pop"),
        bash("git pull --rebase"),
        bash("git reset --hard && echo done"),
        bash("python build.py"),
        bash("make"),
        bash("npm test"),
        bash("echo x > /w/p/b.py"),
        bash("cat b.py | tee c.py"),
        bash("ls $(make)"),
        call("Bash", {"command": "make -C /w/p"}, cwd="/elsewhere"),
        call("Bash", {"command": "make"}, cwd="/w"),
        call("mcp__files__save", {"name": "b"}),
        call("UnknownTool", {}),
        call("Task", {"prompt": "Mend it"}),
    ],
)
def test_what_may_have_written_the_file_blocks_the_pointer(happening: Callable[[MadeSession], object]) -> None:
    """§5: replaced only when no later call can have written the file: no write, patch or delete naming it, no
    worktree-wide git command, no opaque call that may write under its directory; nor may a later call name it."""
    answer = session_with(happening).compact("recoverable")

    assert answer.texts["r"] == ROWS
    assert answer.reason("r") == "file_written_later"


@pytest.mark.parametrize(
    "happening",
    [
        call("Read", {"file_path": PATH, "limit": 2}),
        bash("head -n 3 a.py", "x"),
        bash("git status --short"),
        bash("git log --oneline -n 3"),
        bash("ls -la"),
        call("Write", {"file_path": "/w/p/b.py", "content": "x"}),
        call("Glob", {"pattern": "**/*.md"}),
        call("Bash", {"command": "make"}, cwd="/elsewhere/q"),
        call("TodoWrite", {"todos": []}),
    ],
)
def test_what_cannot_have_written_the_file_does_not_block_it(happening: Callable[[MadeSession], object]) -> None:
    """§5: reads of the file, read-only commands, and work elsewhere leave the pointer possible."""
    answer = session_with(happening).compact("recoverable")

    assert answer.texts["r"] == NOTE


def test_what_came_before_the_read_does_not_matter() -> None:
    """§5: only later calls can have changed what the read showed."""
    answer = session_with(before=bash("make")).compact("recoverable")

    assert answer.texts["r"] == NOTE


READ_ONLY = [
    "ls",
    "ls -la src",
    "find . -name '*.py'",
    "rg -n parse src",
    'grep -rn "def parse" src',
    "git status",
    "git diff HEAD",
    "git log --oneline",
    "git show HEAD",
    "wc -l a.py b.py",
    "tree -L 2",
    "pwd",
    "node --version",
    "cat a.py b.py",
    "sed -n '1,3p' a.py b.py",
]
NOT_READ_ONLY = [
    "ls | head",
    "ls > out",
    "ls >> out",
    "ls 2>&1",
    "ls < in",
    "ls; make",
    "ls && make",
    "ls || make",
    "ls &",
    "ls `make`",
    "ls $(make)",
    "ls $HOME",
    "ls ~/x",
    "ls\nmake",
    "(ls)",
    "{ ls; }",
    "! ls",
    "LANG=C ls",
    "env ls",
    "sudo ls",
    "command ls",
    "find . -exec rm {} +",
    "find . -execdir rm {} +",
    "find . -delete",
    "find . -ok rm {} +",
    "find . -fprint out",
    "tree -o out",
    "tree -oout",
    "tree --output=out",
    "sed -n '1,3w out' a.py",
    "sed '1,3p' a.py",
    "sed -i -n '1,3p' a.py",
    "sed -n -i '1,3p' a.py",
    "sed -n '1,3p' -i a.py",
    "sed -n '1,3p' --in-place a.py",
    "git diff --output=x",
    "git diff --ext-diff",
    "git commit -m x",
    "git push",
    "git -c core.pager=x log",
    "rg --pre x y",
    "tail -f log",
    "node script.js",
    "make --version x",
    "cd src",
    "./ls",
    "cat <(make)",
    "echo hello",
]


@pytest.mark.parametrize("command", READ_ONLY)
def test_an_allowlisted_command_becomes_a_pointer(command: str) -> None:
    """§5: [removed: re-run `<cmd>` to recover] for a command on the read-only allowlist, where that is allowed."""
    session = MadeSession(cwd=CWD)
    session.call("Bash", {"command": command}, TEXT, id="r")
    session.filler()

    answer = session.compact("recoverable", allow_command_pointers=True)

    assert answer.texts["r"] == f"[removed: re-run `{command}` to recover]"
    record = answer.records["r"]
    assert (record["decision"], record["reason"]) == ("replace", "recoverable_read_only_command")
    assert record["recover"] == {"kind": "command", "command": command, "cwd": None}
    assert record["recoverability_check"] == "read_only_allowlist"
    assert verify_recoverable(session.messages, answer.messages, allow_command_pointers=True) == []
    assert [v.id for v in verify_recoverable(session.messages, answer.messages)] == ["r"]


@pytest.mark.parametrize("command", NOT_READ_ONLY)
def test_any_other_command_is_kept(command: str) -> None:
    """§5: no pipes, redirects, substitutions or env prefixes, and none of the options that write or run something."""
    session = MadeSession(cwd=CWD)
    session.call("Bash", {"command": command}, TEXT * 3, id="r")
    session.filler()

    answer = session.compact("recoverable", allow_command_pointers=True)

    assert answer.texts["r"] == TEXT * 3
    assert answer.reason("r") == "not_recoverable"


def test_command_pointers_are_off_unless_allowed() -> None:
    """§5: command pointers are off unless allow_command_pointers."""
    session = MadeSession(cwd=CWD)
    session.call("Bash", {"command": "git log"}, TEXT, id="r")
    session.filler()

    answer = session.compact("recoverable")

    assert answer.texts["r"] == TEXT
    assert answer.reason("r") == "command_pointers_disabled"


def test_a_command_whose_output_changed_is_kept() -> None:
    """Report page: a command that printed something else when it was run again would not give the bytes back."""
    session = MadeSession(cwd=CWD)
    session.call("Bash", {"command": "git log"}, TEXT, id="r")
    session.bash("git log", long_text("newer"))
    session.filler()

    assert session.compact("recoverable", allow_command_pointers=True).reason("r") == "command_output_changed_later"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__files__read", {"file_path": PATH}),
        ("WebFetch", {"url": "https://example.org/a"}),
        ("WebSearch", {"query": "a"}),
        ("Edit", {"file_path": PATH, "old_string": "a", "new_string": "b"}),
        ("Write", {"file_path": PATH, "content": "a"}),
        ("Task", {"prompt": "a"}),
        ("TodoWrite", {"todos": []}),
        ("Bash", {"command": "pytest -q"}),
        ("Grep", {"pattern": "x", "path": PATH}),
        ("BashOutput", {"bash_id": "1"}),
    ],
)
@pytest.mark.parametrize("options", [{}, {"workspace_root": "/w", "disk_check": True}])
def test_other_results_are_never_replaced(tool: str, given: Any, options: Any) -> None:
    """§5: never replaced: other commands, MCP and web tools, edit results."""
    session = MadeSession(cwd=CWD)
    session.call(tool, given, TEXT, id="r")
    session.filler()

    answer = session.compact("recoverable", allow_command_pointers=True, **options)

    assert answer.texts["r"] == TEXT
    assert answer.reason("r") == "not_recoverable"


def test_failed_results_and_the_call_before_the_latest_error_are_kept() -> None:
    """§5: never replaced: failed results, the latest error and the call before it."""
    session = MadeSession(cwd=CWD)
    session.call("Read", {"file_path": "/w/p/1.py"}, ROWS.replace("a.py", "1.py"), id="fine")
    session.call("Read", {"file_path": "/w/p/2.py"}, ROWS.replace("a.py", "2.py"), True, id="failed")
    session.call("Read", {"file_path": "/w/p/3.py"}, ROWS.replace("a.py", "3.py"), id="before")
    session.call("Read", {"file_path": "/w/p/4.py"}, ROWS.replace("a.py", "4.py"), True, id="latest")
    session.filler()

    answer = session.compact("recoverable")

    assert {call: answer.reason(call) for call in ("fine", "failed", "before", "latest")} == {
        "fine": "recoverable_file_read",
        "failed": "failed_result",
        "before": "call_before_latest_error",
        "latest": "latest_error_result",
    }


def test_the_last_turns_are_kept() -> None:
    """§5: never replaced: the last preserve_recent turns."""
    session = session_with()

    assert session.compact("recoverable", preserve_recent=5).reason("r") == "pinned_recent_result"
    assert session.compact("recoverable", preserve_recent=4).texts["r"] == NOTE


@pytest.mark.parametrize("words", [PATH, "p/a.py", "a.py", "look at `a.py`, please", "a.py:12", "@a.py", "(r)", "r."])
def test_what_the_goal_or_a_recent_user_turn_names_is_kept(words: str) -> None:
    """§5: never replaced: calls named in the goal or recent user turns, by path, file name or call id."""
    session = session_with()
    assert session.compact("recoverable", question=f"See {words}").reason("r") == "named_in_goal_or_recent_turns"
    session.say(f"See {words}")
    assert session.compact("recoverable").reason("r") == "named_in_goal_or_recent_turns"
    assert session.compact("recoverable", preserve_recent=1).reason("r") == "named_in_goal_or_recent_turns"


@pytest.mark.parametrize("words", ["b.py", "a.pyc", "ya.py", "other/a.pyx", "read"])
def test_what_is_not_named_may_go(words: str) -> None:
    """§5: only the call that is named is kept for it."""
    assert session_with().compact("recoverable", question=f"See {words}").texts["r"] == NOTE


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/w/p/my notes.md", "Look at my notes.md, please"),
        ("/w/p/app/(group)/[slug]/page.tsx", "Mend app/(group)/[slug]/page.tsx"),
        ("/w/p/it's.py", "See it's.py"),
    ],
)
def test_a_path_that_is_no_single_word_is_found_in_the_words(path: str, words: str) -> None:
    """§5: a call named in a recent user turn is kept, also where its path has blanks, brackets or quotes in it."""
    session = MadeSession(cwd=CWD)
    session.call("Read", {"file_path": path}, ROWS, id="r")
    session.filler()

    assert session.compact("recoverable", question=words).reason("r") == "named_in_goal_or_recent_turns"
    assert session.compact("recoverable", question="See b.py").texts["r"] == f"[removed: re-read {path} to recover]"


def test_verify_recoverable_checks_each_pointer() -> None:
    """§5: texts and inputs are unchanged, and each pointer names its own call's path or allowlisted command."""
    session = session_with()
    good = session.compact("recoverable").messages
    assert verify_recoverable(session.messages, good) == []

    def with_text(text: str) -> list[Any]:
        return [
            {**m, "toolResults": [{"tool_use_id": "r", "text": text}]} if "r" in str(m.get("toolResults")) else m
            for m in session.messages
        ]

    for text in (
        "[removed: re-read /w/p/b.py to recover]",
        f"[removed: re-read {PATH} (lines 1-20) to recover]",
        f"[removed: re-read {PATH} (lines 2-22) to recover]",
        "[removed: re-run `cat a.py` to recover]",
        NOTE + "\nmore",
        "[identical output kept at c1]",
        "gone",
        "",
    ):
        assert [v.id for v in verify_recoverable(session.messages, with_text(text))] == ["r"], text
    changed = [{**good[0], "text": "other words"}, *good[1:]]
    assert verify_recoverable(session.messages, changed) != []
    moved = [good[0], {**good[1], "toolUses": [{**good[1]["toolUses"][0], "input": {"file_path": "b"}}]}, *good[2:]]
    assert verify_recoverable(session.messages, moved) != []


def test_a_violation_keeps_only_what_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    """§5 and issue: what the verification does not confirm is kept, and nothing else."""
    from lcc.relevance import transcript_recoverable

    session = session_with()
    session.call("Read", {"file_path": "/w/p/b.py"}, ROWS.replace("a.py", "b.py"), id="other")
    session.filler()
    right = transcript_recoverable.reread_note
    monkeypatch.setattr(
        transcript_recoverable,
        "reread_note",
        lambda path, *rest, **more: right("/w/p/c.py" if path == PATH else path, *rest, **more),
    )

    answer = session.compact("recoverable")

    assert answer.texts["r"] == ROWS
    assert answer.reason("r") == "recoverable_verification_failed"
    assert answer.texts["other"] == "[removed: re-read /w/p/b.py to recover]"
    assert len(answer.report["lossless_violations"]) == 1
    assert answer.report["degraded"] is True
