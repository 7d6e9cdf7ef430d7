"""Builders of session files, line by line, and of what a transcript says, for comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lcc.transcript import Message, Transcript, read_transcript

SESSIONS = Path(__file__).parents[2].parent / "shared" / "sessions"

Line = dict[str, Any]


def session_files(pattern: str = "*.jsonl") -> list[Path]:
    """The shared real sessions; empty where this machine has none."""
    return sorted(SESSIONS.glob(pattern)) if SESSIONS.is_dir() else []


def jsonl(*lines: Line | str, end: str = "\n") -> bytes:
    """A file of these lines, written as JSON.stringify does; strings are taken as they are."""
    return "".join(
        (line if isinstance(line, str) else json.dumps(line, ensure_ascii=False, separators=(",", ":"))) + end
        for line in lines
    ).encode()


def entry(kind: str, uuid: str, parent: str | None, message: Any = None, **more: Any) -> Line:
    line: Line = {"parentUuid": parent, "isSidechain": False, "cwd": "/p", "sessionId": "s1", "version": "2.1.0"}
    line["type"] = kind
    if message is not None:
        line["message"] = message
    return {**line, "uuid": uuid, **more}


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> Line:
    return entry("user", uuid, parent, {"role": "user", "content": content}, **more)


def assistant(uuid: str, parent: str | None, message_id: str, *blocks: Any, **more: Any) -> Line:
    message = {"id": message_id, "role": "assistant", "content": list(blocks), "usage": {"output_tokens": 3}}
    return entry("assistant", uuid, parent, message, **more)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thinking(words: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "sig"}


def use(call_id: str, tool: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments, "caller": {"type": "direct"}}


def result(call_id: str, content: Any = "out", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def answer(uuid: str, parent: str | None, call_id: str, content: Any = "out", **more: Any) -> Line:
    """A user line that holds one result, with the second copy that the client keeps beside the message."""
    return user(uuid, parent, [result(call_id, content)], toolUseResult={"stdout": content}, **more)


def said(messages: Sequence[Message]) -> list[Any]:
    """All that a reader of the messages can see, without where it stands in the file."""
    return [
        (
            message.role,
            message.text,
            [(u.id, u.tool, u.input, u.cwd) for u in message.tool_uses],
            [
                (r.tool_use_id, r.text, r.is_error, r.text_path is None, [(part.number, part.text) for part in r.parts])
                for r in message.tool_results
            ],
            message.more,
        )
        for message in messages
    ]


def shape(messages: Sequence[Message]) -> list[str]:
    """Each message in a few letters: role, text, calls and results."""
    return [
        f"{message.role[0]}:{message.text}"
        + "".join(f" +{u.id}" for u in message.tool_uses)
        + "".join(f" -{r.tool_use_id}" for r in message.tool_results)
        for message in messages
    ]


BASIC = (
    user("u1", None, "do it"),
    assistant("a1", "u1", "m1", text("Looking."), cwd="/p/sub"),
    assistant("a2", "a1", "m1", use("t1", "Read", file_path="x.py"), cwd="/p/sub"),
    answer("u2", "a2", "t1", "line"),
)


def read_lines(*lines: Any, end: str = "\n") -> Transcript:
    return read_transcript(jsonl(*lines, end=end))
