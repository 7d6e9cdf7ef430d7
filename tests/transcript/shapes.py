"""What a transcript says, for comparison, and a small session to compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from making import answer, assistant, text, use, user

from lcc.transcript import Message


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
