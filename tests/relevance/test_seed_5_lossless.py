"""The seed's section 5, offline policy and its mode `lossless`."""

from __future__ import annotations

import inspect
import re
import socket
from typing import Any, NoReturn

import pytest
from making import MadeSession, long_text

from lcc.relevance import TranscriptCompactionRequest, verify_lossless

TEXT = long_text("log")
LINES = TEXT.split("\n")


def codex(text: str, chunk: str = "a1", seconds: str = "0.1", tokens: int = 9, code: int = 0) -> str:
    """An output as Codex writes it."""
    return (
        f"Chunk ID: {chunk}\nWall time: {seconds} seconds\nProcess exited with code {code}\n"
        f"Original token count: {tokens}\nOutput:\n{text}"
    )


def pair(earlier: str, later: str, tool: str = "Bash", flags: tuple[bool | None, ...] = (None, None)) -> MadeSession:
    """A session of two outputs."""
    session = MadeSession()
    session.call(tool, {"command": "one"}, earlier, flags[0])
    session.call(tool, {"command": "two"}, later, flags[1])
    return session


@pytest.mark.parametrize("mode", ["lossless", "recoverable", "lossy"])
def test_no_key_no_model_no_network(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """§5: `rules` needs no key, no model and no network."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("the rules opened a socket")

    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)

    report = pair(TEXT, TEXT).compact(mode).report

    assert report["provider_used"] == "rules"
    assert report["requests"] is None
    assert report["degraded"] is False


def test_lossless_is_the_default() -> None:
    """§5: `lossless` is the default rules_mode."""
    assert inspect.signature(TranscriptCompactionRequest).parameters["rules_mode"].default == "lossless"


def test_an_identical_output_becomes_a_pointer_to_the_later_one() -> None:
    """§5: [identical output kept at <id>], and the later result stays as it is."""
    session = pair(TEXT, TEXT)
    answer = session.compact()

    assert answer.texts == {"c1": "[identical output kept at c2]", "c2": TEXT}
    assert answer.reason("c1") == "identical_output_kept_later"


@pytest.mark.parametrize(
    ("first", "last", "later"),
    [
        (1, 20, TEXT + "more"),
        (1, 21, TEXT + "\nmore"),
        (3, 9, TEXT),
        (18, 21, TEXT),
        (21, 21, TEXT + LINES[0] * 2),
        (5, 5, TEXT.replace(LINES[4], LINES[4] * 9)),
        (2, 6, TEXT.replace("\n", "\r\n")),
        (2, 4, "\n".join(["a\u2028b" * 9, *LINES[:3]])),
        (3, 3, "x\r" * 40 + "\n\n" + "one line of its own that is long enough\vstill it\x85 and it\n"),
    ],
)
def test_lines_of_a_later_output_become_a_pointer(first: int, last: int, later: str) -> None:
    """§5: [output = lines a-b of <id>] where the output is exactly the raw lines a to b, 1-based and inclusive."""
    earlier = "\n".join(later.split("\n")[first - 1 : last])
    answer = pair(earlier, later).compact()

    assert answer.texts["c1"] == f"[output = lines {first}-{last} of c2]"
    assert answer.texts["c2"] == later
    assert answer.reason("c1") == "output_lines_of_later"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (TEXT, TEXT + "x"),
        (TEXT, TEXT.rstrip("\n") + "x\n"),
        (TEXT, "x" + TEXT),
        (TEXT, TEXT.rstrip("\n")),
        (TEXT, TEXT.replace("\n", "\r\n")),
        (TEXT.replace("\n", "\r\n"), TEXT),
        (LINES[3][3:] + "\n" + LINES[4], TEXT),
        (LINES[3] + "\n" + LINES[4][:-3], TEXT),
        (LINES[3] + "\n" + LINES[5], TEXT),
        ("part of a line that is long enough", "x\u2028part of a line that is long enough\u2028y"),
        ("part of a line that is long enough", "x\rpart of a line that is long enough\ry"),
        ("part of a line that is long enough", "x\x0bpart of a line that is long enough\x0cy"),
        (TEXT, TEXT.upper()),
        ("e\u0301" * 30, "\u00e9" * 30),
    ],
)
def test_what_is_not_exactly_there_is_kept(earlier: str, later: str) -> None:
    """§5: only exactly the same text, or exactly raw lines, which end at LF alone, is pointed at."""
    session = pair(earlier, later)
    answer = session.compact()

    assert answer.messages == session.messages
    assert answer.reason("c1") == answer.reason("c2") == "no_lossless_superseder"


def test_the_target_is_later() -> None:
    """§5: the pointer is to a later result: the newest output is never replaced."""
    answer = pair(TEXT, LINES[2] + "\n" + LINES[3]).compact()

    assert answer.decision("c2") == "keep"
    assert answer.decision("c1") == "keep"


@pytest.mark.parametrize("earlier", [None, False, True])
@pytest.mark.parametrize("later", [None, False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_the_error_flag_must_be_the_same(earlier: bool | None, later: bool | None, whole: bool) -> None:
    """§5: the target has the same is_error flag; a host that did not say is not one that said it failed."""
    session = pair(TEXT, TEXT if whole else "x\n" + TEXT, flags=(earlier, later))

    assert session.compact().decision("c1") == ("dedupe" if bool(earlier) == bool(later) else "keep")


def test_the_source_of_the_target_does_not_matter() -> None:
    """§5: the note alone rebuilds the original, wherever <id> came from: any tool, any input."""
    session = MadeSession()
    session.call("mcp__x__fetch", {"q": 1}, TEXT)
    session.call("WebFetch", {"url": "https://example.org"}, TEXT[:-1])
    session.read("/w/f", TEXT)

    answer = session.compact()

    assert answer.texts["c1"] == "[identical output kept at c3]"
    assert answer.texts["c2"] == "[output = lines 1-20 of c3]"


def test_nothing_but_results_is_touched_and_nothing_is_trimmed() -> None:
    """§5: calls, inputs, texts and messages are never touched; a replaced result is a note and nothing else."""
    session = pair(TEXT * 300, TEXT * 300)
    session.say("Thanks.")
    answer = session.compact()

    expected = [dict(message) for message in session.messages]
    expected[2] = {"role": "user", "toolResults": [{"tool_use_id": "c1", "text": "[identical output kept at c2]"}]}
    assert answer.messages == expected
    assert answer.report["tool_calls_trimmed"] == answer.report["tool_calls_dropped"] == 0


def test_a_pointer_never_names_a_replaced_result() -> None:
    """§5: a pointer never targets a replaced result: all of many equal outputs name the one that is left."""
    session = MadeSession()
    for number in range(9):
        session.bash("make", TEXT if number % 2 else "head\n" + TEXT)
    answer = session.compact()

    targets = {record["kept_at"] for record in answer.records.values() if record["decision"] == "dedupe"}
    assert targets == {"c9"}
    assert [call for call, record in answer.records.items() if record["decision"] == "keep"] == ["c9"]


@pytest.mark.parametrize(
    ("same", "earlier", "later"),
    [
        (True, codex(TEXT, "a1"), codex(TEXT, "b2")),
        (True, codex(TEXT, seconds="0.1"), codex(TEXT, seconds="12.25")),
        (True, codex(TEXT, tokens=1), codex(TEXT, tokens=2)),
        (False, codex(TEXT, code=0), codex(TEXT, code=1)),
        (False, codex(TEXT), codex(TEXT + "x")),
        (False, codex("Chunk ID: a\n" + TEXT), codex("Chunk ID: b\n" + TEXT)),
        (False, codex("Wall time: 1 seconds\n" + TEXT), codex("Wall time: 2 seconds\n" + TEXT)),
        (False, "Chunk ID: a1\n" + TEXT, "Chunk ID: b2\n" + TEXT),
    ],
)
def test_only_three_lines_of_a_codex_header_are_ignored(same: bool, earlier: str, later: str) -> None:
    """§5: only the Chunk ID, Wall time and Original token count header lines are ignored; exit codes are compared."""
    answer = pair(earlier, later, "exec_command").compact()

    assert answer.decision("c1") == ("dedupe" if same else "keep")


def test_a_tool_that_writes_no_header_has_no_line_ignored() -> None:
    """§5: the header lines belong to Codex: in any other tool's output they are content."""
    assert pair(codex(TEXT, "a1"), codex(TEXT, "b2"), "Bash").compact().decision("c1") == "keep"


def test_verify_lossless_checks_each_claim_from_the_two_payloads() -> None:
    """§5: verify_lossless(original, compacted) re-checks each note's exact claim; [] says that all hold."""
    session = pair(LINES[2] + "\n" + LINES[3], TEXT)
    good = session.compact().messages
    assert verify_lossless(session.messages, good) == []
    assert verify_lossless({"messages": session.messages}, {"messages": good}) == []

    for note in (
        "[output = lines 3-5 of c2]",
        "[output = lines 4-5 of c2]",
        "[output = lines 3-99 of c2]",
        "[output = lines 3-4 of c1]",
        "[output = lines 3-4 of c9]",
        "[identical output kept at c2]",
        "[removed: re-read f to recover]",
        "[gone]",
        "",
    ):
        bad = [dict(message) for message in session.messages]
        bad[2] = {"role": "user", "toolResults": [{"tool_use_id": "c1", "text": note}]}
        violations = verify_lossless(session.messages, bad)
        assert [violation.id for violation in violations] == ["c1"], note
        assert str(violations[0]).startswith("c1: ")


@pytest.mark.parametrize("change", ["words", "input", "role", "flag", "message", "pair", "target"])
def test_verify_lossless_sees_every_other_change(change: str) -> None:
    """§5: calls, inputs, texts and messages are never touched, and the target must still be there unchanged."""
    session = pair(TEXT, TEXT)
    bad: list[Any] = [dict(message) for message in session.compact().messages]
    if change == "words":
        bad[0] = {**bad[0], "text": "Mend the parser!"}
    elif change == "input":
        bad[1] = {**bad[1], "toolUses": [{**bad[1]["toolUses"][0], "input": {"command": "onE"}}]}
    elif change == "role":
        bad[2] = {**bad[2], "role": "assistant"}
    elif change == "flag":
        bad[2] = {**bad[2], "toolResults": [{**bad[2]["toolResults"][0], "is_error": True}]}
    elif change == "message":
        del bad[0]
    elif change == "pair":
        del bad[1:3]
    else:
        bad[4] = {**bad[4], "toolResults": [{"tool_use_id": "c2", "text": TEXT[:-1]}]}

    assert verify_lossless(session.messages, bad) != []


@pytest.mark.parametrize("seam", ["identical_note", "lines_note"])
def test_a_violation_keeps_only_what_it_concerns(seam: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """§5: the pass verifies its own output, and keeps what a violation concerns: that call, and no other."""
    from lcc.relevance import transcript_lossless

    session = MadeSession()
    session.bash("one", TEXT)
    session.bash("two", LINES[2] + "\n" + LINES[3])
    session.bash("three", TEXT)
    right = {"identical_note": "[identical output kept at c3]", "lines_note": "[output = lines 3-4 of c3]"}
    assert list(session.compact().texts.values())[:2] == list(right.values())

    wrong = {"identical_note": "[identical output kept at c2]", "lines_note": "[output = lines 5-6 of c3]"}
    monkeypatch.setattr(transcript_lossless, seam, lambda *_: wrong[seam])
    answer = session.compact()

    spoiled, fine = ("c1", "c2") if seam == "identical_note" else ("c2", "c1")
    assert answer.reason(spoiled) == "lossless_verification_failed"
    assert answer.texts[spoiled] == {"c1": TEXT, "c2": LINES[2] + "\n" + LINES[3]}[spoiled]
    assert answer.decision(fine) == "dedupe"
    violations = answer.report["lossless_violations"]
    assert [re.match("c[0-9]", violation)[0] for violation in violations] == [spoiled]  # type: ignore[index]
    assert answer.report["degraded"] is True
    assert answer.report["degradation_reason"] == "lossless_verification_failed"


def test_the_guarantee_and_the_decisions_have_their_names() -> None:
    """§5: semantic_guarantee is lossless; decisions are keep or dedupe, a dedupe with kept_at and its note."""
    answer = pair(TEXT, TEXT).compact()

    assert answer.report["semantic_guarantee"] == "lossless"
    assert answer.report["rules_mode"] == "lossless"
    assert answer.report["recoverability_check"] is None
    assert [record["decision"] for record in answer.records.values()] == ["dedupe", "keep"]
    assert answer.records["c1"]["kept_at"] == "c2"
    assert answer.records["c1"]["note"] == "[identical output kept at c2]"
    assert "kept_at" not in answer.records["c2"]


def test_a_note_is_used_only_where_it_is_shorter() -> None:
    """Report page: a note is used only where it is shorter than what it replaces."""
    note = "[identical output kept at c2]"
    assert pair("x" * len(note), "x" * len(note)).compact().decision("c1") == "keep"
    assert pair("x" * (len(note) + 2), "x" * (len(note) + 2)).compact().decision("c1") == "dedupe"


@pytest.mark.parametrize("call_id", ["a b", "a]b", "a[b", "a\nb", "é", "a\u2028b", "a\0b"])
def test_an_id_that_cannot_be_written_in_a_note_is_not_named(call_id: str) -> None:
    """Report page: a note is one line that can be read in one way; else the result is kept."""
    session = MadeSession()
    session.bash("one", TEXT)
    session.bash("two", TEXT, id=call_id)
    session.filler()

    assert session.compact().messages == session.messages


@pytest.mark.parametrize(
    "text",
    [
        "[identical output kept at some_call_that_is_long]",
        "[output = lines 1-2 of some_call_that_is_long]",
        "[removed: re-read some/file/with/a/long/path to recover]",
        "[removed: re-run `git status --short --branch` to recover]",
        "[removed: 1200 tokens · lcc recall 0123456789ab]",
    ],
)
def test_an_output_that_looks_like_a_note_is_kept(text: str) -> None:
    """Report page: a result whose original text looks like a note is kept, and is never mistaken for one of ours."""
    session = pair(text, text)
    answer = session.compact()

    assert answer.messages == session.messages
    assert verify_lossless(session.messages, answer.messages) == []
