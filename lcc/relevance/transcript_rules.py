"""`lossy` (experimental): a fixed policy by the transcript's structure, with no claim (the seed's section 5).

It failed two blind audits, because what it trims and drops may still be needed; nothing in lcc chooses it.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Mapping, Sequence

import orjson

from lcc.contract.decision import Decision, Drop, Keep, Trim
from lcc.contract.notes import trim_note
from lcc.contract.reasons import (
    CALL_BEFORE_LATEST_ERROR,
    KEPT_DEFAULT,
    LARGE_OLD_OUTPUT_TRIMMED,
    LATEST_ARTIFACT_EDIT,
    LATEST_ERROR_RESULT,
    LATEST_GIT_STATE,
    LATEST_TASK_STATE,
    LATEST_TOOL_RESULT,
    LATEST_USER_QUESTION,
    NAMED_IN_GOAL,
    NAMED_IN_RECENT_TURNS,
    STALE_READ_FAR_FROM_RECENT_WORK,
    SUPERSEDED_BY_LATER_CALL,
    TRIM_GUARD_EDITED_LATER,
    TRIM_GUARD_ERROR,
    TRIM_GUARD_NAMED,
    TRIM_GUARD_POLL,
    TRIM_GUARD_RECENT_MESSAGES,
    Reason,
)
from lcc.relevance.evidence.guards import Names, errors_among, latest_error, shows_error
from lcc.relevance.reading.calls import FileRead, command_of, cwd_of, input_strings, kind_of, named_path, written_paths
from lcc.relevance.reading.headers import comparable
from lcc.transcript import Pair, ToolUse

RECENT_MESSAGES = 40  # outputs of the newest so many messages are never trimmed, nor are reads dropped as stale
LARGE_OUTPUT = 4000  # characters; longer outputs are trimmed
KEPT_ENDS = 1000  # characters of a trimmed output that stay at each end

_GIT_STATE = re.compile(r"\bgit\s++(status|diff|log)\b")
_Key = tuple[str, bytes, str]


def rules_decisions(
    pairs: Sequence[Pair],
    candidates: Sequence[Pair],
    reads: Mapping[str, FileRead],
    goal: Names,
    recent: Names,
    message_count: int,
    session_cwd: str | None,
) -> dict[str, Decision]:
    """The decision on every candidate, by call id, with the rule as its reason.

    ``pairs`` are all calls with results in order, ``reads`` those of them that read a file; ``goal`` and
    ``recent`` are what the goal and the recent user turns name.
    """
    errors = errors_among(pairs, reads)
    keeps = _latest_of_each_kind(pairs, errors)
    facts = _LaterFacts(pairs, reads, errors, message_count, session_cwd)
    decisions: dict[str, Decision] = {}
    for pair in candidates:
        call_id = pair.use.id
        reason = keeps.get(call_id) or _named(pair.use, reads.get(call_id), goal, recent)
        if reason is not None:
            decisions[call_id] = Keep(reason)
            continue
        superseder = facts.superseded_by.get(call_id)
        if superseder is not None:
            decisions[call_id] = Drop(SUPERSEDED_BY_LATER_CALL(superseder))
        elif call_id in facts.stale_reads:
            decisions[call_id] = Drop(STALE_READ_FAR_FROM_RECENT_WORK)
        else:
            decisions[call_id] = _trim(pair, facts, errors, goal, recent)
    return decisions


class _LaterFacts:
    """What happened after each call: who supersedes it, whether its file was edited, whether it went stale."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        reads: Mapping[str, FileRead],
        errors: frozenset[str],
        message_count: int,
        session_cwd: str | None,
    ) -> None:
        self.recent_from = message_count - RECENT_MESSAGES
        self.superseded_by: dict[str, str] = {}
        self.edited_later: set[str] = set()
        self.stale_reads: set[str] = set()
        whole: dict[str, str] = {}
        again: dict[_Key, str] = {}
        edited: set[str] = set()
        recently_used: set[str] = set()
        for pair in reversed(pairs):
            use = pair.use
            key = _call_and_output(pair)
            superseder = again.setdefault(key, use.id)
            if superseder != use.id:
                self.superseded_by[use.id] = superseder
            read = reads.get(use.id)
            paths = [_resolved(path, use, session_cwd) for path in _paths_of(use, read)]
            if pair.use_message >= self.recent_from:
                recently_used.update(paths)
            kind = kind_of(use.tool)
            if read is not None and paths:
                path = paths[0]
                if path in whole:
                    self.superseded_by.setdefault(use.id, whole[path])
                if path in edited:
                    self.edited_later.add(use.id)
                old = pair.result_message < self.recent_from
                if old and use.id not in errors and path not in recently_used:
                    self.stale_reads.add(use.id)
            succeeded = use.id not in errors
            if succeeded and paths and (kind == "write" or (read and read.by_tool and read.span is None)):
                whole.setdefault(paths[0], use.id)
            edited.update(_resolved(path, use, session_cwd) for path in written_paths(use))


def _latest_of_each_kind(pairs: Sequence[Pair], errors: frozenset[str]) -> Mapping[str, Reason]:
    """The calls that stay because they are the latest of their kind, by id, with the reason."""
    latest: dict[tuple[Reason, str], str] = {}
    for pair in pairs:
        kind = kind_of(pair.use.tool)
        if kind == "plan":
            latest[LATEST_TASK_STATE, ""] = pair.use.id
        elif kind == "question":
            latest[LATEST_USER_QUESTION, ""] = pair.use.id
        elif kind in ("edit", "write") or written_paths(pair.use):
            latest[LATEST_ARTIFACT_EDIT, ""] = pair.use.id
        command = command_of(pair.use)
        state = _GIT_STATE.search(command) if command else None
        if state:
            latest[LATEST_GIT_STATE, state[1]] = pair.use.id
    newest = max(pairs, key=lambda pair: (pair.result_message, pair.use_message), default=None)
    if newest is not None:
        latest[LATEST_TOOL_RESULT, ""] = newest.use.id
    error = latest_error(pairs, errors)
    reasons = {call_id: reason for (reason, _), call_id in latest.items()}
    if error.before is not None:
        reasons[error.before] = CALL_BEFORE_LATEST_ERROR
    if error.error is not None:
        reasons[error.error] = LATEST_ERROR_RESULT
    return reasons


def _named(use: ToolUse, read: FileRead | None, goal: Names, recent: Names) -> Reason | None:
    if goal.name_call(use, read):
        return NAMED_IN_GOAL
    return NAMED_IN_RECENT_TURNS if recent.name_call(use, read) else None


def _trim(pair: Pair, facts: _LaterFacts, errors: frozenset[str], goal: Names, recent: Names) -> Decision:
    text = pair.result.text
    if len(text) <= LARGE_OUTPUT:
        return Keep(KEPT_DEFAULT)
    guard = _trim_guard(pair, facts, errors, goal, recent)
    if guard is not None:
        return Keep(guard)
    head, tail = text[:KEPT_ENDS], text[-KEPT_ENDS:]
    note = trim_note(len(text) - len(head) - len(tail), pair.use.tool)
    return Trim(LARGE_OLD_OUTPUT_TRIMMED, note, f"{head}\n{note}\n{tail}")


def _trim_guard(pair: Pair, facts: _LaterFacts, errors: frozenset[str], goal: Names, recent: Names) -> Reason | None:
    if pair.result_message >= facts.recent_from:
        return TRIM_GUARD_RECENT_MESSAGES
    if kind_of(pair.use.tool) == "poll":
        return TRIM_GUARD_POLL
    if pair.use.id in errors or shows_error(pair.result.text):
        return TRIM_GUARD_ERROR
    if pair.use.id in facts.edited_later:
        return TRIM_GUARD_EDITED_LATER
    strings = input_strings(pair.use.input)
    return TRIM_GUARD_NAMED if goal.name_any(strings) or recent.name_any(strings) else None


def _paths_of(use: ToolUse, read: FileRead | None) -> Iterable[str]:
    """The files that a call is about: the one it reads, else the ones it writes, else the one it names."""
    if read is not None:
        return [read.path]
    written = written_paths(use)
    if written:
        return written
    path = named_path(use)
    return [path] if path else []


def _resolved(path: str, use: ToolUse, session_cwd: str | None) -> str:
    return os.path.normpath(os.path.join(cwd_of(use) or session_cwd or "", path))


def _call_and_output(pair: Pair) -> _Key:
    try:
        written = orjson.dumps(pair.use.input, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits
        written = repr(pair.use.input).encode("utf-8", "surrogatepass")
    return pair.use.tool, written, comparable(pair.use.tool, pair.result.text)
