"""What every verification says and compares: the two payloads side by side, call by call.

A verification reads only the original and the compacted messages. It shares no state with the decisions
that it checks (the seed's section 5: `verify_lossless`, `verify_recoverable`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from lcc.transcript import Json, Message, Path, ToolResult, ToolUse, input_with

NO_INPUTS: Final[Mapping[str, Mapping[Path, str]]] = MappingProxyType({})


class Violation(NamedTuple):
    """Something that a compaction must not have done. ``id`` is the call it concerns, None: all of them."""

    id: str | None
    problem: str

    def __str__(self) -> str:
        return f"{self.id}: {self.problem}" if self.id is not None else self.problem


class Change(NamedTuple):
    """A text of a result that differs between the two payloads; both results are that one text alone."""

    id: str
    """The text id: the call's, or that and the part."""
    before: ToolResult
    after: ToolResult
    tool: str
    message: int
    position: int
    """Where the text stands among all texts of results, from 0."""


def untouched_violations(
    original: Sequence[Message],
    compacted: Sequence[Message],
    inputs: Mapping[str, Mapping[Path, str]] = NO_INPUTS,
) -> list[Violation]:
    """Every difference between the two that is no changed result text: messages, roles, texts, calls, inputs, flags.

    Messages without any content do not count: they may be left out. ``inputs`` are the strings that became notes, by
    call id and path: they must stand there, and nothing else of the input may differ.
    """
    before = [m for m in original if m.text or m.tool_uses or m.tool_results]
    after = [m for m in compacted if m.text or m.tool_uses or m.tool_results]
    if len(before) != len(after):
        return [Violation(None, f"{len(before)} messages became {len(after)}")]
    found: list[Violation] = []
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if old is new:
            continue
        if old.role != new.role or old.text != new.text:
            found.append(Violation(None, f"the role or text of message {index} changed"))
        if [_call(use, inputs) for use in old.tool_uses] != [_call(use) for use in new.tool_uses]:
            found.append(Violation(None, f"a call of message {index} changed"))
        if [_outer(result) for result in old.tool_results] != [_outer(result) for result in new.tool_results]:
            found.append(Violation(None, f"the results of message {index} are not those of the same calls"))
    return found


def changed_results(original: Sequence[Message], compacted: Sequence[Message]) -> Iterator[Change]:
    """The texts of results that differ; to be asked only where ``untouched_violations`` finds nothing."""
    tools = {use.id: use.tool for message in original for use in message.tool_uses}
    position = 0
    after = (m for m in compacted if m.text or m.tool_uses or m.tool_results)
    for index, old in enumerate(m for m in original if m.text or m.tool_uses or m.tool_results):
        new = next(after)
        if old is new:
            position += sum(len(result.parts) or 1 for result in old.tool_results)
            continue
        for one, other in zip(old.tool_results, new.tool_results, strict=True):
            tool = tools.get(one.tool_use_id, "")
            for (text_id, _, before), (_, _, later) in zip(one.texts(), other.texts(), strict=True):
                if before.text != later.text:
                    yield Change(text_id, before, later, tool, index, position)
                position += 1


def _call(use: ToolUse, inputs: Mapping[str, Mapping[Path, str]] = NO_INPUTS) -> tuple[str, str, Json]:
    changed = inputs.get(use.id)
    return (use.id, use.tool, use.input if changed is None else input_with(use.input, changed))


def _outer(result: ToolResult) -> tuple[str, bool | None, list[int]]:
    return (result.tool_use_id, result.is_error, [part.number for part in result.parts])
