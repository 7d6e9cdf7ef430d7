"""How much of a session's context is thinking: a replaced session holds none, so a live compaction frees it too.

A session file holds thinking in part or not at all, and its tokens nowhere. Newer models keep it in the context, older
ones lose it at the next prompt. So it is measured where both can be seen: a request's context has grown by more than
all that is visible, and the answer before it had more output than is visible. Pure and linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from lcc.tokens.usage import usage_steps
from lcc.transcript import Json


class Estimates(Protocol):
    """What is needed of ``lcc.tokens.TokenEstimator``."""

    def estimate(self, text: str, tool: str | None = None) -> int: ...


def kept_thinking(documents: Sequence[Mapping[str, Json]], tokens: Estimates) -> list[int]:
    """Of each answer of the conversation but the last, the thinking tokens that the newest context still holds.

    ``documents`` are the session's parsed lines in file order, from its last compaction on. Of an answer it is what
    the context grew by beside what is visible, and no more than its output that is not visible, or the thinking that
    the file shows. Where the context grew by less than what is visible (a client or a model that drops old thinking,
    a rewind), the newest is taken off again. So it is rather too little than too much.
    """
    shown = _shown(documents, tokens)
    found: list[int] = []
    holding: list[int] = []
    """The answers that still have some, oldest first."""
    for number, step in enumerate(usage_steps(documents)):
        visible = sum(tokens.estimate(text) for text in step.written)
        rest = step.growth - visible - sum(tokens.estimate(text) for text in step.added)
        most = max(step.output - visible, shown[number] if number < len(shown) else 0)
        hidden = min(rest, most) if step.thinks else min(rest, 0)
        found.append(max(hidden, 0))
        if hidden > 0:
            holding.append(number)
        while hidden < 0 and holding:
            newest = holding[-1]
            taken = min(found[newest], -hidden)
            found[newest] -= taken
            hidden += taken
            if not found[newest]:
                holding.pop()
    return found


def _shown(documents: Sequence[Mapping[str, Json]], tokens: Estimates) -> list[int]:
    """The tokens of the thinking that the file shows, by answer of the conversation."""
    found: list[int] = []
    newest: Json = None
    for document in documents:
        message = document.get("message")
        if document.get("type") != "assistant" or document.get("isSidechain") is True or not isinstance(message, dict):
            continue
        if not _was_sent(message):
            continue
        if not found or message.get("id") != newest:
            found.append(0)
            newest = message.get("id")
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "thinking":
                found[-1] += tokens.estimate(str(block.get("thinking") or ""))
    return found


def _was_sent(message: Mapping[str, Json]) -> bool:
    usage = message.get("usage")
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return isinstance(usage, dict) and any(usage.get(name) for name in names)
