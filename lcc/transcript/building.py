"""Several lines to one message: what the line-based formats share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from lcc.transcript.model import Message, Role, ToolResult, ToolUse
from lcc.transcript.values import TranscriptError

_WARNINGS_SHOWN: Final = 20


class MessageBuilder:
    """A message that lines are being added to."""

    __slots__ = ("by_client", "documents", "more", "results", "role", "texts", "uses")

    def __init__(self, role: Role) -> None:
        self.role = role
        self.texts: list[str] = []
        self.uses: list[ToolUse] = []
        self.results: list[ToolResult] = []
        self.documents: list[int] = []
        self.more = False
        self.by_client = False

    def build(self) -> Message:
        """The message as it stands."""
        return Message(
            self.role,
            "\n".join(self.texts),
            tuple(self.uses),
            tuple(self.results),
            None,
            tuple(self.documents),
            self.more,
            self.by_client,
        )


def duplicate_ids(messages: Iterable[Message]) -> frozenset[str]:
    """Call ids that occur more than once among the calls, or more than once among the results."""
    duplicates: set[str] = set()
    called: set[str] = set()
    answered: set[str] = set()
    for message in messages:
        for use in message.tool_uses:
            (duplicates if use.id in called else called).add(use.id)
        for result in message.tool_results:
            (duplicates if result.tool_use_id in answered else answered).add(result.tool_use_id)
    return frozenset(duplicates)


def placed_in_line(error: TranscriptError, document: int, line: int) -> TranscriptError:
    """The error about a value of ``document``, with the number of the line in place of the document's."""
    return TranscriptError(error.problem, f"line {line}, {error.place.removeprefix(f'[{document}].')}")


def warnings_of(found: Sequence[str]) -> tuple[str, ...]:
    """What a transcript says of its damage: each line of it, up to a number of them, then how many more."""
    if len(found) <= _WARNINGS_SHOWN:
        return tuple(found)
    return (*found[:_WARNINGS_SHOWN], f"{len(found) - _WARNINGS_SHOWN} more lines are damaged, and kept as they are")
