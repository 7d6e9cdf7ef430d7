"""`compact`: one pass over the event's messages, answered with a plan."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lcc.config import Config, ConfigError, load_config, state_folder
from lcc.contract.report import Report
from lcc.relevance import TranscriptCompactionResult
from lcc.relevance.context import PassContext
from lcc_daemon.compaction import Done, Event, EventError, Help, compact_event, hand_over, read_event
from lcc_daemon.environment import environment_of
from lcc_daemon.figures import Figures
from lcc_daemon.plan import HandOver, Replace, to_stdout
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services

TIME_AFTER_JUDGE_MS = 3000
"""What a pass may need besides the time for its judge."""


def answer(request: Request, call: Call, services: Services) -> Answer:
    """The plan for the hook's module: a replacement, or a hand-over with its reason."""
    done = _decide(request, call, services)
    reason = done.plan.reason if isinstance(done.plan, HandOver) else "replace"
    services.log.info("compact: %s, %d results removed, %d bytes", reason, done.removed, done.saved_bytes)
    return Answer(to_stdout(done.encoded, services.parts_folder))


def _decide(request: Request, call: Call, services: Services) -> Done:
    env = environment_of(request, services.env)
    try:
        event = read_event(request.body)
        config = load_config(env, event.options)
    except EventError as error:
        return hand_over(error.reason, str(error))
    except ConfigError as error:
        services.stats.error("configuration")
        return hand_over("config", str(error))
    if config.provider != "rules":
        call.more_time(int(config.judge_timeout_s * 1000) + TIME_AFTER_JUDGE_MS)
    done = compact_event(event, config, _lent(event, config, env, services))
    if config.request_log and done.report is not None:
        services.background.submit(_log_pass, done.report, env, services)
    if isinstance(done.plan, Replace) and not call.cancelled.is_set():
        services.compacted.add((event.session_id, event.agent_id))
        services.background.submit(services.stats.add_saved, done.saved_bytes)
        services.keepers.forget_to_give_back(services.keepers.guide_folder(state_folder(env), event.session_id))
    return done


def _lent(event: Event, config: Config, env: Mapping[str, str], services: Services) -> Help:
    state = state_folder(env)

    def keep_report(event: Event, report: Report) -> str:
        return services.keepers.keep_report(state, event.session_id, report)

    def figures(event: Event, result: TranscriptCompactionResult) -> Figures:
        path = event.transcript_path
        file = Path(path) if path.startswith("/") and not event.agent_id else None
        return services.book.figures(event.session_id, file, result.transcript, result.edits, result.report)

    return Help(
        context=_context(config, event, env),
        judge_client=services.judge.get,
        keep_report=keep_report,
        figures=figures,
        seen_before=(event.session_id, event.agent_id) in services.compacted,
    )


def _context(config: Config, event: Event, env: Mapping[str, str]) -> PassContext:
    """The asking session's keys, and where `stashed` puts what it removes, which this session will name."""
    if config.rules_mode != "stashed":
        return PassContext(environ=env)
    from lcc.stash import UNNAMED_SESSION, Stash, stash_folder

    folder = Path(config.stash_dir) if config.stash_dir else stash_folder(env)
    source = event.transcript_path if event.transcript_path.startswith("/") else None
    return PassContext(stash=Stash(folder, event.session_id or UNNAMED_SESSION, source), environ=env)


def _log_pass(report: Report, env: Mapping[str, str], services: Services) -> None:
    from lcc.log.request_log import RequestLogError, append, log_path

    try:
        append(report, client_version=None, path=log_path(env))
    except RequestLogError as error:
        services.log.warning("request log: %s", type(error).__name__)
