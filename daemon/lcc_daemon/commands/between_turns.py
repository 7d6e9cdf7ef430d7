"""`between-turns`: whether a session that rests is to be compacted now, before its window is full.

The module asks with an event as for `compact`. Without messages it is told what to wait for:
``{"v": 1, "proactive": …, "rest_ms": …, "early_share": …, "status": …, "now_file": …}``; with ``"status": true``
what a compaction would free: ``{"v": 1, "can_go": share}``; else the verdict:
``{"v": 1, "act": true or false, "why": a machine word or words, "saves": words, "wait_ms": …}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import orjson

from lcc.compaction.compact import CompactionError, compact
from lcc.config import Config, ConfigError, state_folder
from lcc.private_files import read_bounded
from lcc.relevance import TranscriptCompactionResult
from lcc.stash import StashFolderError
from lcc.tokens.requests import spending_of
from lcc.transcript import Json
from lcc_daemon.commands.compact import can_recall, figures_of, ports_of
from lcc_daemon.compaction import Event, EventError, prepare, read_event
from lcc_daemon.environment import environment_of
from lcc_daemon.keepers import file_name
from lcc_daemon.plan import VERSION
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.resting import Verdict, before_a_look, rest_of, verdict_on
from lcc_daemon.server import Call
from lcc_daemon.services import Services
from lcc_daemon.sessions import FOLLOW_LIMIT
from lcc_daemon.wishes import now_file, session_config


class LookError(Exception):
    """No pass can say what it would do; the text says why."""


def answer(request: Request, call: Call, services: Services) -> Answer:
    """What to wait for, what can go, or the verdict; a failure is a verdict against."""
    env = environment_of(request)
    try:
        body: Json = orjson.loads(request.body)
        if not isinstance(body, dict):
            raise EventError("bad-event", "the event is no object")
        options = body.get("options")
        session = str(body.get("session_id") or "")
        config = session_config(env, options if isinstance(options, dict) else {}, session)
        if not body.get("messages"):
            return _answer(_settings(config, env, session))
        event = read_event(request.body)
    except (ConfigError, EventError, orjson.JSONDecodeError) as error:
        return _answer(_against(str(error)))
    event = replace(event, can_recall=event.can_recall and can_recall(event, services))
    if body.get("status") is True:
        return _answer({"can_go": _can_go(event, config, env, services)})
    since = body.get("since")
    verdict = _verdict(event, config, env, services, since if isinstance(since, int | float) else 0.0)
    services.log.info("between turns: session %s: %s: %s", file_name(event.session_id), config.proactive, verdict.why)
    wait = verdict.wait_s
    waits: Json = None if wait is None else round(1000 * wait)
    return _answer({"act": verdict.act, "why": verdict.why, "saves": verdict.saves, "wait_ms": waits})


def _settings(config: Config, env: Mapping[str, str], session: str) -> dict[str, Json]:
    return {
        "now_file": str(now_file(state_folder(env), session)) if file_name(session, "") else None,
        "proactive": config.proactive if config.enabled else "off",
        "rest_ms": round(1000 * rest_of(config)),
        "early_share": config.early_share,
        "status": config.status and config.enabled,
    }


def _against(why: str) -> dict[str, Json]:
    return {"act": False, "why": why, "saves": "", "wait_ms": None}


def _can_go(event: Event, config: Config, env: Mapping[str, str], services: Services) -> float:
    try:
        return _look(event, config, env, services).report["reduction_ratio"] if config.enabled else 0.0
    except LookError:
        return 0.0


def _verdict(event: Event, config: Config, env: Mapping[str, str], services: Services, since: float) -> Verdict:
    if not config.enabled or config.proactive == "off":
        return Verdict(False, "off")
    try:
        file = event.session_file
        lines = read_bounded(file, FOLLOW_LIMIT).split(b"\n") if file is not None else []
    except OSError as error:
        return Verdict(False, f"the session file cannot be read: {error.strerror}")
    spending = spending_of(lines)
    against = before_a_look(config, lines, spending, since)
    if against is not None:
        return against
    try:
        found = _look(event, config, env, services)
    except LookError as error:
        return Verdict(False, str(error))
    return verdict_on(found.report, figures_of(event, found, services), config, spending)


def _look(event: Event, config: Config, env: Mapping[str, str], services: Services) -> TranscriptCompactionResult:
    """The pass that `session.compact` would run, by the rules alone; nothing is written. Raises LookError."""
    config = replace(config, provider="rules")
    try:
        transcript, config, ports = prepare(event, config, ports_of(config, event, env, services))
        return compact(transcript, config, replace(ports, dry_run=True), rendered=False).result
    except (EventError, CompactionError, StashFolderError) as error:
        raise LookError(str(error)) from None


def _answer(value: dict[str, Json]) -> Answer:
    return Answer(orjson.dumps({"v": VERSION, **value}))
