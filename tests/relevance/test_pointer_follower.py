"""The follower refuses what it must refuse: each broken compaction here looks like a good one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from relevance.pointer_follower import BrokenPointerError, follow, resolve, stub_sources

TEXT = "".join(f"line {number} of the file\n" for number in range(1, 9))
NUMBERED = "\n".join(f"{number:>6}→{line}" for number, line in enumerate(TEXT.split("\n"), 1))
REMINDER = "\n\n<system-reminder>\nThink.\n</system-reminder>\n"


def session(*, tool: str, given: dict[str, Any], text: str, later: str, flag: bool | None = None) -> list[Any]:
    """A call c1 whose result is to be replaced, and a later one, c2, that holds ``later``."""
    answer: dict[str, Any] = {"tool_use_id": "c1", "text": text}
    if flag is not None:
        answer["is_error"] = flag
    return [
        {"role": "user", "text": "go"},
        {"role": "assistant", "text": "a", "toolUses": [{"tool_use_id": "c1", "tool": tool, "input": given}]},
        {"role": "user", "toolResults": [answer]},
        {"role": "assistant", "text": "b", "toolUses": [{"tool_use_id": "c2", "tool": "Grep", "input": {}}]},
        {"role": "user", "toolResults": [{"tool_use_id": "c2", "text": later}]},
    ]


def replaced(messages: list[Any], text: str, call: int = 2) -> list[Any]:
    """The same session with another text in one result."""
    changed = copy.deepcopy(messages)
    changed[call]["toolResults"][0]["text"] = text
    return changed


def read(text: str = NUMBERED, **given: Any) -> list[Any]:
    """A session whose c1 reads /w/f."""
    return session(tool="Read", given={"file_path": "/w/f", **given}, text=text, later="x" * 99)


GOOD = [
    (session(tool="Grep", given={}, text=TEXT, later=TEXT), "[identical output kept at c2]"),
    (session(tool="Grep", given={}, text=TEXT[:-1], later="x\n" + TEXT), "[output = lines 2-9 of c2]"),
    (read(), "[removed: re-read /w/f to recover]"),
    (read(NUMBERED + REMINDER), "[removed: re-read /w/f to recover]" + REMINDER),
    (read("\n".join(NUMBERED.split("\n")[2:4]), offset=3), "[removed: re-read /w/f (lines 3-4) to recover]"),
    (
        read("\n".join(f"{n}\tline {n + 1} of the file" for n in range(4)), offset=0),
        "[removed: re-read /w/f (lines 1-4) to recover]",
    ),
]
BAD = [
    (session(tool="Grep", given={}, text=TEXT, later=TEXT + "\n"), "[identical output kept at c2]"),
    (session(tool="Grep", given={}, text=TEXT, later=TEXT), "[identical output kept at c3]"),
    (session(tool="Grep", given={}, text=TEXT, later=TEXT), "[identical output kept at c1]"),
    (session(tool="Grep", given={}, text=TEXT, later=TEXT, flag=True), "[identical output kept at c2]"),
    (session(tool="Grep", given={}, text=TEXT, later="x\n" + TEXT), "[output = lines 2-9 of c2]"),
    (session(tool="Grep", given={}, text="a\u2028b" * 9, later="x\na\n" + "b" * 9), "[output = lines 2-3 of c2]"),
    (session(tool="Grep", given={}, text=TEXT, later="x"), "[removed: re-read /w/f to recover]"),
    (read(), "[removed: re-read /w/g to recover]"),
    (read(), "[removed: re-read /w/f (lines 1-8) to recover]"),
    (read(), "[removed: re-read /w/f (lines 1-10) to recover]"),
    (read(NUMBERED + REMINDER), "[removed: re-read /w/f to recover]"),
    (read(NUMBERED + "\nmore"), "[removed: re-read /w/f to recover]\nmore"),
    (read(), "[removed: re-read /w/f to recover; content verified on disk at compaction time]"),
    (read(), "[removed]"),
    (read(), ""),
    (read("short"), "[removed: re-read /w/f to recover]"),
    (read(NUMBERED.replace("line 5", "line five")), "[removed: re-read /w/f to recover]"),
    (
        session(tool="Bash", given={"command": "cat /w/f"}, text=TEXT[:-1], later="x"),
        "[removed: re-read /w/f to recover]",
    ),
    (
        session(tool="Bash", given={"command": "cat /w/f"}, text=NUMBERED, later="x"),
        "[removed: re-read /w/f to recover]",
    ),
]


def file_of(_call: str, path: str) -> bytes:
    """The one file of these sessions."""
    assert path == "/w/f"
    return TEXT.encode()


@pytest.mark.parametrize(("messages", "note"), GOOD)
def test_a_true_note_is_followed(messages: list[Any], note: str) -> None:
    """A note that gives everything back is accepted."""
    assert follow(messages, replaced(messages, note), file_of=file_of, verified=False) == {"c1": note}


@pytest.mark.parametrize(("messages", "note"), BAD)
def test_an_untrue_note_is_refused(messages: list[Any], note: str) -> None:
    """A note that names something else, or leaves a byte out, is refused."""
    with pytest.raises(BrokenPointerError):
        follow(messages, replaced(messages, note), file_of=file_of, verified=False)


def test_a_pointer_at_a_replaced_result_is_refused() -> None:
    """What a pointer names must still be there."""
    messages = session(tool="Grep", given={}, text=TEXT, later=TEXT)
    broken = replaced(replaced(messages, "[identical output kept at c2]"), "[output = lines 1-2 of c1]", 4)
    with pytest.raises(BrokenPointerError):
        follow(messages, broken, file_of=file_of)


@pytest.mark.parametrize("change", ["text", "input", "role", "flag", "gone", "order", "extra"])
def test_any_other_change_is_refused(change: str) -> None:
    """Texts, inputs, roles, flags, order and unknown fields must be as they were."""
    messages = session(tool="Grep", given={"pattern": "x"}, text=TEXT, later=TEXT)
    broken: list[Any] = copy.deepcopy(messages)
    if change == "text":
        broken[1]["text"] += " "
    elif change == "input":
        broken[1]["toolUses"][0]["input"]["pattern"] = "y"
    elif change == "role":
        broken[1]["role"] = "user"
    elif change == "flag":
        broken[2]["toolResults"][0]["is_error"] = False
    elif change == "gone":
        del broken[3:]
    elif change == "order":
        broken[2], broken[4] = broken[4], broken[2]
    else:
        broken[0]["more"] = 1
    with pytest.raises(BrokenPointerError):
        follow(messages, broken, file_of=file_of)


def test_paths_resolve_against_the_nearest_directory(tmp_path: Path) -> None:
    """The call's directory, else the session's, else the root."""
    root, session_cwd = str(tmp_path), str(tmp_path / "s")
    assert resolve({"input": {}, "cwd": "/c"}, "f", session_cwd, root) == "/c/f"
    assert resolve({"input": {}}, "f", session_cwd, root) == f"{session_cwd}/f"
    assert resolve({"input": {}}, "f", None, root) == f"{root}/f"
    assert resolve({"input": {"workdir": "d"}}, "f", session_cwd, root) == f"{session_cwd}/d/f"
    assert resolve({"input": {"workdir": "/d"}, "cwd": "/c"}, "f", session_cwd, root) == "/d/f"
    assert resolve({"input": {"workdir": "d"}, "cwd": "/c/d"}, "f", session_cwd, root) == "/c/d/f"


def test_a_stub_refers_to_the_latest_read_of_its_lines() -> None:
    """The read of the same lines, or else of the same file."""
    messages = read()
    stub = session(tool="Read", given={"file_path": "/w/f"}, text="File unchanged since last read. x", later="")
    stub[1]["toolUses"][0]["tool_use_id"] = stub[2]["toolResults"][0]["tool_use_id"] = "c9"
    assert list(stub_sources(messages + stub[1:3], None, None)) == [("c9", "c1")]
