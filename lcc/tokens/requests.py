"""Every request of a session with what it cost, from the ``usage`` that a Claude Code session file records.

The client writes a row for each block of an answer and repeats the request's usage on it, so rows are counted once a
message id and request id. What the rows say is what is billed: new input, cache reads, cache writes for five minutes
and for an hour, output. Costs are in units of one token at the plain input price.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import orjson

from lcc.tokens.cache_cost import FIVE_MINUTES, ONE_HOUR, Prices
from lcc.transcript import Json

RECALL_TOOL = re.compile(r"mcp__(?:plugin_)?lcc(?:_lcc)?__recall")
"""The tool's name as the client gives it: registered by the plugin's module, or of its MCP server."""
_MARKS = (b'"usage"', b"compact_boundary", b"isCompactSummary")
"""What every line has that says something here: the others need not be parsed."""
RECALL_COMMAND = re.compile(r"\s*lcc recall\s+(?:--raw\s+)?[0-9a-f]")


class Request(NamedTuple):
    """One request to the model, and its answer's figures. Tokens as the API counted them."""

    message: str
    """The id of the answer; empty where the row has none."""
    model: str
    sent: float | None
    """When the first row of its answer was written, in seconds since 1970; None where the row does not say."""
    ended: float | None
    """When the last row was."""
    document: int
    """Which of the documents that were taken its first row was, from 0."""
    sidechain: bool
    """It is a sub-agent's, in the session's own file."""
    new: int
    """Input tokens at the plain price."""
    read: int
    """Input tokens read from the prompt cache."""
    written: int
    """Input tokens written to it for five minutes."""
    written_hour: int
    """Input tokens written to it for an hour."""
    output: int

    @property
    def context(self) -> int:
        """All of its input."""
        return self.new + self.read + self.written + self.written_hour

    @property
    def cost(self) -> float:
        """What its input cost."""
        return (
            self.new
            + FIVE_MINUTES.read * self.read
            + FIVE_MINUTES.write * self.written
            + ONE_HOUR.write * self.written_hour
        )


class Boundary(NamedTuple):
    """A compaction that the session file records."""

    requests: int
    """How many requests of the conversation itself came before it."""
    sent: float | None
    summary: bool
    """A summary took the place of the conversation; else what was removed stands as notes, and the rest as it was."""


@dataclass(frozen=True, slots=True)
class Spending:
    """A session's requests, oldest first: those of its conversation, and those of sub-agents in the same file."""

    requests: tuple[Request, ...]
    aside: tuple[Request, ...]
    boundaries: tuple[Boundary, ...]
    recalls: tuple[int, ...]
    """Each time the agent had a removed output back: how many requests of the conversation came up to then."""


class SpendingReader:
    """Takes a session's parsed lines in file order, in one go or as they come."""

    def __init__(self) -> None:
        self._requests: dict[object, Request] = {}
        self._boundaries: list[Boundary] = []
        self._recalls: dict[str, int] = {}
        self._count = self._taken = 0

    def take(self, documents: Iterable[Mapping[str, Json]]) -> None:
        """Take in more lines; those that are no answer and no boundary say nothing. Linear."""
        for document in documents:
            kind = document.get("type")
            if kind == "assistant":
                self._take_answer(document)
            elif kind == "system" and document.get("subtype") == "compact_boundary":
                self._boundaries.append(Boundary(self._count, sent_at(document), summary=False))
            elif kind == "user" and document.get("isCompactSummary") is True and self._boundaries:
                self._boundaries[-1] = self._boundaries[-1]._replace(summary=True)
            self._taken += 1

    def take_lines(self, lines: Iterable[bytes]) -> None:
        """The same for whole lines of the file; damaged ones say nothing."""
        for line in lines:
            if any(mark in line for mark in _MARKS):
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(value, dict):
                    self.take([value])

    def _take_answer(self, document: Mapping[str, Json]) -> None:
        message = _object(document.get("message"))
        usage = _object(message.get("usage"))
        created = _object(usage.get("cache_creation"))
        hour = _number(created.get("ephemeral_1h_input_tokens"))
        written = _number(usage.get("cache_creation_input_tokens"))
        when = sent_at(document)
        name = message.get("id")
        row = Request(
            message=name if isinstance(name, str) else "",
            model=str(message.get("model")),
            sent=when,
            ended=when,
            document=self._taken,
            sidechain=document.get("isSidechain") is True,
            new=_number(usage.get("input_tokens")),
            read=_number(usage.get("cache_read_input_tokens")),
            written=max(written - hour, 0),
            written_hour=hour,
            output=_number(usage.get("output_tokens")),
        )
        if not row.context:
            return  # made up by the client: nothing was sent
        key: object = (row.message, document.get("requestId")) if row.message else self._taken
        known = self._requests.get(key)
        if known is None:
            self._count += not row.sidechain
            self._requests[key] = row
        else:
            self._requests[key] = _joined(known, row)
        content = message.get("content")
        for block in content if isinstance(content, list) and not row.sidechain else ():
            if isinstance(block, dict) and block.get("type") == "tool_use" and _is_recall(block):
                self._recalls.setdefault(str(block.get("id")), self._count)

    def spending(self) -> Spending:
        """What was taken in so far."""
        found = self._requests.values()
        return Spending(
            tuple(request for request in found if not request.sidechain),
            tuple(request for request in found if request.sidechain),
            tuple(self._boundaries),
            tuple(self._recalls.values()),
        )


def spending_of(lines: Iterable[bytes]) -> Spending:
    """The requests of a session file's whole lines; damaged ones say nothing. Linear."""
    reader = SpendingReader()
    reader.take_lines(lines)
    return reader.spending()


def prices_of(requests: Sequence[Request]) -> Prices:
    """What the session's newest cache entries cost and how long they live; five minutes where none was written."""
    newest = next((request for request in reversed(requests) if request.written or request.written_hour), None)
    return ONE_HOUR if newest is not None and newest.written_hour >= newest.written else FIVE_MINUTES


def _joined(one: Request, other: Request) -> Request:
    """Two rows of one request: an earlier one may hold figures of an answer that still streamed."""
    return one._replace(
        ended=max((when for when in (one.ended, other.ended) if when is not None), default=None),
        new=max(one.new, other.new),
        read=max(one.read, other.read),
        written=max(one.written, other.written),
        written_hour=max(one.written_hour, other.written_hour),
        output=max(one.output, other.output),
    )


def _is_recall(block: Mapping[str, Json]) -> bool:
    """Whether a call has a removed output back: our tool, or the command in a shell."""
    if RECALL_TOOL.fullmatch(str(block.get("name"))):
        return True
    command = _object(block.get("input")).get("command")
    return isinstance(command, str) and RECALL_COMMAND.match(command) is not None


def sent_at(row: Mapping[str, Json]) -> float | None:
    """When a session's row was written, in seconds since 1970; None where it does not say."""
    value = row.get("timestamp")
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        return None


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _number(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
