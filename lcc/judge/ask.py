"""One judged pass over the network: from calls to verdicts, with what could not be judged and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lcc.contract.decision import Verdict
from lcc.contract.modes import Provider
from lcc.contract.reasons import NOT_JUDGED_FAIL_SAFE, Reason
from lcc.judge.addresses import is_listening, is_loopback
from lcc.judge.answers import Reply, probability, unanswered
from lcc.judge.attempt import Failure, Stop
from lcc.judge.dispatch import send_all
from lcc.judge.plan import Limits, Plan, plan_requests
from lcc.judge.questions import Batch
from lcc.judge.settings import Server, Unavailable, jev_server, laya_server
from lcc.tokens import TokenCounter
from lcc.transcript import Pair, Transcript

if TYPE_CHECKING:
    import httpx

LONGEST_PASS = 600.0
"""Seconds after which a pass that was given no deadline stops waiting for its judge."""


CONNECT_SECONDS = 2.0
"""Within which a server on this machine takes a connection."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said. Every call that was asked about is in exactly one of the first two."""

    verdicts: dict[str, Verdict]
    unjudged: dict[str, Reason]
    """Why a call has no verdict: its request failed, or its answer is missing or impossible."""
    failures: tuple[str, ...]
    """The requests that failed, each with its place and the cause; equal causes once, with their number."""
    unreachable: bool
    """No request got as far as the server."""
    model: str | None
    state_tokens: int
    state_fit_stage: str
    requests: int
    calls: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asking:
    """How a judge is asked: by which client (None: one of this pass's own), how many at once, until when."""

    limits: Limits
    counter: Callable[[], TokenCounter] = field(repr=False)
    """Called once a server is there: a vocabulary takes longer to load than a pass takes."""
    environ: Mapping[str, str] = field(repr=False)
    """Whose keys, addresses and proxies count."""
    goal: str
    max_workers: int
    client: httpx.Client | None = None
    deadline: float | None = None
    progress: Callable[[int, int], None] | None = field(default=None, repr=False)

    def stop(self) -> Stop:
        """The end of the pass that begins now."""
        return Stop(time.monotonic() + LONGEST_PASS if self.deadline is None else self.deadline)


def choose_server(
    provider: Provider,
    *,
    jev_model: str,
    laya_model: str | None,
    key_file: str | None = None,
    asking: Asking,
) -> Server | Unavailable:
    """The server that ``provider`` (jev, laya or auto) means, or why there is none (the seed's section 5).

    ``auto`` takes Jev where there is a key and a network, else a Laya server on this machine that answers. A
    Laya server elsewhere is asked only when ``laya`` was asked for by name.
    """
    environ = asking.environ
    if provider == "laya":
        return laya_server(environ, laya_model)
    jev = jev_server(environ, jev_model, key_file)
    if provider == "jev" or isinstance(jev, Server):
        return jev
    laya = laya_server(environ, laya_model)
    if isinstance(laya, Unavailable):
        return Unavailable("jev", tuple(dict.fromkeys((*jev.why, *laya.why))))
    if not is_loopback(laya.endpoint):
        return Unavailable("jev", (*jev.why, f"the Laya server at {laya.host} is not on this machine"))
    # Where nothing listens, the HTTP client is not even loaded: that takes longer than the pass.
    if is_listening(laya.endpoint, CONNECT_SECONDS):
        from lcc.judge.client import SystemOneClient

        with _Client(asking.client, environ, 1) as client:
            if SystemOneClient(laya, client, asking.stop()).is_reachable():
                return laya
    return Unavailable("jev", (*jev.why, f"no Laya server answers at {laya.host}"))


def ask_judge(
    server: Server, transcript: Transcript, asked: Sequence[Pair], pins: Container[str], asking: Asking
) -> Judged:
    """Ask ``server`` about the calls ``asked`` (at least one). Raises ``TranscriptFitError``; nothing else."""
    from lcc.judge.client import SystemOneClient

    plan = plan_requests(
        transcript,
        asked,
        pins,
        goal=asking.goal,
        model=server.model,
        limits=asking.limits,
        counter=asking.counter(),
    )
    stop = asking.stop()
    with _Client(asking.client, asking.environ, asking.max_workers) as client:
        sender = SystemOneClient(server, client, stop)
        outcomes = send_all(
            sender,
            len(plan.batches),
            plan.body,
            max_workers=asking.max_workers,
            stop=stop,
            progress=asking.progress,
            abandon=client.close if asking.client is None else None,
        )
    return _read_outcomes(server, plan, outcomes, sender.calls)


def _read_outcomes(server: Server, plan: Plan, outcomes: Sequence[Reply | Failure], calls: int) -> Judged:
    verdicts: dict[str, Verdict] = {}
    unjudged: dict[str, Reason] = {}
    warnings: list[str] = []
    failures: dict[Failure, list[int]] = {}
    models: dict[str, None] = {}
    reached = False
    for number, (batch, outcome) in enumerate(zip(plan.batches, outcomes, strict=True), 1):
        if isinstance(outcome, Failure):
            failures.setdefault(outcome, []).append(number)
            reached = reached or outcome.connected
            unjudged.update((question.id, NOT_JUDGED_FAIL_SAFE) for question in batch.questions)
            continue
        reached = True
        if outcome.model is not None:
            models.setdefault(outcome.model)
        _read_answers(server, batch, outcome, verdicts, unjudged, warnings)
    if len(models) > 1:
        warnings.append(f"{server.provider}_models_differ:{', '.join(models)}")
    return Judged(
        verdicts=verdicts,
        unjudged=unjudged,
        failures=tuple(
            _failure_line(failure.text, failures[failure], len(plan.batches))
            for failure in sorted(failures, key=lambda failure: failure.consequence)  # causes first
        ),
        unreachable=not reached,
        model=next(iter(models), None),
        state_tokens=plan.state.tokens,
        state_fit_stage=plan.state.stage,
        requests=len(plan.batches),
        calls=calls,
        warnings=tuple(warnings),
    )


def _read_answers(
    server: Server,
    batch: Batch,
    reply: Reply,
    verdicts: dict[str, Verdict],
    unjudged: dict[str, Reason],
    warnings: list[str],
) -> None:
    for question in batch.questions:
        found: list[float] = []
        for name in (question.keep_call, question.keep_result):
            value = probability(reply.answers, name)
            if isinstance(value, float):
                found.append(value)
                continue
            reason = unanswered(server.provider, value, name)
            warnings.append(reason.code)
            unjudged.setdefault(question.id, reason)
        if len(found) == 2:
            verdicts[question.id] = Verdict(*found)


def _failure_line(text: str, numbers: Sequence[int], total: int) -> str:
    which = f"request {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} requests"
    return f"{which} of {total}: {text}"


class _Client:
    """The given client, left open; or a client of this pass's own, closed at the end."""

    def __init__(self, given: httpx.Client | None, environ: Mapping[str, str], connections: int) -> None:
        from lcc.judge.client import build_client

        self._own = given is None
        self._client = build_client(environ, connections) if given is None else given

    def __enter__(self) -> httpx.Client:
        return self._client

    def __exit__(self, *error: object) -> None:
        if self._own:
            self._client.close()
