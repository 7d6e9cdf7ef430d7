"""`between-turns`: whether a session that rests is to be compacted now, before its window is full.

The module asks with an event as for `compact`. Without messages it is told what to wait for:
``{"v": 1, "proactive": …, "life_ms": …, "early_share": …, "status": …}``. With them it is told the verdict:
``{"v": 1, "act": true or false, "why": a machine word or words, "saves": words, "wait_ms": …, "can_go": share}``.
"""

from __future__ import annotations

from dataclasses import replace

import orjson

from lcc.config import Config, ConfigError, load_config, state_folder
from lcc.tokens.cache_cost import FIVE_MINUTES
from lcc.transcript import Json
from lcc_daemon.commands.compact import can_recall, ports_of
from lcc_daemon.compaction import Event, EventError, read_event
from lcc_daemon.environment import environment_of
from lcc_daemon.look import LookError, Verdict, background_work, look_at, read_lines, session_file, spending_of
from lcc_daemon.look import verdict_on as verdict_on_look
from lcc_daemon.plan import VERSION
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services
from lcc_daemon.wishes import read_wishes


def answer(request: Request, call: Call, services: Services) -> Answer:
    """What to wait for, or the verdict; a failure is a verdict against."""
    env = environment_of(request)
    try:
        body: Json = orjson.loads(request.body)
        if not isinstance(body, dict):
            raise EventError("bad-event", "the event is no object")
        options = body.get("options")
        session_id = body.get("session_id")
        config = load_config(env, options if isinstance(options, dict) else {})
        config = read_wishes(state_folder(env), session_id if isinstance(session_id, str) else "").on(config)
        if not body.get("messages"):
            return _answer(_settings(config))
        event = read_event(request.body)
    except (ConfigError, EventError, orjson.JSONDecodeError) as error:
        return _answer(_verdict(Verdict(False, str(error))))
    event = replace(event, can_recall=event.can_recall and can_recall(event, services))
    since = body.get("since")
    verdict, can_go = _verdict_on(event, config, env, services, since if isinstance(since, int | float) else 0.0)
    services.log.info("between turns: session %s: %s: %s", event.session_id[:80], config.proactive, verdict.why)
    return _answer({**_verdict(verdict), "can_go": can_go})


def _verdict_on(
    event: Event, config: Config, env: dict[str, str], services: Services, since: float
) -> tuple[Verdict, float]:
    if not config.enabled or (config.proactive == "off" and not config.status):
        return Verdict(False, "off"), 0.0
    lines = read_lines(session_file(event))
    try:
        found = look_at(event, config, ports_of(config, event, env, services), services)
    except LookError as error:
        return Verdict(False, str(error)), 0.0
    can_go = found.report["reduction_ratio"]
    if config.proactive == "off":
        return Verdict(False, "off"), can_go
    if background_work(lines, since):
        return Verdict(False, "background work is under way", wait_s=FIVE_MINUTES.ttl_s), can_go
    return verdict_on_look(found, event, config, spending_of(lines)), can_go


def _settings(config: Config) -> dict[str, Json]:
    return {
        "proactive": config.proactive if config.enabled else "off",
        "life_ms": round(1000 * (config.cache_life_s or FIVE_MINUTES.ttl_s)),
        "early_share": config.early_share,
        "status": config.status and config.enabled,
    }


def _verdict(verdict: Verdict) -> dict[str, Json]:
    wait = verdict.wait_s
    return {
        "act": verdict.act,
        "why": verdict.why,
        "saves": verdict.saves,
        "wait_ms": None if wait is None else round(1000 * wait),
    }


def _answer(value: dict[str, Json]) -> Answer:
    return Answer(orjson.dumps({"v": VERSION, **value}))
