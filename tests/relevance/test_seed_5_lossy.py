"""The seed's section 5, mode `lossy` (experimental): each rule and the reason it records."""

from __future__ import annotations

from typing import Any

import pytest
from making import Answer, MadeSession, long_text

LARGE = long_text("log", 200)
assert 4000 < len(LARGE) < 8000
CWD = "/w"


class Lossy:
    """A session whose call "r" is under test; `old` puts more than forty messages behind it."""

    def __init__(self) -> None:
        self.session = MadeSession(cwd=CWD)

    def call(self, tool: str, given: Any, text: str, flag: bool | None = None, id: str = "") -> str:
        """One call."""
        return self.session.call(tool, given, text, flag, id=id)

    def old(self) -> None:
        """Twenty-two calls, that is forty-four messages, of no account."""
        self.session.filler(22)

    def answer(self, **options: Any) -> Answer:
        """One pass, with a harmless newest result."""
        self.session.filler()
        return self.session.compact("lossy", **options)


@pytest.fixture
def lossy() -> Lossy:
    """A fresh session."""
    return Lossy()


def test_there_is_no_guarantee(lossy: Lossy) -> None:
    """§5: semantic_guarantee is none."""
    report = lossy.answer().report

    assert report["semantic_guarantee"] == "none"
    assert report["rules_mode"] == "lossy"
    assert report["recoverability_check"] is None


def test_the_policy_is_deterministic(lossy: Lossy) -> None:
    """§5: a deterministic policy decides each unpinned call, and records the rule as the reason."""
    lossy.call("Bash", {"command": "make"}, LARGE)
    lossy.old()
    lossy.call("Bash", {"command": "make"}, LARGE)

    first, second = lossy.answer(), lossy.session.compact("lossy")

    assert first.messages == second.messages
    assert all(record["reason"] and record["source"] == "rules" for record in first.records.values())


@pytest.mark.parametrize(
    ("tool", "given", "reason"),
    [
        ("Bash", {"command": "git status --short"}, "latest_git_state"),
        ("Bash", {"command": "git diff HEAD"}, "latest_git_state"),
        ("Bash", {"command": "cd x && git log -3"}, "latest_git_state"),
        ("TodoWrite", {"todos": []}, "latest_task_state"),
        ("update_plan", {"plan": []}, "latest_task_state"),
        ("Edit", {"file_path": "/w/a.py", "old_string": "a", "new_string": "b"}, "latest_artifact_edit"),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n*** End Patch"}, "latest_artifact_edit"),
        ("AskUserQuestion", {"questions": []}, "latest_user_question"),
    ],
)
def test_the_latest_of_its_kind_is_kept(lossy: Lossy, tool: str, given: Any, reason: str) -> None:
    """§5: it keeps the latest git status, diff, log, plan/todo, edit and question to the user, not the ones before."""
    lossy.call(tool, given, LARGE, id="before")
    lossy.call(tool, given, LARGE + "x", id="latest")
    lossy.old()

    answer = lossy.answer()

    assert (answer.decision("latest"), answer.reason("latest")) == ("keep", reason)
    assert answer.reason("before") != reason


def test_git_status_diff_and_log_are_each_kept(lossy: Lossy) -> None:
    """§5: the latest of each: git status, git diff and git log."""
    for command in ("status", "diff", "log"):
        lossy.call("Bash", {"command": f"git {command}"}, LARGE + command, id=command)
    lossy.old()
    answer = lossy.answer()

    assert {answer.reason(command) for command in ("status", "diff", "log")} == {"latest_git_state"}


def test_the_latest_error_and_the_call_before_it_are_kept(lossy: Lossy) -> None:
    """§5: it keeps the latest error result and the call before it."""
    lossy.call("Bash", {"command": "one"}, LARGE, True, id="older")
    lossy.call("Bash", {"command": "two"}, LARGE + "2", id="before")
    lossy.call("Bash", {"command": "three"}, LARGE + "3", True, id="latest")
    lossy.old()
    answer = lossy.answer()

    assert answer.reason("latest") == "latest_error_result"
    assert answer.reason("before") == "call_before_latest_error"
    assert answer.reason("older") == "trim_guard_error"


def test_the_most_recent_result_is_kept(lossy: Lossy) -> None:
    """§5: it keeps the most recent result."""
    answer = lossy.answer()

    assert answer.reason(lossy.session.messages[-1]["toolResults"][0]["tool_use_id"]) == "latest_tool_result"


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("Read", {"file_path": "/w/src/a.py"}, "See src/a.py."),
        ("Read", {"file_path": "/w/src/a.py"}, "See a.py"),
        ("WebFetch", {"url": "https://example.org/a"}, "See https://example.org/a"),
    ],
)
def test_what_is_named_is_kept(lossy: Lossy, tool: str, given: Any, words: str) -> None:
    """§5: it keeps calls on files and URLs named in the goal or recent turns."""
    lossy.call(tool, given, LARGE, id="r")
    lossy.old()

    assert lossy.answer(question=words).reason("r") == "named_in_goal"
    lossy.session.say(words)
    assert lossy.session.compact("lossy").reason("r") == "named_in_recent_turns"


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/w/a.py"}),
        ("Read", {"file_path": "a.py"}),
        ("Write", {"file_path": "/w/a.py", "content": "x"}),
    ],
)
def test_a_later_whole_file_read_or_write_supersedes(lossy: Lossy, tool: str, given: Any) -> None:
    """§5: it drops outputs superseded by a later successful whole-file Read or Write of the same file."""
    lossy.call("Read", {"file_path": "/w/a.py"}, "one", id="r")
    superseder = lossy.call(tool, given, "two")
    answer = lossy.answer()

    assert (answer.decision("r"), answer.reason("r")) == ("drop", f"superseded_by_later_call:{superseder}")


@pytest.mark.parametrize(
    ("tool", "given", "flag"),
    [
        ("Read", {"file_path": "/w/a.py", "offset": 3}, None),
        ("Read", {"file_path": "/w/a.py", "limit": 3}, None),
        ("Read", {"file_path": "/w/a.py"}, True),
        ("Write", {"file_path": "/w/a.py", "content": "x"}, True),
        ("Read", {"file_path": "/w/b.py"}, None),
        ("Edit", {"file_path": "/w/a.py", "old_string": "a", "new_string": "b"}, None),
        ("Bash", {"command": "head a.py"}, None),
    ],
)
def test_a_partial_or_failed_one_never_supersedes(lossy: Lossy, tool: str, given: Any, flag: bool | None) -> None:
    """§5: a partial Read with offset/limit or a failed one never supersedes."""
    lossy.call("Read", {"file_path": "/w/a.py"}, "one", id="r")
    lossy.call(tool, given, "two", flag)

    assert lossy.answer().decision("r") == "keep"


def test_the_same_call_with_the_same_output_supersedes(lossy: Lossy) -> None:
    """§5: or the same call run again with the same output, ignoring Codex chunk and timing header lines."""
    head = "Chunk ID: {}\nWall time: {} seconds\nProcess exited with code 0\nOriginal token count: {}\nOutput:\n"
    lossy.call("Bash", {"command": "make"}, LARGE, id="r")
    again = lossy.call("Bash", {"command": "make"}, LARGE)
    lossy.call("exec_command", {"cmd": "make"}, head.format("a", 1, 2) + LARGE, id="codex")
    codex_again = lossy.call("exec_command", {"cmd": "make"}, head.format("b", 3, 4) + LARGE)
    answer = lossy.answer()

    assert answer.reason("r") == f"superseded_by_later_call:{again}"
    assert answer.reason("codex") == f"superseded_by_later_call:{codex_again}"


@pytest.mark.parametrize(
    ("given", "text"),
    [({"command": "make"}, LARGE + "x"), ({"command": "make x"}, LARGE), ({"command": "make", "timeout": 1}, LARGE)],
)
def test_another_call_or_another_output_does_not_supersede(lossy: Lossy, given: Any, text: str) -> None:
    """§5: a rerun whose output changed, such as a poll or a test before and after a fix, is not dropped."""
    lossy.call("Bash", {"command": "make"}, LARGE, id="r")
    lossy.call("Bash", given, text)

    assert lossy.answer().decision("r") == "keep"


def test_successful_reads_far_from_recent_work_are_dropped(lossy: Lossy) -> None:
    """§5: it drops successful reads far from recent work."""
    lossy.call("Read", {"file_path": "/w/far.py"}, "one", id="far")
    lossy.session.filler()
    lossy.call("Read", {"file_path": "/w/failed.py"}, "two", True, id="failed")
    lossy.old()
    lossy.call("Read", {"file_path": "/w/near.py"}, "three", id="near")
    answer = lossy.answer()

    assert (answer.decision("far"), answer.reason("far")) == ("drop", "stale_read_far_from_recent_work")
    assert answer.decision("failed") == "keep"
    assert answer.decision("near") == "keep"


def test_a_large_old_output_is_trimmed_to_both_ends(lossy: Lossy) -> None:
    """§5: it trims other outputs over 4000 chars to a 1000-char head and a 1000-char tail, with one line between."""
    exact = "x" * 4000
    lossy.call("Bash", {"command": "one"}, LARGE, id="large")
    lossy.call("Bash", {"command": "two"}, exact, id="limit")
    lossy.call("Bash", {"command": "three"}, exact + "x", id="over")
    lossy.old()
    answer = lossy.answer()

    assert (answer.decision("large"), answer.reason("large")) == ("trim", "large_old_output_trimmed")
    text = answer.texts["large"]
    assert text.startswith(LARGE[:1000] + "\n")
    assert text.endswith("\n" + LARGE[-1000:])
    middle = text[1001:-1001]
    assert "\n" not in middle
    assert str(len(LARGE) - 2000) in middle
    assert "Bash" in middle
    assert answer.texts["limit"] == exact
    assert answer.decision("over") == "trim"


def test_what_is_not_trimmed(lossy: Lossy) -> None:
    """§5: except polls, error-bearing outputs, reads of a file that a later edit or patch changes, and named paths."""
    lossy.call("write_stdin", {"session_id": 1}, LARGE, id="poll")
    lossy.call("wait", {}, LARGE + "1", id="wait")
    lossy.call("Bash", {"command": "one"}, LARGE + "Traceback (most recent call last):\nValueError: x", id="error")
    lossy.call("Bash", {"command": "cat /w/edited.py"}, LARGE + "2", id="edited")
    lossy.call("Bash", {"command": "cat /w/patched.py"}, LARGE + "3", id="patched")
    lossy.call("Bash", {"command": "grep -c x src/named.py"}, LARGE + "4", id="named")
    lossy.call("Bash", {"command": "grep -c x src/other.py"}, LARGE + "5", id="other")
    lossy.call("Edit", {"file_path": "/w/edited.py", "old_string": "a", "new_string": "b"}, "ok")
    lossy.call(
        "Bash", {"command": "apply_patch <<X\n*** Begin Patch\n*** Update File: patched.py\n*** End Patch\nX"}, "ok"
    )
    lossy.old()
    lossy.call("Bash", {"command": "four"}, "no", True)
    lossy.call("Read", {"file_path": "/w/edited.py", "limit": 1}, "x")
    lossy.call("Read", {"file_path": "/w/patched.py", "limit": 1}, "x")
    answer = lossy.answer(question="Look at src/named.py")

    reasons = {call: answer.reason(call) for call in ("poll", "wait", "error", "edited", "patched", "named", "other")}
    assert reasons == {
        "poll": "trim_guard_poll",
        "wait": "trim_guard_poll",
        "error": "trim_guard_error",
        "edited": "trim_guard_edited_later",
        "patched": "trim_guard_edited_later",
        "named": "trim_guard_named",
        "other": "large_old_output_trimmed",
    }
    assert all(answer.decision(call) == "keep" for call in reasons if call != "other")


@pytest.mark.parametrize(("fillers", "trimmed"), [(19, False), (20, True)])
def test_outputs_of_the_last_forty_messages_are_not_trimmed(lossy: Lossy, fillers: int, trimmed: bool) -> None:
    """§5: outputs from the last 40 messages are kept whole."""
    lossy.call("Bash", {"command": "make"}, LARGE, id="r")
    lossy.session.filler(fillers - 1)
    answer = lossy.answer()  # adds the last two messages

    assert (answer.decision("r") == "trim") is trimmed
    assert answer.reason("r") == ("large_old_output_trimmed" if trimmed else "trim_guard_recent_messages")


@pytest.mark.parametrize(
    ("tool", "given", "failed"),
    [
        ("Bash", {"command": "pytest"}, True),
        ("Read", {"file_path": "/w/errors.py", "limit": 9}, False),
        ("Grep", {"pattern": "Error"}, False),
    ],
)
def test_without_flags_only_command_output_can_show_an_error(lossy: Lossy, tool: str, given: Any, failed: bool) -> None:
    """§5: without any is_error flag an error pattern is applied to command output only, never to Read or Grep."""
    lossy.call(tool, given, "ValueError: no such thing\nTraceback (most recent call last)", id="r")

    assert (lossy.answer().reason("r") == "latest_error_result") is failed


def test_with_a_flag_the_flags_alone_mark_errors(lossy: Lossy) -> None:
    """§5: when any result carries the flag, it alone marks errors."""
    lossy.call("Bash", {"command": "one"}, "fine", True, id="flagged")
    lossy.call("Bash", {"command": "two"}, "ValueError: x", id="shown")
    answer = lossy.answer()

    assert answer.reason("flagged") == "latest_error_result"
    assert answer.reason("shown") == "kept_default"
