"""The transcript as the proxy of the disk: who may have written a file after it was read."""

from __future__ import annotations

from typing import Any

import pytest
from making import MadeSession, Row, answer, assistant, jsonl, numbered, use, user

from lcc.relevance import TranscriptCompactionRequest, compact_transcript, run_pass
from lcc.transcript import read_transcript

SHOWN = numbered("".join(f"line {n} of this file\n" for n in range(1, 31)))
FILE = "/home/u/r/src/p.py"


def after_reading(tool: str, given: dict[str, Any], path: str = FILE, text: str | None = "ok") -> str:
    session = MadeSession(cwd="/srv/elsewhere")
    session.call("Read", {"file_path": path}, SHOWN, id="r")
    session.call(tool, given, text)
    session.filler()
    return session.compact("recoverable", disk_check=False).reason("r")


def ran(command: str, workdir: str = "/srv/b/c", **more: Any) -> dict[str, Any]:
    return {"cmd": command, "workdir": workdir, **more}


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("exec_command", ran("git stash pop", "/home/u/r/docs/deep")),
        ("exec_command", ran("docker run --rm -v /home/u/r:/w image make")),
        ("exec_command", ran("docker run -v/home/u/r:/w image make")),
        ("exec_command", ran("make -C/home/u/r all")),
        ("exec_command", ran("gen --out=/home/u/r/src")),
        ("exec_command", ran("tmux new -d 'make'")),
        ("exec_command", ran("./tool --version", "/home/u/r")),
        ("mcp__web__fetch_page", {"url": "x"}),
        ("mcp__files__read", {"path": "a"}),
        ("Skill", {"skill": "tidy"}),
        ("Edit", {"file_path": "/home/u/r/src/P.PY", "old_string": "a", "new_string": "b"}),
        ("Edit", {"file_path": "src\\p.py", "old_string": "a", "new_string": "b"}),
    ],
)
def test_a_call_that_may_have_written_the_file_keeps_its_read(tool: str, given: dict[str, Any]) -> None:
    assert after_reading(tool, given) == "file_written_later"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("exec_command", ran("make", "/home/u/other")),
        ("exec_command", ran("git checkout main", "/srv/b/c")),
        ("exec_command", ran("docker run -v /opt/x:/w/home image make")),
        ("exec_command", ran("cat notes", "/home/u/r")),
        ("WebFetch", {"url": "https://example.org/home/u/r"}),
    ],
)
def test_a_call_that_cannot_have_written_it_does_not(tool: str, given: dict[str, Any]) -> None:
    assert after_reading(tool, given) == "recoverable_file_read"


@pytest.mark.parametrize(
    ("read", "edited"),
    [
        ("C:\\work\\A.py", "c:/work/a.py"),
        ("C:\\work\\a.py", "/mnt/c/work/a.py"),
        ("/home/u/caf\u00e9.py", "/home/u/cafe\u0301.py"),
        ("/home/u/r/a.py", "\\\\wsl.localhost\\Debian\\home\\u\\r\\a.py"),
    ],
)
def test_another_spelling_of_the_path_is_the_same_file(read: str, edited: str) -> None:
    given = {"file_path": edited, "old_string": "a", "new_string": "b"}
    assert after_reading("Edit", given, read) == "file_written_later"


def test_what_was_still_running_before_the_read_may_write_after_it() -> None:
    for given, text in (
        (ran("serve", "/home/u/r"), None),
        (ran("serve --daemon", "/home/u/r"), "ok"),
        (ran("serve", "/home/u/r", run_in_background=True), "started"),
    ):
        session = MadeSession()
        session.call("exec_command", given, text)
        session.call("Read", {"file_path": FILE}, SHOWN, id="r")
        session.filler()
        assert session.compact("recoverable", disk_check=False).reason("r") == "file_written_later"


@pytest.mark.parametrize("answers", [("w", "r"), ("r", "w")])
def test_of_parallel_calls_the_one_that_was_answered_last_is_the_later(answers: tuple[str, str]) -> None:
    results = {"r": {"tool_use_id": "r", "text": SHOWN}, "w": {"tool_use_id": "w", "text": "ok"}}
    edit = {"tool_use_id": "w", "tool": "Edit", "input": {"file_path": FILE, "old_string": "a", "new_string": "b"}}
    read = {"tool_use_id": "r", "tool": "Read", "input": {"file_path": FILE}}
    payload = [
        {"role": "user", "text": "start"},
        {"role": "assistant", "text": "", "toolUses": [edit, read]},
        {"role": "user", "toolResults": [results[name] for name in answers]},
        {"role": "assistant", "text": "done"},
    ]
    request = TranscriptCompactionRequest(
        payload=payload, provider="rules", rules_mode="recoverable", disk_check=False, preserve_recent=0
    )
    report = compact_transcript(request).report
    reasons = {record["id"]: record["reason"] for record in report["decisions"]}
    assert (reasons["r"] == "file_written_later") == (answers == ("r", "w"))


def in_a_file(*between: Row, after: str = "read2") -> str:
    rows = [
        user("u0", None, "start"),
        assistant("read1", "u0", "m1", use("r", "Read", file_path=FILE)),
        answer("read2", "read1", "r", SHOWN),
        *between,
    ]
    for turn in range(8):
        rows.append(user(f"x{turn}", after, f"go on {turn}"))
        after = f"x{turn}"
    transcript = read_transcript(jsonl(*rows))
    request = TranscriptCompactionRequest(
        payload=None, provider="rules", rules_mode="recoverable", disk_check=False, preserve_recent=2
    )
    report = run_pass(transcript, request, lambda result: result.report)
    return next(record["reason"] for record in report["decisions"] if record["id"] == "r")


def test_what_was_done_outside_of_the_live_calls_counts() -> None:
    edit = use("w", "Edit", file_path=FILE, old_string="a", new_string="b")
    rewound = (assistant("w1", "read2", "m2", edit), answer("w2", "w1", "w"))
    own = user("own", "read2", "<bash-input>cd /home/u/r; git checkout other</bash-input>")
    notice = {"type": "edited_text_file", "filename": FILE, "snippet": "1\tx"}
    changed = {"type": "attachment", "uuid": "n", "parentUuid": "read2", "attachment": notice}
    assert in_a_file() == "recoverable_file_read"
    assert in_a_file(*rewound) == "file_written_later"
    assert in_a_file(own, after="own") == "file_written_later"
    assert in_a_file(changed, after="n") == "file_written_later"
    harmless = user("own", "read2", "<bash-input>git status</bash-input>")
    assert in_a_file(harmless, after="own") == "recoverable_file_read"
