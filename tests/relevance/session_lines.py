"""A session's messages as the lines of a Claude Code session file, and back; shares nothing with lcc."""

from __future__ import annotations

import json

from making import Block, Message, Row, result, row, text, use


def to_lines(messages: list[Message], first: int, cwd: str) -> bytes:
    """The lines of ``messages``, the first of which is message ``first`` of its session."""
    return b"".join(
        json.dumps(_row(message, number, cwd), ensure_ascii=number % 2 == 0).encode() + b"\n"
        for number, message in enumerate(messages, first)
    )


def from_lines(raw: bytes) -> list[Message]:
    """The messages of a session file's lines, in the form of the seed's payload."""
    return [_message(json.loads(line)) for line in raw.split(b"\n") if line]


def _row(message: Message, number: int, cwd: str) -> Row:
    blocks: list[Block] = [text(message["text"])] if message.get("text") else []
    for call in message.get("toolUses", []):
        blocks.append(use(call["tool_use_id"], call["tool"], **call["input"]))
        cwd = call.get("cwd", cwd)
    for given in message.get("toolResults", []):
        words = given["text"] if number % 3 else [text(given["text"])]
        flags = {"is_error": given["is_error"]} if "is_error" in given else {}
        blocks.append(result(given["tool_use_id"], words, **flags))
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
            text = block["content"]
            result = {**block, "text": text if isinstance(text, str) else text[0]["text"]}
            result["content"] = type(text).__name__  # whether it is still a string, or still a list
            results.append(result)
    if uses:
        message["toolUses"] = uses
    if results:
        message["toolResults"] = results
    return message
