"""`stashed` where no workspace was named: nothing leaves behind a pointer that no one has proven."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcc.relevance import TranscriptCompactionRequest, compact_transcript

ROWS = "\n".join(f"{number}\tline {number} of a file that is not on this machine" for number in range(1, 120))


def session() -> list[dict[str, object]]:
    """A read that no later call can have written, and enough other calls to make it old."""
    messages: list[dict[str, object]] = [{"role": "user", "text": "Look into it."}]
    calls = [("read", "Read", {"file_path": "/nowhere/module.py"}, ROWS)]
    calls += [(f"search{i}", "Grep", {"pattern": f"word{i}"}, f"no match {i}") for i in range(40)]
    for call_id, tool, given, text in calls:
        use = {"tool_use_id": call_id, "tool": tool, "input": given}
        messages.append({"role": "assistant", "text": "", "toolUses": [use]})
        messages.append({"role": "user", "text": "", "toolResults": [{"tool_use_id": call_id, "text": text}]})
    return messages


@pytest.mark.parametrize(("mode", "check"), [("recoverable", "transcript_proxy"), ("stashed", "stash")])
def test_what_stands_for_an_unproven_read(
    mode: str, check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`recoverable` may take the transcript's word for a file; `stashed` puts the bytes away instead."""
    monkeypatch.setenv("LCC_STASH_DIR", str(tmp_path / "stash"))
    request = TranscriptCompactionRequest(payload=session(), provider="rules", rules_mode=mode)  # type: ignore[arg-type]

    records = compact_transcript(request).report["decisions"]

    assert isinstance(records, list)
    read = next(record for record in records if isinstance(record, dict) and record["id"] == "read")
    assert (read["decision"], read["recoverability_check"]) == ("replace", check)
