"""Decisions by a semantic judge, and what happens where it gave none (the seed's sections 2, 4 and 5).

A result is kept unless both of its questions were answered with a probability: a missing key, a failed
request, a late or an impossible answer all keep it, and each says so in its reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lcc.contract.decision import Decision, Drop, Keep, Trim, Verdict
from lcc.contract.modes import Guarantee, JudgeName
from lcc.contract.notes import trim_note
from lcc.contract.options import PassOptions
from lcc.contract.reasons import (
    CALL_AND_RESULT_NOT_NEEDED,
    CALL_KEPT_RESULT_TRIMMED,
    JEV_UNAVAILABLE_FAIL_SAFE,
    LAYA_UNAVAILABLE_FAIL_SAFE,
    NO_CANDIDATES,
    NOT_A_SINGLE_TEXT,
    NOT_JUDGED_FAIL_SAFE,
    RESULT_STILL_NEEDED,
    TRIM_NOT_SHORTER,
    Reason,
)
from lcc.judge.ask import Asking, Judged, ask_judge, choose_server
from lcc.judge.cache import DecisionCache, decision_key
from lcc.judge.plan import Limits
from lcc.judge.settings import Server, Unavailable, network_allowed
from lcc.tokens import budget_counter
from lcc.transcript import Pair, Transcript

if TYPE_CHECKING:
    import httpx

_UNAVAILABLE: dict[JudgeName, Reason] = {"jev": JEV_UNAVAILABLE_FAIL_SAFE, "laya": LAYA_UNAVAILABLE_FAIL_SAFE}
_NOTE_START, _, _NOTE_END = trim_note(0, "TOOL").partition("0 characters of this TOOL")


@dataclass(frozen=True, slots=True)
class JudgedOutcome:
    """The decisions of a judged pass, for every unpinned pair, and what the report says about it."""

    decisions: Mapping[str, Decision]
    provider_used: str
    degraded: bool
    degradation_reason: Reason | None
    semantic_guarantee: Guarantee
    """``judged``, ``partial`` (a part was kept unjudged because requests failed) or ``none``."""
    jev_model_resolved: str | None
    state_tokens: int | None
    state_fit_stage: str | None
    requests: int | None
    """Requests that the questions were split into; 0 when a cache answered all, None when no judge could be asked."""
    warnings: tuple[str, ...]
    model_requested: str | None = None
    """The model that was really asked for, where the environment names another than the options."""
    calls: int | None = None
    """HTTP requests sent, retries included."""
    questions_asked: int = 0
    """Two for each call that was sent to the judge; calls that the cache knew are not among them."""


@dataclass(slots=True)
class _Pass:
    """One judged pass under way."""

    options: PassOptions
    server: Server
    candidates: Sequence[Pair]
    cache: DecisionCache | None
    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def key(self, pair: Pair, text: str | None = None) -> str:
        return decision_key(self.server.provider, self.server.model, self.options.question, pair, text)

    def unknown(self) -> list[Pair]:
        """The calls that must be asked about, in order; what the cache knows becomes a verdict."""
        if self.cache is None:
            return list(self.candidates)
        asked = []
        for pair in self.candidates:
            verdict = self.cache.get(self.key(pair))
            if verdict is None:
                asked.append(pair)
            else:
                self.verdicts[pair.use.id] = verdict
        return asked

    def remember(self, decisions: Mapping[str, Decision]) -> tuple[str, ...]:
        """Put the verdicts into the cache, also for what a trimmed result now is, and write it."""
        if self.cache is None:
            return ()
        for pair in self.candidates:
            verdict = self.verdicts.get(pair.use.id)
            if verdict is None:
                continue
            self.cache.put(self.key(pair), verdict)
            decision = decisions[pair.use.id]
            if isinstance(decision, Trim):
                self.cache.put(self.key(pair, decision.text), verdict)
        return (*self.cache.warnings, *self.cache.save())


def decide_judged(
    transcript: Transcript,
    candidates: Sequence[Pair],
    pins: Container[str],
    options: PassOptions,
    *,
    progress: Callable[[int, int], None] | None = None,
    deadline: float | None = None,
    cache: DecisionCache | None = None,
    environ: Mapping[str, str] | None = None,
    client: Callable[[], httpx.Client] | None = None,
) -> JudgedOutcome:
    """Decide about every pair of ``candidates`` that is not in ``pins``, as ``options`` say.

    ``progress`` is called with (requests answered, requests). ``deadline`` is a `time.monotonic` value after
    which nothing is waited for: what has no answer by then is kept. ``cache`` makes decisions sticky: only
    calls that it does not know are asked about (None: the file that the options name, if they name one).
    ``environ`` stands in for the process's environment. ``client`` gives the HTTP client to ask with, and is called
    where a network may be used (None: one of this pass's own).

    Raises ``TranscriptFitError`` when the conversation cannot be shown to the judge, and
    ``DecisionsCacheError`` for a ``decisions_cache`` that cannot be used. Everything else that can go wrong is
    in the outcome.
    """
    unpinned = [pair for pair in candidates if pair.use.id not in pins]
    if not unpinned:
        provider = "laya" if options.provider == "laya" else "jev"
        return _outcome(provider, {}, reason=NO_CANDIDATES)
    if cache is None and options.decisions_cache:
        cache = DecisionCache.open(options.decisions_cache)
    environ = os.environ if environ is None else environ
    asking = Asking(
        limits=Limits(
            options.max_state_tokens, options.max_request_tokens, options.batch_calls, options.preserve_recent
        ),
        counter=lambda: budget_counter(options.model),
        environ=environ,
        goal=options.question,
        max_workers=options.max_workers,
        client=client() if client is not None and network_allowed(environ) else None,
        deadline=deadline,
        progress=progress,
    )
    server = choose_server(
        options.provider,
        jev_model=options.jev_model,
        laya_model=options.laya_model,
        key_file=options.judge_key_file,
        asking=asking,
    )
    if isinstance(server, Unavailable):
        return _unavailable(server, unpinned)
    work = _Pass(options, server, unpinned, cache)
    asked = work.unknown()
    judged = ask_judge(server, transcript, asked, pins, asking) if asked else None
    if judged is not None:
        work.verdicts.update(judged.verdicts)
    return _judged(work, judged, 2 * len(asked))


def decide_pair(pair: Pair, verdict: Verdict, threshold: float, head_chars: int, source: JudgeName) -> Decision:
    """The seed's table of section 2: keep, trim or drop by the two probabilities."""
    if verdict.keep_result >= threshold:
        return Keep(RESULT_STILL_NEEDED, source, verdict)
    if verdict.keep_call < threshold:
        return Drop(CALL_AND_RESULT_NOT_NEEDED, source, verdict)
    trim = trimmed(pair, head_chars)
    if trim is None:
        reason = NOT_A_SINGLE_TEXT if pair.result.text_path is None else TRIM_NOT_SHORTER
        return Keep(reason, source, verdict)
    return Trim(CALL_KEPT_RESULT_TRIMMED, *trim, source, verdict)


def trimmed(pair: Pair, head_chars: int) -> tuple[str, str] | None:
    """The note line and the new text of a trimmed result; None when it would be no shorter.

    The head is the first ``head_chars`` characters; the line that follows says how many were dropped, and
    from which tool. A result that is trimmed already, or is not one text, stays as it is.
    """
    text = pair.result.text
    if pair.result.text_path is None or len(text) <= head_chars or _is_trimmed(text):
        return None
    head = text[:head_chars]
    note = trim_note(len(text) - head_chars, pair.use.tool)
    new = head + ("" if not head or head.endswith("\n") else "\n") + note
    return (note, new) if len(new) < len(text) else None


def _is_trimmed(text: str) -> bool:
    last = text[text.rfind("\n") + 1 :]
    return last.startswith(_NOTE_START) and last.endswith(_NOTE_END)


def _judged(work: _Pass, judged: Judged | None, questions_asked: int) -> JudgedOutcome:
    options, provider = work.options, work.server.provider
    unjudged = judged.unjudged if judged else {}
    decisions: dict[str, Decision] = {}
    for pair in work.candidates:
        call_id = pair.use.id
        verdict = work.verdicts.get(call_id)
        if verdict is not None:
            decisions[call_id] = decide_pair(pair, verdict, options.threshold, options.trim_head_chars, provider)
            continue
        decisions[call_id] = Keep(unjudged[call_id], "fail_safe")
    warnings = work.remember(decisions)
    if judged is None:
        return _outcome(provider, decisions, guarantee="judged", requests=0, model=work.server.model, warnings=warnings)
    used, guarantee, reason = _guarantee(provider, bool(work.verdicts), judged)
    if reason is LAYA_UNAVAILABLE_FAIL_SAFE:
        decisions = dict.fromkeys(decisions, Keep(reason, "fail_safe"))
    return JudgedOutcome(
        decisions=decisions,
        provider_used=used,
        degraded=reason is not None,
        degradation_reason=reason,
        semantic_guarantee=guarantee,
        jev_model_resolved=judged.model,
        state_tokens=judged.state_tokens,
        state_fit_stage=judged.state_fit_stage,
        requests=judged.requests,
        warnings=(*judged.failures, *judged.warnings, *warnings),
        model_requested=work.server.model,
        calls=judged.calls,
        questions_asked=questions_asked,
    )


def _guarantee(provider: JudgeName, any_verdict: bool, judged: Judged) -> tuple[str, Guarantee, Reason | None]:
    """``provider_used``, ``semantic_guarantee`` and ``degradation_reason`` by the seed's table of section 5."""
    if not any_verdict:
        if provider == "laya" and judged.unreachable:
            return provider, "none", LAYA_UNAVAILABLE_FAIL_SAFE
        return "degraded", "none", NOT_JUDGED_FAIL_SAFE
    if judged.failures:
        return f"{provider}+partial_fail_safe", "partial", NOT_JUDGED_FAIL_SAFE
    return provider, "judged", None


def _unavailable(server: Unavailable, pairs: Sequence[Pair]) -> JudgedOutcome:
    reason = _UNAVAILABLE[server.provider]
    keep = Keep(reason, "fail_safe")
    return _outcome(
        server.provider,
        {pair.use.id: keep for pair in pairs},
        degraded=True,
        reason=reason,
        warnings=(f"{reason}: {'; '.join(server.why)}; every call was kept",),
    )


def _outcome(
    provider: str,
    decisions: Mapping[str, Decision],
    *,
    guarantee: Guarantee = "none",
    degraded: bool = False,
    reason: Reason | None = None,
    requests: int | None = None,
    model: str | None = None,
    warnings: tuple[str, ...] = (),
) -> JudgedOutcome:
    """An outcome for which no request was sent."""
    return JudgedOutcome(
        decisions, provider, degraded, reason, guarantee, None, None, None, requests, warnings, model_requested=model
    )
