"""What a session costs with compactions, from the requests it really made: one long replay, for any policy.

The session's own usage says what each request read from the prompt cache and wrote to it. With a policy the same
requests follow each other, each with a context that is smaller by what was removed before it: a real pass over the
messages that stood in the context then, in the workspace that the session had recorded. A removed result that a later
call needs (`needs.py`, counted as in `retention.py`) is recalled once: one more request, and its text in the context
from then on. All costs are in tokens at the plain input price; output is left out.

Where the client wrote a summary, a policy compacts at the same fullness of the window, and goes on with the larger
context that notes leave. What the client dropped from its context by itself (a rewind, cleared results) is taken to
be what the policy had removed already, so nothing is saved twice.
"""

from __future__ import annotations

import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import orjson
from bench_rounds import size
from needs import Payload, needs, results_of_message, uses_of
from replay import Workspace, moved, payload, write_files

from lcc.compaction.compact import compact
from lcc.contract.options import PassOptions
from lcc.relevance.ports import Ports
from lcc.tokens import TokenEstimator, calibrate, counter, usage_steps
from lcc.tokens.cache_cost import FIVE_MINUTES, ONE_HOUR, Prices
from lcc.tokens.requests import Request, SpendingReader, prices_of, sent_at
from lcc.tokens.savings import COLD_SHARE, RESERVED, WINDOWS
from lcc.tokens.thinking import kept_thinking
from lcc.transcript import Json, messages_to_payload, parse_payload, read_transcript
from lcc.transcript.lines import split

OUTPUT = 5.0
"""The price of an output token. Output is the same in all rows, but for summaries and the calls of recalls."""
CALL_OUTPUT = 80
PROMPT_TOKENS = 500
CALL_TOKENS = 120
"""What a recall adds to the context beside its text: the call and its wrapping."""
LEAST_AT_THE_WALL = 0.25


@dataclass(frozen=True)
class Gap:
    """The time before a request."""

    idle: float
    """Seconds since the request before it ended, up to the user's prompt where there is one."""
    prompt: bool
    """The user's words stand there: the session was idle. Else a tool ran, or a permission was waited for."""


class Removal(NamedTuple):
    """What one compaction took away."""

    request: int
    """It came before this request."""
    freed: float
    """Tokens."""
    first: float
    """Tokens of the context before the first change."""


@dataclass
class Outcome:
    """What a policy came to in one session."""

    cost: float = 0.0
    compactions: int = 0
    summaries: int = 0
    recalls: int = 0
    freed: float = 0.0


@dataclass(frozen=True)
class State:
    """What a policy is asked with, before a request is sent."""

    context: float
    window: int
    gap: Gap
    prices: Prices
    requests: int
    """How many came before."""
    first: int
    """The first request's context: the client's system prompt and tools, which no compaction changes."""


Wants = Callable[[State], bool]
"""Whether to try a pass now."""
Accepts = Callable[[State, float], bool]
"""Whether to take it: told the tokens that it frees."""


@dataclass(frozen=True)
class Policy:
    """When to compact before the wall, and when to take the result. None: only at the wall."""

    name: str
    wants: Wants | None = None
    accepts: Accepts | None = None
    ladder: bool = True
    """At the wall `auto` compacts; else the client summarises where it did."""


@dataclass
class Session:
    """One session, read once, for every policy."""

    path: Path
    project: str
    root: Path
    passes: dict[tuple[int, tuple[int, ...]], tuple[Payload, float]] = field(default_factory=dict)
    """Passes that were run, by the request before which and by those before which others were: policies share them."""

    def __post_init__(self) -> None:
        raw = self.path.read_bytes()
        self.documents = [document.value for document in split(raw)]
        reader = SpendingReader()
        reader.take(self.documents)
        spending = reader.spending()
        self.requests = spending.requests
        self.walls = {boundary.requests for boundary in spending.boundaries if boundary.requests < len(self.requests)}
        joined = _without_summaries(self.documents)
        transcript = read_transcript(b"\n".join(orjson.dumps(document) for document in joined))
        self.messages = payload(transcript.messages, self.root)
        starts = [message.documents[0] for message in transcript.messages]
        self.before = [bisect_left(starts, request.document) for request in self.requests]
        self.prices = prices_of(self.requests)
        model = next((request.model for request in reversed(self.requests) if request.model[:1] != "<"), None)
        calibration = calibrate(usage_steps(self.documents), counter(model))
        self.tokens = TokenEstimator(None, calibration, model)
        self.gaps = [_gap(self, index) for index in range(len(self.requests))]
        self.thinking: list[int] = []
        marks = [0, *(self.requests[at].document for at in sorted(self.walls)), len(self.documents)]
        for start, end in pairwise(marks):
            part = kept_thinking(self.documents[start:end], self.tokens)
            self.thinking += [*part, 0]

    @cached_property
    def window(self) -> int:
        largest = max((request.context for request in self.requests), default=0)
        return next((window for window in WINDOWS if window >= largest), WINDOWS[-1])

    @cached_property
    def wall(self) -> float:
        """Tokens at which the client compacts: as it did in this session, else as it does in its window."""
        return float(min((self.requests[at - 1].context for at in self.walls), default=self.window - RESERVED))

    def summary_cost(self, index: int, context: float) -> float:
        """The request for a summary, which is in no file: the context is read once more, and the summary is output."""
        texts = [
            str(message.get("content"))
            for document in self.documents[: self.requests[index].document]
            if document.get("isCompactSummary") is True and isinstance(message := document.get("message"), dict)
        ]
        written = self.tokens.estimate(texts[-1]) if texts else 0
        return self.prices.read * context + OUTPUT * written

    def place(self, message: int) -> int:
        """The first request that was sent the message."""
        return bisect_left(self.before, message + 1)

    def at(self, request: int, taken: tuple[int, ...], context: Payload) -> tuple[Payload, float]:
        """A real pass before that request over what then stands in the context, and the tokens that it frees."""
        known = self.passes.get((request, taken))
        if known is None:
            known = self.passes[(request, taken)] = self._pass(request, context)
        return known

    def _pass(self, request: int, context: Payload) -> tuple[Payload, float]:
        workspace = Workspace()
        for document in self.documents[: self.requests[request].document]:
            workspace.take(document)
        shutil.rmtree(self.root, ignore_errors=True)
        write_files({moved(name, self.root): text for name, text in workspace.files.items()})
        options = PassOptions(provider="rules", rules_mode="auto", workspace_root=str(self.root))
        ports = Ports(stash_folder=self.root.parent / "stash", tokens=self.tokens)
        answer = compact(parse_payload(list(context)), options, ports, rendered=False)
        shutil.rmtree(self.root, ignore_errors=True)
        report = answer.report
        return messages_to_payload(answer.result.messages), float(report["tokens_before"] - report["tokens_after"])


def client_alone(session: Session) -> Outcome:
    """What the file records. A summary reads the context once more: that request is in no file, so it is added."""
    found = Outcome(sum(request.cost for request in session.requests), summaries=len(session.walls))
    found.cost += sum(session.summary_cost(at, session.requests[at - 1].context) for at in session.walls)
    return found


def run(session: Session, policy: Policy, common: set[str]) -> Outcome:
    """The session again, with that policy before the wall and `auto` at it."""
    return _Replay(session, policy, common).run()


class _Replay:
    def __init__(self, session: Session, policy: Policy, common: set[str]) -> None:
        self.session, self.policy, self.common = session, policy, common
        self.found = Outcome()
        self.context: Payload = []
        """What stands in the context, compacted so far."""
        self.taken: tuple[int, ...] = ()
        self.freed = [0.0] * len(session.messages)
        """Tokens that are gone of each message."""
        self.gone: dict[str, str] = {}
        """What stands in the place of each result that was changed, by call id."""
        self.original = {name: text for message in session.messages for name, text in results_of_message(message)}
        self.fetched: set[str] = set()
        self.recalled = 0.0
        """Tokens of recalled results that stand in the context."""
        self.kept = 0.0
        """Tokens that the client's own summary would have taken, and that stand in the context here."""
        self.covered = 0.0
        """Of what was freed, tokens that the client has since dropped by itself."""
        self.due: dict[int, list[str]] = {}
        """Results to recall, by the request that needs them."""
        self.thought = 0
        """The request up to which thinking is gone."""

    def run(self) -> Outcome:
        session = self.session
        before = 0.0
        for index, request in enumerate(session.requests):
            previous = session.requests[index - 1] if index else None
            self._take_messages(session.before[index])
            if index in session.walls and not self.policy.ladder:
                self._forget(index)
                before = float(request.context + request.output)
                self.found.cost += request.cost
                continue
            if previous is not None:
                self._client_dropped(index, previous, request)
            context = self._size(request)
            first = session.requests[0].context
            state = State(before, session.window, session.gaps[index], session.prices, index, first)
            removal = self._compaction(index, state, context)
            for name in self.due.pop(index, []):
                self._recall(name, self._size(request))
            context = self._size(request)
            self.found.cost += self._cost(index, request, previous, context, removal)
            before = context + request.output
        return self.found

    def _client_dropped(self, index: int, previous: Request, request: Request) -> None:
        drop = float(previous.context + previous.output - request.context)
        if index in self.session.walls:
            self.kept += max(drop, 0.0)
        elif drop > previous.output:
            self.covered += min(drop - previous.output, max(sum(self.freed) - self.covered, 0.0))

    def _take_messages(self, count: int) -> None:
        self.context += self.session.messages[len(self.context) : count]

    def _size(self, request: Request) -> float:
        return request.context + self.kept + self.recalled - max(sum(self.freed) - self.covered, 0.0)

    def _compaction(self, index: int, state: State, context: float) -> Removal | None:
        wants = self.policy.wants
        if state.gap.prompt and wants is not None and wants(state):
            removal = self._try(index, state)
            if removal is not None:
                return removal
        if context < self.session.wall or not self.policy.ladder:
            return None
        removal = self._try(index, None)
        if removal is None:
            self._summary(index)
        return removal

    def _try(self, index: int, state: State | None) -> Removal | None:
        """A pass before request ``index``; taken where the policy (``state``) or the rule at the wall says so."""
        smaller, noted = self.session.at(index, self.taken, self.context)
        characters = [size([old]) - size([new]) for old, new in zip(self.context, smaller, strict=True)]
        if noted <= 0:
            return None
        rate = noted / sum(characters)
        gone = [rate * length + thought for length, thought in zip(characters, self._thinking(index), strict=True)]
        changed = next(number for number, tokens in enumerate(gone) if tokens)
        freed = sum(gone)
        position = self._position(changed)
        if state is None:
            if sum(characters) / max(1, size(self.context)) < LEAST_AT_THE_WALL:
                return None
        elif self.policy.accepts is not None and not self.policy.accepts(state, freed):
            return None
        for number, tokens in enumerate(gone):
            self.freed[number] += tokens
        self.thought = index
        self.context, self.taken = [*smaller], (*self.taken, index)
        self._note_needs(index)
        self.found.compactions += 1
        self.found.freed += freed
        return Removal(index, freed, position)

    def _thinking(self, index: int) -> list[float]:
        """Thinking tokens of each message in the context that no compaction has taken yet: a replacement has none."""
        found = [0.0] * len(self.context)
        for number in range(self.thought, min(index, len(self.session.thinking))):
            place = self.session.before[number]
            if place < len(found):
                found[place] += self.session.thinking[number]
        return found

    def _position(self, message: int) -> float:
        """Tokens of the context before that message, as it stood."""
        place = self.session.place(message)
        start = self.session.requests[place - 1].context if place else 0
        return max(start - sum(self.freed[:message]), 0.0)

    def _summary(self, index: int) -> None:
        """At the wall, where too little goes: the client's own, which leaves what its summary in the file left."""
        self.found.summaries += 1
        self.found.cost += self.session.summary_cost(index, self._size(self.session.requests[index]))
        self.kept = self.recalled = 0.0
        if index not in self.session.walls:
            self.covered = 0.0
            self.freed = [0.0] * len(self.freed)

    def _forget(self, index: int) -> None:
        """The client's summary, where the file has it: what stood before it is not in the context any more."""
        self.found.summaries += 1
        self.found.cost += self.session.summary_cost(index, self._size(self.session.requests[index - 1]))
        self.context = [{"role": message["role"], "text": ""} for message in self.context]
        self.freed = [0.0] * len(self.freed)
        self.kept = self.recalled = self.covered = 0.0
        self.gone, self.due, self.thought = {}, {}, index

    def _note_needs(self, index: int) -> None:
        """Which results the calls after this compaction need that are gone; a later one asks again."""
        for message in self.context:
            for name, text in results_of_message(message):
                if text != self.original[name] and name not in self.fetched:
                    self.gone[name] = text
        start = len(self.context)
        after = self.session.messages[start:]
        places = {str(use["tool_use_id"]): start + at for at, message in enumerate(after) for use in uses_of(message)}
        self.due = {}
        for need in needs(self.session.messages[:start], after, self.common):
            if need.kind == "written" or not all(
                name in self.gone and need.piece not in self.gone[name] for name in need.sources
            ):
                continue
            # The answer with the call came from the request before the first one that was sent it.
            request = max(self.session.place(places[need.call]) - 1, index)
            self.due.setdefault(request, []).append(need.sources[0])

    def _recall(self, name: str, context: float) -> None:
        if name in self.fetched:
            return
        self.fetched.add(name)
        self.gone.pop(name, None)
        tokens = self.session.tokens.estimate(self.original[name]) + CALL_TOKENS
        prices = self.session.prices
        self.found.recalls += 1
        self.found.cost += prices.read * context + prices.write * tokens + OUTPUT * CALL_OUTPUT
        self.recalled += tokens

    def _cost(
        self, index: int, request: Request, previous: Request | None, context: float, removal: Removal | None
    ) -> float:
        """What the request costs with a context of that size: by where the changes lie in what it read and wrote."""
        prices = self.session.prices
        written = request.written + request.written_hour
        if removal is not None:
            read = min(float(request.read), removal.first)
        elif index in self.session.walls and previous is not None:
            # The client had summarised here. As the context was, what is not new is read, or written where it is cold.
            is_cold = self.session.gaps[index].idle > prices.ttl_s
            read = 0.0 if is_cold else max(context - previous.output - PROMPT_TOKENS, 0.0)
        elif previous is None or request.read >= COLD_SHARE * min(previous.context, request.context):
            read = max(context - written - request.new, 0.0)
        else:
            inside = sum(
                gone
                for number, gone in enumerate(self.freed)
                if gone and self.session.requests[max(self.session.place(number) - 1, 0)].context <= request.read
            )
            read = max(request.read - inside, 0.0)
        rate = (
            (ONE_HOUR.write * request.written_hour + FIVE_MINUTES.write * request.written) / written if written else 0
        )
        return prices.read * read + request.new + (rate or prices.write) * max(context - read - request.new, 0.0)


def _gap(session: Session, index: int) -> Gap:
    if index == 0:
        return Gap(0.0, prompt=False)
    previous, request = session.requests[index - 1], session.requests[index]
    between = [
        document
        for document in session.documents[previous.document + 1 : request.document]
        if document.get("type") == "user" and document.get("isSidechain") is not True and not document.get("isMeta")
    ]
    prompt = bool(between) and not _answers(between[-1])
    when = sent_at(between[-1]) if prompt else request.sent
    idle = when - previous.ended if when is not None and previous.ended is not None else 0.0
    return Gap(max(idle, 0.0), prompt)


def _answers(document: dict[str, Json]) -> bool:
    message = document.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


def _without_summaries(documents: list[dict[str, Json]]) -> Iterator[dict[str, Json]]:
    """The session as if the client had never summarised: what follows a summary follows what stood before it.

    Every document keeps its place; one that is left out becomes an empty one.
    """
    follows: dict[str, Json] = {}
    newest: Json = None
    for document in documents:
        name, parent = document.get("uuid"), document.get("parentUuid")
        if document.get("subtype") == "compact_boundary" or document.get("isCompactSummary") is True:
            follows[str(name)] = follows.get(str(parent), newest)
            yield {"type": "left-out"}
            continue
        yield {**document, "parentUuid": follows[parent]} if isinstance(parent, str) and parent in follows else document
        if document.get("type") in ("user", "assistant") and document.get("isSidechain") is not True:
            newest = name
