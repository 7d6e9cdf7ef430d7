"""`auto` from the command line: results by score, then inputs of old calls, and everything back byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli.cli_world import World

from lcc.contract.report_reader import read_report
from lcc.recovery.inputs import restore_inputs
from lcc.stash import Stash
from lcc.transcript import read_transcript

LINES = [f"    total_{number} = frobnicate(value_{number}, {number * 37})" for number in range(60)]
BODY = "\n".join(LINES) + "\n"
SAMPLE_CALLS = 24


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def session(folder: Path) -> list[dict[str, Any]]:
    """Old edits and writes with long inputs; short results, so that results alone free next to nothing."""
    messages: list[dict[str, Any]] = [{"role": "user", "text": "Go on."}]

    def call(name: str, tool: str, given: dict[str, Any], text: str, error: bool | None = None) -> None:
        result: dict[str, Any] = {"tool_use_id": name, "text": text}
        if error is not None:
            result["is_error"] = error
        messages.append({"role": "assistant", "toolUses": [{"tool_use_id": name, "tool": tool, "input": given}]})
        messages.append({"role": "user", "toolResults": [result]})

    on_disk = folder / "kept.py"
    on_disk.write_text(BODY)
    call("w1", "Write", {"file_path": str(on_disk), "content": BODY}, "ok")
    call("w1b", "Read", {"file_path": str(on_disk), "limit": 1}, "1\tx")
    call("w2", "Write", {"file_path": "/p/gone.py", "content": BODY.replace("total", "sum")}, "ok")
    call("w2b", "Edit", {"file_path": "/p/gone.py", "old_string": "x" * 300, "new_string": "y"}, "ok")
    call("e1", "Edit", {"file_path": "/p/gone.py", "old_string": BODY[:900], "new_string": BODY[900:2000]}, "ok")
    call("between", "Bash", {"command": "true"}, "ok", False)
    call("bad", "Edit", {"file_path": "/p/gone.py", "old_string": BODY[:800], "new_string": "z"}, "no", True)
    call("c1", "Bash", {"command": "cat > x <<'EOF'\n" + BODY + "EOF", "description": "Write x"}, "", False)
    call("a1", "Task", {"prompt": "Look at it. " + BODY, "description": "Look"}, "done", False)
    call("p1", "ExitPlanMode", {"plan": "The plan. " + BODY}, "ok", False)
    call("q1", "AskUserQuestion", {"question": "Which? " + BODY}, "the first", False)
    call("last", "Write", {"file_path": "/p/only.py", "content": BODY.replace("total", "last")}, "ok", False)
    for number in range(SAMPLE_CALLS):
        call(f"f{number}", "Bash", {"command": "true"}, "ok", False)
    return messages


@pytest.fixture
def compacted(world: World, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "in.json").write_text(json.dumps({"messages": session(tmp_path)}, ensure_ascii=False))
    ran = world.lcc(
        *("compact", "in.json", "--provider", "rules", "--rules-mode", "auto", "--workspace-root", str(tmp_path)),
        *("-o", "out.json", "-r", "report.json"),
    )
    assert ran.code == 0, ran.err
    report: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())
    return report


def inputs_in(path: Path) -> dict[str, Any]:
    messages = json.loads(path.read_text())["messages"]
    return {use["tool_use_id"]: use["input"] for message in messages for use in message.get("toolUses", [])}


def test_old_long_inputs_become_notes_and_everything_else_stays(
    world: World, compacted: dict[str, Any], tmp_path: Path
) -> None:
    before, after = inputs_in(tmp_path / "in.json"), inputs_in(tmp_path / "out.json")
    changed = {name for name in before if before[name] != after[name]}

    assert changed == {"w1", "w2", "w2b", "e1", "c1", "a1"}
    assert after["w1"]["content"] == (
        f"[removed: re-read {tmp_path}/kept.py to recover; content verified on disk at compaction time]"
    )
    assert after["w2"]["content"].startswith("[removed: ")
    assert "lcc recall" in after["w2"]["content"]
    for name in changed:
        assert list(after[name]) == list(before[name])
        assert {key: type(value) for key, value in after[name].items()} == {
            key: type(value) for key, value in before[name].items()
        }
    assert after["c1"]["description"] == "Write x"


def failed(messages: list[dict[str, Any]]) -> None:
    for result in (result for message in messages for result in message.get("toolResults", [])):
        if result["tool_use_id"] == "w2":
            result["is_error"] = True


def named_by_the_user(messages: list[dict[str, Any]]) -> None:
    messages.append({"role": "user", "text": "Now look at /p/gone.py again."})


def as_it_was(messages: list[dict[str, Any]]) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "flags", "kept"),
    [
        pytest.param(failed, (), {"w2"}, id="a call that failed"),
        pytest.param(named_by_the_user, (), {"w2", "w2b", "e1"}, id="a file that the newest user message names"),
        pytest.param(
            as_it_was,
            ("--question", "What is in /p/gone.py?"),
            {"w2", "w2b", "e1"},
            id="a file that the question names",
        ),
        pytest.param(as_it_was, ("--protect-path", "gone.py"), {"w2", "w2b", "e1"}, id="a protected path"),
        pytest.param(as_it_was, ("--protect-tool", "Bash"), {"c1"}, id="a protected tool"),
    ],
)
def test_a_guard_keeps_inputs_and_only_those(
    world: World,
    tmp_path: Path,
    change: Callable[[list[dict[str, Any]]], None],
    flags: tuple[str, ...],
    kept: set[str],
) -> None:
    """The first test says that each of these goes where no guard holds it."""
    messages = session(tmp_path)
    change(messages)
    (tmp_path / "in.json").write_text(json.dumps({"messages": messages}))
    ran = world.lcc(
        *("compact", "in.json", "--provider", "rules", "--rules-mode", "auto", "--workspace-root", str(tmp_path)),
        *("-o", "out.json", "-r", "report.json", *flags),
    )
    assert ran.code == 0, ran.err
    before, after = inputs_in(tmp_path / "in.json"), inputs_in(tmp_path / "out.json")

    assert {name for name in before if before[name] != after[name]} == {"w1", "w2", "w2b", "e1", "c1", "a1"} - kept


def test_the_report_says_which_rung_did_what(world: World, compacted: dict[str, Any]) -> None:
    assert "7 long inputs of old calls became notes" in world.lcc("explain", "report.json").text
    assert (compacted["rules_mode"], compacted["rules_mode_requested"]) == ("stashed", "auto")
    rungs = {rung["rung"]: rung for rung in compacted["rungs"]}
    assert rungs["inputs"]["replaced"] == 7
    assert rungs["inputs"]["chars"] > 10_000
    checks = {
        record["id"]: [note["recoverability_check"] for note in record["inputs"]]
        for record in compacted["decisions"]
        if record["inputs"]
    }
    assert checks["w1"] == ["disk"]
    assert checks["e1"] == ["stash", "stash"]
    assert compacted["worth_it"] is True


@pytest.mark.parametrize("report", [True, False])
def test_restore_gives_back_the_original(world: World, compacted: dict[str, Any], report: bool) -> None:
    """With the report byte for byte; without it all but what a file holds."""
    words = ("--report", "report.json") if report else ()
    ran = world.lcc("restore", "out.json", *words, "-o", "back.json", "--against", "in.json")
    assert ran.code == (0 if report else 1), ran.err
    assert ("byte for byte" in ran.err) is report
    back = inputs_in(world.folder / "back.json")
    assert back["e1"] == inputs_in(world.folder / "in.json")["e1"]


def test_inputs_on_another_branch_come_back_too(world: World, compacted: dict[str, Any]) -> None:
    """A rewind may lead back to them."""
    transcript = read_transcript((world.folder / "out.json").read_bytes())
    stash = Stash(world.folder / "stash")
    rewound = replace(transcript, messages=(), aside=transcript.messages)
    reports = [read_report((world.folder / "report.json").read_bytes())]

    found = restore_inputs(rewound, reports, stash)

    assert (found.count, found.failures) == (7, [])
    assert found.strings == restore_inputs(transcript, reports, stash).strings


def test_a_lost_object_is_told(world: World, compacted: dict[str, Any]) -> None:
    """Exit 1, with the call and its note; what can be had back is."""
    (world.folder / "kept.py").write_text("another\n")
    ran = world.lcc("restore", "out.json", "--report", "report.json", "-o", "back.json")
    assert ran.code == 1
    assert "the input of w1" in ran.err
    assert inputs_in(world.folder / "back.json")["w2"] == inputs_in(world.folder / "in.json")["w2"]


def test_without_inputs_and_without_a_stash_the_rungs_are_left_out(world: World, compacted: dict[str, Any]) -> None:
    for flag, mode in (("--no-inputs", "stashed"), ("--no-stash", "recoverable")):
        ran = world.lcc(
            *("compact", "in.json", "--provider", "rules", "--rules-mode", "auto", flag, "--dry-run", "-r", "-")
        )
        report = json.loads(ran.out)
        assert report["rules_mode"] == mode
        assert not [record for record in report["decisions"] if record["inputs"]]
