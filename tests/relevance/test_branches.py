"""Notes and branches: a note is followed from where it stands, whatever the user rewound or the client summarised."""

from __future__ import annotations

import json
from pathlib import Path

from making import MadeSession, Row, answer, assistant, jsonl, use, user

from lcc.contract.report import Report
from lcc.recovery.restore import removed_by, restore, restored_bytes
from lcc.relevance import TranscriptCompactionRequest, run_pass
from lcc.relevance.ports import Ports
from lcc.stash import Stash
from lcc.transcript import read_transcript, render

LISTING = "\n".join(f"entry {n} of the listing, with its size" for n in range(60))


def compacted(raw: bytes, mode: str, tmp_path: Path) -> tuple[bytes, Report]:
    request = TranscriptCompactionRequest(payload=None, provider="rules", rules_mode=mode)
    return run_pass(
        read_transcript(raw),
        request,
        lambda result: (render(result.transcript, result.edits), result.report),
        Ports(stash_folder=tmp_path / "stash"),
    )


def restored(raw: bytes, reports: list[Report], tmp_path: Path) -> bytes:
    removed = removed_by(reports)
    transcript = read_transcript(raw)
    found = restore(transcript, removed, Stash(tmp_path / "stash", "s"))
    assert found.failures == ()
    return restored_bytes(transcript, found.edits, removed)


def chat(after: str, name: str, turns: int = 5) -> list[Row]:
    rows: list[Row] = []
    for turn in range(turns):
        rows.append(user(f"{name}u{turn}", after, f"go on {turn}"))
        rows.append(assistant(f"{name}a{turn}", f"{name}u{turn}", f"{name}m{turn}", {"type": "text", "text": "well"}))
        after = f"{name}a{turn}"
    return rows


def twice_listed() -> list[Row]:
    """A listing, and the same again: the first becomes a note that names the second."""
    return [
        user("start", None, "look around"),
        assistant("s1", "start", "m1", use("first", command="ls -l")),
        answer("r1", "s1", "first", LISTING),
        user("between", "r1", "and once more"),
        assistant("s2", "between", "m2", use("second", command="ls -l")),
        answer("r2", "s2", "second", LISTING),
        *chat("r2", "x"),
    ]


def decisions(report: Report) -> dict[str, str]:
    return {record["id"]: f"{record['decision']} {record['reason']}" for record in report["decisions"]}


def test_after_a_rewind_behind_its_target_a_note_is_told_and_its_text_put_back(tmp_path: Path) -> None:
    original = jsonl(*twice_listed())
    once, first = compacted(original, "lossless", tmp_path)
    assert b"identical output kept at second" in once
    later = jsonl(*chat("r1", "y"))
    twice, second = compacted(once + later, "lossless", tmp_path)
    assert any("first" in warning and "second" in warning for warning in second["warnings"])
    assert twice == original + later
    assert restored(once + later, [first], tmp_path) == original + later


def test_text_that_is_put_back_is_decided_about_as_any_other(tmp_path: Path) -> None:
    original = jsonl(*twice_listed())
    once, first = compacted(original, "lossless", tmp_path)
    later = jsonl(*chat("r1", "y", 40))
    twice, second = compacted(once + later, "stashed", tmp_path)
    assert decisions(second)["first"] != "keep already_a_note"
    assert restored(twice, [first, second], tmp_path) == original + later


def test_the_target_of_a_note_on_a_branch_that_was_left_stays(tmp_path: Path) -> None:
    once, first = compacted(jsonl(*twice_listed()), "lossless", tmp_path)
    boundary = {"preservedMessages": {"anchorUuid": "sum", "uuids": ["s2", "r2"]}}
    later = jsonl(
        {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "compactMetadata": boundary},
        user("sum", "b", "a summary", isCompactSummary=True),
        *chat("r2", "y", 40),
    )
    for mode in ("lossless", "stashed", "lossy"):
        twice, second = compacted(once + later, mode, tmp_path)
        assert decisions(second) == {"second": "keep named_by_earlier_note"}, mode
        assert restored(twice, [first], tmp_path) == jsonl(*twice_listed()) + later


def test_a_note_whose_target_the_file_has_not_is_told_and_stays(tmp_path: Path) -> None:
    rows = twice_listed()
    rows[2] = answer("r1", "s1", "first", "[identical output kept at toolu_gone]")
    raw = jsonl(*rows)
    after, report = compacted(raw, "lossless", tmp_path)
    assert after == raw
    assert any("leads nowhere" in warning for warning in report["warnings"])


def test_what_no_report_wrote_is_no_note(tmp_path: Path) -> None:
    stash = Stash(tmp_path / "stash", "s")
    sha = stash.put(b"what somebody else removed, in another session").sha256
    rows = twice_listed()
    rows[2] = answer("r1", "s1", "first", f"[removed: 12 tokens · lcc recall {sha[:12]}]")
    raw = jsonl(*rows)
    _, report = compacted(raw, "lossless", tmp_path)
    found = restore(read_transcript(raw), removed_by([report]), stash)
    assert found.left == {"first"}
    assert not found.edits.texts


def test_a_file_that_escapes_what_is_not_ascii_comes_back_byte_for_byte(tmp_path: Path) -> None:
    rows = twice_listed()
    arrows = LISTING.replace("entry", "→ entry")
    for index in (2, 5):
        rows[index] = json.loads(json.dumps(rows[index]).replace("entry", "\\u2192 entry"))
    rows[5] = answer("r2", "s2", "second", "total 60\n" + LISTING)  # no arrow is left in the compacted file
    rows[2] = answer("r1", "s1", "first", arrows)
    original = b"".join(json.dumps(row).encode() + b"\n" for row in [*rows, *chat("xa4", "y", 40)])
    once, report = compacted(original, "stashed", tmp_path)
    assert once.isascii()
    assert decisions(report)["first"].startswith("replace stashed:")
    assert restored(once, [report], tmp_path) == original


def test_header_like_words_of_another_tool_are_no_header() -> None:
    body = "\n".join(f"row {n} of the build output" for n in range(40))
    session = MadeSession()
    session.call("Bash", {"command": "cat log"}, f"Process exited with code 0\nOutput:\n{body}", id="first")
    text = f"Wall time: 1 s\nProcess exited with code 0\nOutput:\n{body}"
    session.call("exec_command", {"cmd": "make"}, text, id="second")
    session.filler()
    assert session.compact("lossless").texts["first"] == "[output = lines 2-43 of second]"
