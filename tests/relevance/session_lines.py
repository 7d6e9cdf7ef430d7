"""A session's messages as the lines of a Claude Code session file, and back; shares nothing with lcc."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from making import Block, Message, Row, result, row, text, use

Shape = Callable[[str, int], Any]
"""How a result's text is written as its content: from the text and a number that differs from result to result."""


def single(words: str, number: int) -> Any:
    """A string, or a list of the one text."""
    return words if number % 3 else [text(words)]


def several(words: str, number: int) -> Any:
    """Also several parts: a short text ahead of it, an image and a trailer behind it, the same twice, parts of it."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    head, newline, rest = words.partition("\n")
    return [
        words,
        [text(words)],
        [text(f"Answer {number}:"), text(words)],
        [text(words), image, text(f"agentId: {number} (for resuming to continue this agent's work if needed)")],
        [text(words), text(words)],
        [image, text(words)],
        [text(head + newline), text(rest), {"type": "tool_reference", "tool_name": "x"}],
    ][number % 7]


def to_lines(
    messages: list[Message], first: int, cwd: str, shape: Shape = single, escaped: bool | None = None
) -> bytes:
    """The lines of ``messages``, the first of which is message ``first`` of its session.

    ``escaped``: whether characters beyond ASCII are written as JSON escapes; None: in every other line.
    """
    return b"".join(
        json.dumps(
            _row(message, number, cwd, shape), ensure_ascii=number % 2 == 0 if escaped is None else escaped
        ).encode()
        + b"\n"
        for number, message in enumerate(messages, first)
    )


def from_lines(raw: bytes) -> list[Message]:
    """The messages of a session file's lines, in the form of the seed's payload."""
    return [_message(json.loads(line)) for line in raw.split(b"\n") if line]


def _row(message: Message, number: int, cwd: str, shape: Shape) -> Row:
    blocks: list[Block] = [text(message["text"])] if message.get("text") else []
    for call in message.get("toolUses", []):
        blocks.append(use(call["tool_use_id"], call["tool"], **call["input"]))
        cwd = call.get("cwd", cwd)
    for place, given in enumerate(message.get("toolResults", [])):
        flags = {"is_error": given["is_error"]} if "is_error" in given else {}
        blocks.append(result(given["tool_use_id"], shape(given["text"], number + place), **flags))
    inner: Message = {"role": message["role"], "content": blocks}
    if message["role"] == "assistant":
        inner["id"] = f"msg_{number}"
    elif len(blocks) == 1 and blocks[0]["type"] == "text":
        inner["content"] = message["text"]
    copy = {"stdout": "a second copy, which the model is not sent"}
    parent = f"u{number - 1}" if number else None
    return row(message["role"], f"u{number}", parent, inner, cwd=cwd, toolUseResult=copy)


def _message(entry: Message) -> Message:
    content = entry["message"]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message: Message = {"role": entry["type"], "text": "", "entry": {**entry, "message": None}}
    uses, results = [], []
    for block in blocks:
        if block["type"] == "text":
            message["text"] += block["text"]
        elif block["type"] == "tool_use":
            uses.append(
                {"tool_use_id": block["id"], "tool": block["name"], "input": block["input"], "cwd": entry["cwd"]}
            )
        else:
            content = block["content"]
            texts = [content] if isinstance(content, str) else [p["text"] for p in content if p["type"] == "text"]
            result = {**block, "text": "\n".join(texts)}
            result["content"] = type(content).__name__  # whether it is still a string, or still a list
            if isinstance(content, list) and len(content) > 1:
                result["parts"] = content
            results.append(result)
    if uses:
        message["toolUses"] = uses
    if results:
        message["toolResults"] = results
    return message
