"""A session file that grows row by row, what the event would show of it, and the question that the module asks."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import making

PROGRAM = Path(__file__).parents[2] / "hook" / "lcc_hook" / "unseen.py"
WHEN = "2026-01-01T00:00:00.000Z"
NOTHING: dict[str, Any] = {"texts": [], "lines": {}, "unsent": [], "lost": []}


@dataclass
class Rows:
    """A session file that grows row by row, and what the event would show of it."""

    path: Path
    parent: str | None = None
    prompts: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    worded: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    reads: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, **fields: Any) -> str:
        name = str(uuid.uuid4())
        with self.path.open("ab") as file:
            file.write(making.jsonl(making.row(kind, name, self.parent, timestamp=WHEN, **fields)))
        self.parent = name
        return name

    def prompt(self, text: str = "do it") -> str:
        self.prompts.append(self.add("user", message={"role": "user", "content": text}))
        return self.prompts[-1]

    def call(self, call_id: str, path: Path | None = None) -> str:
        if path:
            self.reads[call_id] = str(path)
        block = making.use(call_id, "Read" if path else "mcp__a__b")
        self.calls.append(call_id)
        self.others.append(self.add("assistant", message={"role": "assistant", "content": [block]}))
        return self.others[-1]

    def result(self, call_id: str, *parts: dict[str, Any], beside: tuple[dict[str, Any], ...] = ()) -> str:
        return self.result_of(call_id, list(parts) or "text", beside)

    def result_of(self, call_id: str, content: Any, beside: tuple[dict[str, Any], ...] = ()) -> str:
        block = making.result(call_id, content)
        self.results.append(call_id)
        self.others.append(self.add("user", message={"role": "user", "content": [block, *beside]}, toolUseResult={}))
        return self.others[-1]

    def assistant(self, *blocks: dict[str, Any], **more: Any) -> str:
        self.others.append(self.add("assistant", message={"role": "assistant", "content": list(blocks)}, **more))
        if any(isinstance(block, dict) and block.get("type") == "text" for block in blocks):
            self.worded.append(self.others[-1])
        return self.others[-1]

    def attachment(self, kind: str, rendered: str | None = None, **fields: Any) -> str:
        more = {"rendered": [{"content": rendered}]} if rendered is not None else {}
        return self.add("attachment", attachment={"type": kind, **fields}, **more)

    def meta(self, text: str) -> str:
        return self.add("user", message={"role": "user", "content": [making.text(text)]}, isMeta=True)

    def ask(self, **changes: Any) -> subprocess.CompletedProcess[str]:
        asked = {
            "transcript": str(self.path),
            "agent_id": None,
            "prompts": self.prompts,
            "others": self.others,
            "first": next(iter([*self.prompts, *self.others]), ""),
            "last": self.parent,
            "worded": self.worded,
            "calls": self.calls,
            "results": self.results,
            "reads": self.reads,
            **changes,
        }
        return subprocess.run(
            [sys.executable, "-I", "-S", "-E", PROGRAM],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    def found(self, **changes: Any) -> dict[str, Any]:
        done = self.ask(**changes)
        assert (done.returncode, done.stderr) == (0, "")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def image(data: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def reminder(words: str) -> str:
    return f"<system-reminder>\n{words}\n</system-reminder>"
