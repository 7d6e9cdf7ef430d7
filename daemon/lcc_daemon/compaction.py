"""One `session.compact` event in, one plan out: the same pass as `lcc compact`, with the same report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from lcc.compaction.compact import Compacted, CompactionError, compact
from lcc.config import Config
from lcc.contract.modes import MODES
from lcc.contract.reasons import STASH_WRITE_FAILED
from lcc.contract.report import Report, measured
from lcc.relevance import TranscriptCompactionResult
from lcc.relevance.ports import Ports
from lcc.stash import StashFolderError
from lcc.transcript import Edits, Json, Transcript, TranscriptError, parse_payload, value_in
from lcc_daemon.figures import Figures
from lcc_daemon.plan import HandOver, Plan, Replace, percent, summary_line

TRIGGERS = ("manual", "auto", "plugin")
NOT_ENOUGH = ("nothing-to-remove", "nothing-new", "too-little")
"""Reasons of a hand-over that another mode might not give."""
HINT_SECONDS = 0.4
"""The hook waits: after a pass that took longer, none is run to see what would help."""


class EventError(ValueError):
    """An event that is not of the shape that the hook's module sends. ``reason`` is a machine word."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Event:
    """What the module sends: the client's event, with the session and where it works."""

    trigger: str
    instructions: str
    messages: list[Json]
    session_id: str
    agent_id: str
    cwd: str
    transcript_path: str
    options: dict[str, Json]
    can_recall: bool = True
    """Whether the session has a way to follow a note of the stash, as far as who sends the event knows."""
    moment: str = ""
    """Of a compaction between turns that nobody asked for: `cold` or `early`."""
    recall_tool: bool = False
    """Whether the session has the tool `recall` of the plugin's module."""
    context_tokens: int | None = None
    window_tokens: int | None = None

    @property
    def session_file(self) -> Path | None:
        """The file of this conversation, where it is known: a sub-agent's is another one."""
        return Path(self.transcript_path) if self.transcript_path.startswith("/") and not self.agent_id else None

    @property
    def has_bash(self) -> bool:
        """Whether this conversation has used the Bash tool: it can then run `lcc recall`."""
        return any(
            isinstance(use, dict) and use.get("tool") == "Bash"
            for message in self.messages
            if isinstance(message, dict) and isinstance(uses := message.get("toolUses"), list)
            for use in uses
        )


@dataclass(frozen=True, slots=True)
class EventContext:
    """What the daemon gives to an event's pass besides the event itself."""

    ports: Ports = field(default_factory=Ports)
    report_path: str | None = None
    """Where the report will stand; whoever asked for the plan keeps it there."""
    figures: Callable[[TranscriptCompactionResult], Figures] = lambda result: estimated(result)
    """The tokens that the user is told."""
    seen_before: bool = False
    """Whether this session has been compacted by a pass before."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A plan, with what the daemon counts and logs of it."""

    plan: Plan
    encoded: bytes
    saved_bytes: int = 0
    removed: int = 0
    report: Report | None = None


def read_event(body: bytes | bytearray) -> Event:
    """The event from its JSON. Raises EventError; the text never quotes the session."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise EventError("bad-event", f"the event is no JSON (line {error.lineno}, column {error.colno})") from None
    if not isinstance(value, dict):
        raise EventError("bad-event", "the event is no object")
    messages, options = value.get("messages"), value.get("options")
    if not isinstance(messages, list) or not messages:
        raise EventError("bad-event", "the event has no messages")
    texts = {}
    for key in ("trigger", "instructions", "session_id", "agent_id", "cwd", "transcript_path", "moment"):
        found = value.get(key)
        if found is not None and not isinstance(found, str):
            raise EventError("bad-event", f"the event's {key} is no text")
        texts[key] = found or ""
    return Event(
        messages=messages,
        options=options if isinstance(options, dict) else {},
        can_recall=value.get("can_recall") is not False,
        recall_tool=value.get("recall_tool") is True,
        context_tokens=_tokens(value.get("context_tokens")),
        window_tokens=_tokens(value.get("window_tokens")),
        **texts,
    )


def _tokens(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def prepare(event: Event, config: Config, ports: Ports) -> tuple[Transcript, Config, Ports]:
    """What a pass over the event's session is run with, whether it is to be compacted or only looked at.

    Raises EventError.
    """
    if not event.cwd.startswith("/"):
        raise EventError("bad-event", "the event does not say where the session works")
    try:
        transcript = replace(
            parse_payload({"messages": event.messages}), cwd=event.cwd, session_id=event.session_id or None
        )
    except TranscriptError as error:
        raise EventError("bad-transcript", f"the session cannot be read at {error.place or 'its top'}") from None
    config = replace(config, question=event.instructions)
    if config.rules_mode == "stashed" and not event.can_recall:
        config = replace(config, rules_mode="recoverable")
    if config.disk_check and not os.path.isdir(event.cwd):
        # The session's own machine: what it read below a folder that is gone is not there, and proves nothing.
        config = replace(config, workspace_root=event.cwd)
    ports = replace(
        ports,
        deadline=time.monotonic() + config.judge_timeout_s,
        can_recall=event.can_recall,
        context_tokens=event.context_tokens,
        window_tokens=event.window_tokens,
    )
    return transcript, config, ports


def compact_event(event: Event, config: Config, context: EventContext | None = None) -> Outcome:
    """Decide about one event. Everything that stands against a replacement is a hand-over with its reason."""
    context = context or EventContext()
    if not config.enabled:
        return hand_over("disabled", "lcc is switched off")
    if event.trigger not in TRIGGERS:
        return hand_over("unknown-trigger", f"a compaction of an unknown kind ({event.trigger[:40]!r})")
    begun = time.monotonic()
    try:
        transcript, config, ports = prepare(event, config, context.ports)
    except EventError as error:
        return hand_over(error.reason, str(error))
    made: list[Outcome] = []

    def stage(compacted: Compacted) -> None:
        if event.context_tokens and event.window_tokens:
            before = measured(event.context_tokens, event.window_tokens)
            compacted.report["context"] = {"before": before, "after": None}
        made[:] = [_plan_for(config, context, compacted, event.window_tokens)]

    try:
        compact(transcript, config, ports, rendered=False, stage=stage)
    except CompactionError as error:
        return hand_over(error.reason, str(error))
    except StashFolderError as error:
        return hand_over("config", str(error))
    outcome = made[0]
    if (
        isinstance(outcome.plan, HandOver)
        and outcome.plan.reason in NOT_ENOUGH
        and time.monotonic() - begun < HINT_SECONDS
    ):
        hint = _what_would_help(transcript, config, ports)
        return hand_over(outcome.plan.reason, outcome.plan.say + hint, outcome.report)
    return outcome


def _what_would_help(transcript: Transcript, config: Config, ports: Ports) -> str:
    """The mode that would free enough, as the end of a line; empty where none would. Nothing is written."""
    if MODES[config.rules_mode].stashes:
        return ""
    options = replace(config, provider="rules", rules_mode="stashed")
    try:
        report = compact(transcript, options, replace(ports, dry_run=True), rendered=False).report
    except (CompactionError, StashFolderError):
        return ""
    if not report["worth_it"]:
        return ""
    hint = f"; rules_mode stashed would free {percent(report['reduction_ratio'])} %"
    return hint if ports.can_recall else f"{hint} where the session can recall, which this one has not shown"


def hand_over(reason: str, say: str, report: Report | None = None) -> Outcome:
    """The session is left to the built-in summary, for ``reason``."""
    plan = HandOver(reason, say)
    return Outcome(plan, plan.encode(), report=report)


def _plan_for(config: Config, context: EventContext, compacted: Compacted, window: int | None) -> Outcome:
    edits, report = compacted.edits, compacted.report
    if not edits or not report["worth_it"]:
        reason, say = _why_not(config, context, report, bool(edits))
        return hand_over(reason, say + _stash_trouble(report), report)
    figures = context.figures(compacted.result)
    say = summary_line(report, figures, window if figures.is_real else None)
    after = figures.after if figures.is_real else None
    plan = Replace(edits.texts, edits.dropped, edits.inputs, say, context.report_path, after)
    saved = saved_bytes(compacted.result.transcript, edits)
    return Outcome(plan, plan.encode(), saved, len(edits.texts) + len(edits.dropped) + len(edits.inputs), report)


def _why_not(config: Config, context: EventContext, report: Report, has_edits: bool) -> tuple[str, str]:
    if has_edits:
        asked = f"{100 * config.min_reduction:g} % is asked for (min_reduction)"
        return "too-little", f"only {percent(report['reduction_ratio'])} % can be removed, and {asked}"
    if report["degraded"] and not _stash_trouble(report):
        return "degraded", f"nothing was decided ({report['degradation_reason']})"
    if context.seen_before:
        return "nothing-new", "nothing new to remove since the last compaction"
    return "nothing-to-remove", "no tool result can be had back yet"


def _stash_trouble(report: Report) -> str:
    """Why the stash took nothing, as the end of a line; empty where nothing stood against it."""
    code = f"{STASH_WRITE_FAILED.code}:"
    errors = [each.removeprefix(code).partition(":")[0] for each in report["warnings"] if each.startswith(code)]
    return f"; the stash could not be written ({errors[0]}): lcc doctor says where it is" if errors else ""


def estimated(result: TranscriptCompactionResult) -> Figures:
    """The pass's own figures, where nothing better is known of the session."""
    report = result.report
    return Figures(report["tokens_before"], report["tokens_after"], False)


def saved_bytes(transcript: Transcript, edits: Edits) -> int:
    """How many bytes of results and inputs (UTF-8) the edits take out of the session."""
    total = 0
    for pair in transcript.pairs():
        new = edits.texts.get(pair.use.id)
        if new is not None or pair.use.id in edits.dropped:
            total += _size(pair.result.text) - _size(new or "")
        for path, note in edits.inputs.get(pair.use.id, {}).items():
            total += _size(str(value_in(pair.use.input, path))) - _size(note)
    return total


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
