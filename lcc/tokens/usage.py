"""What a Claude Code session file records of its own true tokens: the ``usage`` of every request.

A request's input tokens (new, cache reads and cache writes together) are its whole context. What stands
between two requests of the main conversation is what made it grow: the answer, the results, the prompts.
Nothing else in a session file is a true count, so this is what a counter is calibrated on and tested by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import orjson

from lcc.transcript import Json


class UsageStep(NamedTuple):
    """One answer of the model and what the user side added before the next request."""

    model: str
    context: int
    """The true input tokens of the request that it answers."""
    growth: int
    """By how much the next request's were more."""
    output: int
    """Its true output tokens, where the file has the final figure: too low where it has a partial one."""
    written: tuple[str, ...]
    """What the answer holds: texts, and of each call the tool, the names and the values of its input."""
    added: tuple[str, ...]
    """The results and prompts after it."""
    calls: int
    parameters: int
    results: int
    thinks: bool
    """It holds thinking, whose text the file does not hold in full."""
    unseen: bool
    """Something was sent that the file does not show as text (a reminder, an image), or history was cut."""


def context_tokens(documents: Iterable[Mapping[str, Json]]) -> int | None:
    """The true input tokens of the newest request of the main conversation; None where there is none."""
    newest = None
    for document in documents:
        if document.get("type") == "assistant" and document.get("isSidechain") is not True:
            newest = _context(document) or newest
    return newest


def usage_steps(documents: Iterable[Mapping[str, Json]]) -> Iterator[UsageStep]:
    """The steps of a session's main conversation, oldest first, from its parsed lines in file order.

    Lines of one message (same ``message.id``) are one answer, also where results stand between them. The
    last answer makes no step: what came after it was never counted. Shapes it does not know are skipped.
    """
    step: _Step | None = None
    for document in documents:
        if document.get("isSidechain") is True:
            continue
        kind = document.get("type")
        if kind == "assistant":
            total = _context(document)
            if total is None:
                continue
            message = _object(document.get("message"))
            if step is None or message.get("id") != step.message_id:
                if step is not None:
                    yield step.finish(total)
                step = _Step(message, total)
            step.take_answer(message, total)
        elif step is not None and kind == "user":
            step.unseen = step.unseen or document.get("isMeta") is True
            step.take_user(_object(document.get("message")).get("content"))
        elif step is not None and kind == "attachment":
            step.unseen = True
        elif step is not None and kind == "system":
            step.unseen = step.unseen or "compact_boundary" in str(document.get("subtype"))


class _Step:
    """One step while its lines are read."""

    def __init__(self, message: Mapping[str, Json], context: int) -> None:
        self.message_id = message.get("id")
        self.model = str(message.get("model"))
        self.context = context
        self.output = 0
        self.written: list[str] = []
        self.added: list[str] = []
        self.calls = self.parameters = self.results = 0
        self.thinks = self.unseen = False

    def take_answer(self, message: Mapping[str, Json], context: int) -> None:
        self.context = max(self.context, context)
        self.output = max(self.output, _number(_object(message.get("usage")).get("output_tokens")))
        for block in _blocks(message.get("content")):
            kind = block.get("type")
            if kind == "text":
                self.written.append(str(block.get("text", "")))
            elif kind == "tool_use":
                self._take_call(block)
            else:
                self.thinks = True

    def _take_call(self, block: Mapping[str, Json]) -> None:
        # The model is sent each parameter's own text, so a value is counted raw, not as escaped JSON.
        self.calls += 1
        self.written.append(str(block.get("name", "")))
        for name, value in _object(block.get("input")).items():
            self.parameters += 1
            self.written += (name, value if isinstance(value, str) else orjson.dumps(value).decode())

    def take_user(self, content: Json) -> None:
        if isinstance(content, str):
            self.added.append(content)
            return
        for block in _blocks(content):
            if block.get("type") == "text":
                self.added.append(str(block.get("text", "")))
            elif block.get("type") == "tool_result":
                self.results += 1
                self._take_result(block.get("content"))
            else:
                self.unseen = True

    def _take_result(self, content: Json) -> None:
        if isinstance(content, str):
            self.added.append(content)
            return
        for part in _blocks(content):
            if part.get("type") == "text":
                self.added.append(str(part.get("text", "")))
            else:
                self.unseen = True

    def finish(self, following: int) -> UsageStep:
        return UsageStep(
            self.model,
            self.context,
            following - self.context,
            self.output,
            tuple(self.written),
            tuple(self.added),
            self.calls,
            self.parameters,
            self.results,
            self.thinks,
            self.unseen,
        )


def _context(document: Mapping[str, Json]) -> int | None:
    """A line's input tokens; None where it records none (a made-up answer has zeros)."""
    usage = _object(_object(document.get("message")).get("usage"))
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(_number(usage.get(name)) for name in names) or None


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _number(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _blocks(content: Json) -> Iterator[dict[str, Json]]:
    return (block for block in content if isinstance(block, dict)) if isinstance(content, list) else iter(())
