"""The fake Messages API refuses what the real one refuses: otherwise the end-to-end tests would prove nothing."""

from __future__ import annotations

from typing import Any

import pytest
from client.messages_api import Block, bash, say, think, why_refused

USER, ASSISTANT = "user", "assistant"


def result(call_id: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "out"}


def body(*turns: tuple[str, list[Block]], **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": blocks} for role, blocks in turns], **more}


GO = (USER, [say("go")])
OPEN = (ASSISTANT, [bash("A", "ls"), bash("B", "ls")])
ENABLED = {"thinking": {"type": "enabled", "budget_tokens": 1024}}

TAKEN = {
    "a prompt": body(GO),
    "an answered batch, in any order": body(GO, OPEN, (USER, [result("B"), result("A"), say("and this")])),
    "entries of one role in a row": body(
        GO, (ASSISTANT, [say("one")]), OPEN, (USER, [result("A")]), (USER, [result("B")])
    ),
    "a system entry between": body(GO, ("system", [say("date")]), (ASSISTANT, [say("hi")]), GO),
    "an open call with its thinking": body(
        GO, (ASSISTANT, [think("x"), bash("A", "ls")]), (USER, [result("A")]), **ENABLED
    ),
    "a later step of a turn that began with thinking": body(
        GO,
        (ASSISTANT, [think("x"), bash("A", "ls")]),
        (USER, [result("A")]),
        (ASSISTANT, [bash("B", "ls")]),
        (USER, [result("B")]),
        **ENABLED,
    ),
    "a closed turn without thinking": body(
        GO, (ASSISTANT, [bash("A", "ls")]), (USER, [result("A")]), (ASSISTANT, [say("x")]), GO, **ENABLED
    ),
    "an open call without thinking where thinking is adaptive": body(
        GO, (ASSISTANT, [bash("A", "ls")]), (USER, [result("A")]), thinking={"type": "adaptive"}
    ),
}

REFUSED = {
    "nothing": (body(), "first message"),
    "an answer first": (body((ASSISTANT, [say("hi")])), "first message"),
    "an empty entry": (body((USER, [])), "non-empty content"),
    "an empty text": (body((USER, [say(" ")])), "non-whitespace"),
    "a result without its call": (body(GO, (ASSISTANT, [say("x")]), (USER, [result("A")])), "unexpected `tool_use_id`"),
    "a call without its result": (body(GO, OPEN, (USER, [result("A")])), "without `tool_result`"),
    "a prompt instead of results": (body(GO, OPEN, GO), "without `tool_result`"),
    "two results of one call": (body(GO, OPEN, (USER, [result("A"), result("A"), result("B")])), "single result"),
    "words ahead of results": (body(GO, OPEN, (USER, [say("first"), result("A"), result("B")])), "must come first"),
    "one call twice": (body(GO, (ASSISTANT, [bash("A", "ls"), bash("A", "ls")])), "must be unique"),
    "a call at the end": (body(GO, OPEN), "stands last"),
    "an open call without its thinking": (
        body(GO, (ASSISTANT, [say("x"), bash("A", "ls")]), (USER, [result("A")]), **ENABLED),
        "Expected `thinking`",
    ),
    "changed thinking": (
        body(GO, (ASSISTANT, [{**think("x"), "thinking": "y"}, say("x")]), GO),
        "Invalid `signature`",
    ),
    "five cache marks": (
        body((USER, [{**say(str(n)), "cache_control": {"type": "ephemeral"}} for n in range(5)])),
        "cache_control",
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_api_takes(name: str) -> None:
    """A conversation that the real API accepts is answered."""
    assert why_refused(TAKEN[name]) is None


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_api_refuses(name: str) -> None:
    """A conversation that the real API answers with 400 is refused, for the same reason."""
    refused, reason = REFUSED[name]
    assert reason in (why_refused(refused) or "taken")
