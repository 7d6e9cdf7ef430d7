"""A session file as the client writes it, made without a client: for sessions too long to be talked into being."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any


class SessionFile:
    """Rows of one conversation, each hanging on the one before. ``write`` puts them where the client looks."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.id = str(uuid.uuid4())
        self._rows: list[dict[str, Any]] = []
        self._parent: str | None = None
        self._results: dict[str, str] = {}

    def row(self, kind: str, **fields: Any) -> None:
        """A row of any kind, behind the one before."""
        row = str(uuid.uuid4())
        self._rows.append(
            {
                "parentUuid": self._parent,
                "isSidechain": False,
                "type": kind,
                "uuid": row,
                "timestamp": "2026-01-01T00:00:00.000Z",
                "userType": "external",
                "cwd": str(self.project),
                "sessionId": self.id,
                "version": "2.1.332",
                "gitBranch": "HEAD",
                **fields,
            }
        )
        self._parent = row

    def _add(self, kind: str, message: dict[str, Any], **more: Any) -> None:
        self.row(kind, message=message, **more)

    def user(self, text: str) -> None:
        """A prompt."""
        self._add("user", {"role": "user", "content": text})

    def assistant(self, *blocks: dict[str, Any]) -> None:
        """An answer: one row a block, as the client writes them, under one message id."""
        for block in blocks:
            self._add(
                "assistant",
                {
                    "id": f"msg_{len(self._rows)}",
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-opus-5-5",
                    "content": [block],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": {"input_tokens": 10, "output_tokens": 10},
                },
            )

    def read(self, call_id: str, path: Path, offset: int = 1, limit: int | None = None) -> None:
        """A Read of a file or of some of its lines, with its result, numbered as the tool numbers."""
        lines = path.read_text(encoding="utf-8").split("\n")[offset - 1 :][:limit]
        numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start=offset))
        span = {} if limit is None else {"offset": offset, "limit": limit}
        self.assistant(
            {"type": "tool_use", "id": call_id, "name": "Read", "input": {"file_path": str(path), **span}},
        )
        self.result(call_id, numbered)

    def result(self, call_id: str, text: str) -> None:
        """The result of the call that came last."""
        self._results[call_id] = text
        block = {"tool_use_id": call_id, "type": "tool_result", "content": text}
        self._add("user", {"role": "user", "content": [block]}, sourceToolAssistantUUID=self._parent)

    def result_parts(self, call_id: str, parts: list[dict[str, Any]], *beside: dict[str, Any]) -> None:
        """The result of the call that came last, in parts, and what stands beside it in its row."""
        block = {"tool_use_id": call_id, "type": "tool_result", "content": parts}
        self._add("user", {"role": "user", "content": [block, *beside]}, sourceToolAssistantUUID=self._parent)

    def results(self) -> dict[str, str]:
        """The text of each result, by call id."""
        return dict(self._results)

    def write(self, home: Path) -> Path:
        """Write the file under ``home``; the client finds it by ``--resume`` in the project's folder."""
        folder = home / ".claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(self.project))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.id}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in self._rows), encoding="utf-8")
        return path


def worked_on(project: Path, home: Path, files: list[Path], chats: int = 8) -> SessionFile:
    """A session that read the files whole and then talked on until those reads are no recent work any more."""
    session = SessionFile(project)
    session.user("Read what is there.")
    for number, path in enumerate(files):
        session.read(f"toolu_old{number}", path)
    session.assistant({"type": "text", "text": "I have read it."})
    for number in range(chats):
        session.user(f"Question {number}?")
        session.assistant({"type": "text", "text": f"Answer {number}."})
    session.write(home)
    return session
