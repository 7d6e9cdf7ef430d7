"""The directory that a call's relative path counts from."""

from __future__ import annotations

import json
from pathlib import Path

from lcc.relevance import TranscriptCompactionRequest, run_pass
from lcc.relevance.ports import Ports
from lcc.transcript import read_transcript

TEXT = "".join(f"line {number} of the package's own notes\n" for number in range(1, 60))


def rollout(root: Path, workdir: str) -> bytes:
    """A Codex rollout in ``root`` whose one call reads ``notes.txt`` from the relative folder ``workdir``."""
    arguments = json.dumps({"cmd": "cat notes.txt", "workdir": workdir})
    call = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": "c1"}
    header = "Chunk ID: ab12cd\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"
    output = {"type": "function_call_output", "call_id": "c1", "output": header + TEXT}

    def said(role: str, text: str) -> dict[str, object]:
        kind = "input_text" if role == "user" else "output_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    items = [said("user", "Look."), call, output, *(said("assistant", f"Step {number}.") for number in range(8))]
    lines: list[dict[str, object]] = [{"type": "session_meta", "payload": {"id": "s", "cwd": str(root)}}]
    lines.append({"type": "turn_context", "payload": {"cwd": str(root)}})
    lines += [{"type": "response_item", "payload": item} for item in items]
    return b"".join(json.dumps({"timestamp": "2026-01-01T00:00:00Z", **line}).encode() + b"\n" for line in lines)


def test_a_relative_workdir_counts_once(tmp_path: Path) -> None:
    """A Codex call in `pkg` reads `pkg/notes.txt`, not `pkg/pkg/notes.txt`."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "notes.txt").write_text(TEXT)
    request = TranscriptCompactionRequest(
        payload=None, provider="rules", rules_mode="recoverable", workspace_root=str(tmp_path)
    )

    report = run_pass(read_transcript(rollout(tmp_path, "pkg")), request, lambda result: result.report, Ports())

    assert [record["reason"] for record in report["decisions"]] == ["replace_disk_verified"]  # type: ignore[index,union-attr]
