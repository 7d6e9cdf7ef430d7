"""From the calls to be judged to the requests to be sent, all under their budgets (the seed's section 4)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from lcc.judge.errors import TranscriptFitError
from lcc.judge.fitting import FittedState, StateBudget, fit_state
from lcc.judge.questions import Batch, Envelope, QuestionWriter, split
from lcc.judge.state import entries_of
from lcc.tokens import TokenCounter
from lcc.transcript import Pair, Transcript


@dataclass(frozen=True, slots=True)
class Limits:
    """The budgets of a pass: tokens for the state, tokens and calls for one request, requests at once."""

    max_state_tokens: int
    max_request_tokens: int
    batch_calls: int
    preserve_recent: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The requests of a pass. The same session, options and calls give the same bytes."""

    state: FittedState
    batches: tuple[Batch, ...]
    head: bytes

    def body(self, index: int) -> bytes:
        """The body of one request, by its place in ``batches``."""
        return Envelope.body(self.head, self.batches[index])


def plan_requests(
    transcript: Transcript,
    asked: Sequence[Pair],
    pins: Container[str],
    *,
    goal: str,
    model: str,
    limits: Limits,
    counter: TokenCounter,
) -> Plan:
    """The requests that ask about the calls ``asked`` (at least one), each with the whole state.

    Raises ``TranscriptFitError`` when the conversation cannot be shown within the budgets.
    """
    entries, labels = entries_of(transcript, pins, limits.preserve_recent)
    writer = QuestionWriter(counter)
    questions = [writer.write(pair, labels[pair.use.id]) for pair in asked]
    envelope = Envelope(model)
    frame = envelope.tokens(counter)
    budget = _state_budget(limits, frame + max(question.tokens for question in questions))
    if budget.tokens < 1:
        raise TranscriptFitError(
            needed=limits.max_request_tokens - budget.tokens + 1,
            allowed=limits.max_request_tokens,
            messages=len(entries),
            calls=len(labels),
            option="--max-request-tokens",
            advice="one call's questions alone are more; raise it",
        )
    state = fit_state(entries, goal, counter, budget)
    batches = split(questions, state.tokens + frame, limits.max_request_tokens, limits.batch_calls)
    return Plan(state, tuple(batches), envelope.head(state.json))


def _state_budget(limits: Limits, beside: int) -> StateBudget:
    """What is left for the state in a request that asks about one call."""
    room = limits.max_request_tokens - beside
    offline = "or compact without a judge: --provider rules"
    if room < limits.max_state_tokens:
        return StateBudget(room, "--max-request-tokens", f"raise it as far as the server allows, {offline}")
    advice = f"raise it (a request leaves room for {room}), {offline}"
    return StateBudget(limits.max_state_tokens, "--max-state-tokens", advice)
