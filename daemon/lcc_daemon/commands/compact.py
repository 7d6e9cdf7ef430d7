"""`compact`: one pass over the event's messages, answered with a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from lcc.config import Config, ConfigError, state_folder
from lcc.contract.report import Report
from lcc.relevance import TranscriptCompactionResult
from lcc.relevance.ports import Ports
from lcc_daemon.compaction import (
    TRIGGERS,
    Event,
    EventContext,
    EventError,
    Outcome,
    compact_event,
    hand_over,
    read_event,
)
from lcc_daemon.environment import environment_of, with_judge_secrets
from lcc_daemon.figures import Figures, newest_context
from lcc_daemon.keepers import file_name
from lcc_daemon.plan import HandOver, Replace, to_stdout
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services
from lcc_daemon.wishes import session_config

TIME_AFTER_JUDGE_MS = 3000
"""What a pass may need besides the time for its judge."""
NO_JUDGE_YET = "by the rules, since the judge comes with the plugin's Python environment"


def answer(request: Request, call: Call, services: Services) -> Answer:
    """The plan for the hook's module: a replacement, or a hand-over with its reason."""
    outcome, whose = _decide(request, call, services)
    reason = outcome.plan.reason if isinstance(outcome.plan, HandOver) else "replace"
    services.log.info(
        "compact: %s, %s, %d results removed, %d bytes", reason, whose, outcome.removed, outcome.saved_bytes
    )
    try:
        return Answer(to_stdout(outcome.encoded, services.parts_folder))
    except OSError as error:
        services.stats.error(f"parts: {error.strerror}")
        services.log.warning("compact: handed over: a part of the plan cannot be written: %s", error.strerror)
        say = f"the plan is too long for one answer, and {services.parts_folder} cannot be written: {error.strerror}"
        return Answer(hand_over("parts", say).encoded)


def _decide(request: Request, call: Call, services: Services) -> tuple[Outcome, str]:
    """What is decided, and whose session it is, for the log."""
    env = environment_of(request)
    try:
        event = read_event(request.body)
    except EventError as error:
        return hand_over(error.reason, str(error)), "no session"
    trigger = event.trigger if event.trigger in TRIGGERS else "unknown trigger"
    whose = f"session {file_name(event.session_id)}{' (agent)' if event.agent_id else ''}, {trigger}"
    try:
        config = session_config(env, event.options, event.session_id)
    except ConfigError as error:
        services.stats.error("configuration")
        return hand_over("config", str(error)), whose
    if event.moment:  # whether it is worth it was asked before
        config = replace(config, min_reduction=0.0)
    waits_for_judge = config.provider != "rules" and find_spec("httpx") is None
    if waits_for_judge:
        config = replace(config, provider="rules")
    event = replace(event, can_recall=event.can_recall and can_recall(event, services))
    if config.provider != "rules":
        call.more_time(int(config.judge_timeout_s * 1000) + TIME_AFTER_JUDGE_MS)
        env = with_judge_secrets(env, config.provider, request, call)
    report_path = services.keepers.report_path(state_folder(env), event.session_id)
    context = EventContext(
        ports=ports_of(config, event, env, services),
        report_path=str(report_path),
        figures=lambda result: figures_of(event, result, services),
        seen_before=(event.session_id, event.agent_id) in services.compacted,
    )
    outcome = compact_event(event, config, context)
    if waits_for_judge and isinstance(outcome.plan, Replace):
        plan = replace(outcome.plan, say=f"{outcome.plan.say}; {NO_JUDGE_YET}")
        outcome = replace(outcome, plan=plan, encoded=plan.encode())
    if outcome.report is not None:
        services.keepers.keep_report(report_path, outcome.report)
    if config.request_log and outcome.report is not None:
        services.background.submit(_log_pass, outcome.report, env, services)
    if isinstance(outcome.plan, Replace) and not call.cancelled.is_set():
        services.compacted.add((event.session_id, event.agent_id))
        if outcome.report is not None and _has_stash_notes(outcome.report):
            services.noted.add((event.session_id, event.agent_id))
        services.background.submit(services.saved.add, state_folder(env), outcome.saved_bytes)
        services.keepers.forget_to_give_back(services.keepers.guide_folder(state_folder(env), event.session_id))
    return outcome, whose


def can_recall(event: Event, services: Services) -> bool:
    """Whether this conversation is known to be able to follow a note of the stash: it has our tool, or its shell
    finds our `lcc`. A sub-agent may have been given other tools than the session."""
    if event.recall_tool and not event.agent_id:
        return True
    return event.has_bash and services.keepers.can_recall(services.folder, event.session_id)


def _has_stash_notes(report: Report) -> bool:
    return any(record.get("recoverability_check") == "stash" for record in report["decisions"])


def ports_of(config: Config, event: Event, env: Mapping[str, str], services: Services) -> Ports:
    """The asking session's keys, and where `stashed` puts what it removes, which this session will name."""
    return Ports(
        environ=env,
        stash_folder=Path(config.stash_dir) if config.stash_dir else None,
        stash_source=event.transcript_path if event.transcript_path.startswith("/") else None,
        judge_client=lambda: services.judges.get(env),
    )


def figures_of(event: Event, result: TranscriptCompactionResult, services: Services) -> Figures:
    """The session's tokens before and after ``result``, by the true size of its context where somebody knows it."""
    real = event.context_tokens
    if real is None and event.session_file is not None:
        real = newest_context(event.session_file)
    return services.book.figures(event.session_id, real, result.transcript, result.edits, result.report)


def _log_pass(report: Report, env: Mapping[str, str], services: Services) -> None:
    from lcc.log.lines import LogError
    from lcc.log.request_log import append, log_path

    try:
        append(report, client_version=None, path=log_path(env))
    except LogError as error:
        services.log.warning("request log: %s", type(error).__name__)
