"""Passes over real session files, where they are at hand: every pointer is followed, the written file read again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from making import SESSIONS
from relevance.pointer_follower import call_id, follow, results_of, uses_of

from lcc.relevance import TranscriptCompactionRequest, messages_to_payload, run_pass
from lcc.transcript import Transcript, read_transcript, render

FILES = sorted(path for path in SESSIONS.glob("*.jsonl*") if path.suffix == ".jsonl") if SESSIONS.is_dir() else []


def payload(transcript: Transcript) -> list[dict[str, Any]]:
    """The session's messages, without calls and results that have no other half."""
    messages: list[dict[str, Any]] = [dict(message) for message in messages_to_payload(transcript.messages)]
    called = {call_id(use) for message in messages for use in uses_of(message)}
    for message in messages:
        if "toolResults" in message:
            message["toolResults"] = [one for one in results_of(message) if call_id(one) in called]
    return messages


ROW = re.compile(r" *([0-9]+)(?:→|\t)(.*)", re.DOTALL)


def workspace_of(messages: list[dict[str, Any]], root: str) -> dict[str, str]:
    """The files below ``root`` as the reads of a session show them, later reads over earlier ones; gaps stay gaps."""
    files: dict[str, dict[int, str]] = {}
    uses = {call_id(use): use for message in messages for use in uses_of(message)}
    for message in messages:
        for result in results_of(message):
            use = uses[call_id(result)]
            path = use["input"].get("file_path") if isinstance(use["input"], dict) else None
            if use["tool"] != "Read" or not isinstance(path, str) or not path.startswith(root + "/"):
                continue
            rows = [ROW.fullmatch(line) for line in result["text"].partition("\n\n<system-reminder>")[0].split("\n")]
            if not rows or None in rows:
                continue
            first_is_zero = rows[0] is not None and rows[0][1] == "0"
            held = files.setdefault(path, {}) if "offset" in use["input"] or "limit" in use["input"] else {}
            held.update({int(row[1]) + first_is_zero: row[2] for row in rows if row})
            files[path] = held
    return {
        path: "\n".join(lines.get(number, "?") for number in range(1, max(lines) + 1)) for path, lines in files.items()
    }


def one_pass(raw: bytes, mode: str, **options: Any) -> tuple[Transcript, bytes, dict[str, Any]]:
    """The session, the compacted file, and the report."""
    request = TranscriptCompactionRequest(payload=None, provider="rules", rules_mode=mode, **options)
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


@pytest.mark.skipif(not FILES, reason="the shared session files are not here")
@pytest.mark.parametrize("path", [p for p in FILES if p.stem.startswith("cc-")], ids=lambda path: path.stem[:30])
def test_a_real_session_with_its_files(path: Path, tmp_path: Path) -> None:
    """recoverable by disk, over the files as the session's own reads show them: every pointer is followed."""
    raw = path.read_bytes()
    cwd = read_transcript(raw).cwd
    assert cwd is not None
    root = str(tmp_path / "w")
    raw = raw.replace(json.dumps(cwd)[1:-1].encode(), root.encode())
    messages = payload(read_transcript(raw))
    files = workspace_of(messages, root)
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(text.encode())

    _, new, report = one_pass(raw, "recoverable", workspace_root=root)
    notes = follow(
        messages,
        payload(read_transcript(new)),
        file_of=lambda _, name: Path(name).read_bytes(),
        session_cwd=root,
        root=root,
        verified=True,
    )

    decisions: Any = report["decisions"]
    assert len(notes) == sum(record["decision"] in ("dedupe", "replace") for record in decisions)
    verified = [record for record in decisions if record["reason"] == "replace_disk_verified"]
    assert verified or len(files) < 3  # which may be the ones that the user has just named
