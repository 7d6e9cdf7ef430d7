"""Passes over real session files, where they are at hand: every pointer is followed, the written file read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from relevance.pointer_follower import call_id, follow, results_of, uses_of

from lcc.relevance import TranscriptCompactionRequest, messages_to_payload, run_pass
from lcc.transcript import Transcript, read_transcript, render

SESSIONS = Path(__file__).parents[2].parent / "shared" / "sessions"
FILES = sorted(path for path in SESSIONS.glob("*.jsonl*") if path.suffix == ".jsonl") if SESSIONS.is_dir() else []


def payload(transcript: Transcript) -> list[dict[str, Any]]:
    """The session's messages, without calls and results that have no other half."""
    messages: list[dict[str, Any]] = [dict(message) for message in messages_to_payload(transcript.messages)]
    called = {call_id(use) for message in messages for use in uses_of(message)}
    for message in messages:
        if "toolResults" in message:
            message["toolResults"] = [one for one in results_of(message) if call_id(one) in called]
    return messages


def one_pass(raw: bytes, mode: str) -> tuple[Transcript, bytes, dict[str, Any]]:
    """The session, the compacted file, and the report."""
    request = TranscriptCompactionRequest(payload=None, provider="rules", rules_mode=mode)
    transcript = read_transcript(raw)
    new, report = run_pass(transcript, request, lambda result: (render(transcript, result.edits), result.report))
    return transcript, new, report


@pytest.mark.skipif(not FILES, reason="the shared session files are not here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[:30])
def test_a_real_session(path: Path) -> None:
    """lossless: every note gives the output back; the file is a session again; a second pass changes nothing."""
    transcript, new, report = one_pass(path.read_bytes(), "lossless")
    again = read_transcript(new)

    notes = follow(payload(transcript), payload(again))

    assert len(notes) == report["tool_calls_deduped"]
    assert report["lossless_violations"] == []
    second = one_pass(new, "lossless")
    assert second[1] == new
    assert second[2]["tool_calls_deduped"] == 0


@pytest.mark.skipif(not FILES, reason="the shared session files are not here")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem[:30])
def test_a_real_session_by_proxy(path: Path) -> None:
    """recoverable: texts, calls and kept results are as they were, in the written file too; so after a second pass."""
    transcript, new, report = one_pass(path.read_bytes(), "recoverable")
    before, after = payload(transcript), payload(read_transcript(new))
    records = {record["id"]: record for record in report["decisions"]}

    assert report["lossless_violations"] == []
    assert len(before) == len(after)
    for old, now in zip(before, after, strict=True):
        assert {**old, "toolResults": None} == {**now, "toolResults": None}
        for one, other in zip(results_of(old), results_of(now), strict=True):
            changed = one["text"] != other["text"]
            record = records.get(call_id(one))
            assert changed == (record is not None and record["decision"] in ("dedupe", "replace"))
            assert {**one, "text": None} == {**other, "text": None}
            if changed and record is not None:
                assert other["text"].startswith(record["note"])
                assert len(other["text"]) < len(one["text"])
    second = one_pass(new, "recoverable")
    assert second[1] == new
