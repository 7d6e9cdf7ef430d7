"""What `lossy` asks of the calls: the latest of each kind, the files that they are about, what came later.

The rules and their numbers are the seed's section 5 (`lossy`).
"""

from __future__ import annotations

import os.path
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

from lcc.contract.reasons import (
    LATEST_ARTIFACT_EDIT,
    LATEST_GIT_STATE,
    LATEST_TASK_STATE,
    LATEST_TOOL_RESULT,
    LATEST_USER_QUESTION,
    Reason,
)
from lcc.relevance.evidence.failures import shows_error
from lcc.relevance.reading.calls import FileRead, command_of, cwd_of, kind_of, named_path, written_paths
from lcc.relevance.reading.programs import git_subcommand, runs_of
from lcc.transcript import Pair, ToolUse

RECENT_MESSAGES = 40  # outputs of the newest so many messages are never trimmed, nor are reads dropped as stale
LARGE_OUTPUT = 4000  # characters; longer outputs are trimmed

_GIT_STATES = frozenset({"status", "diff", "log"})


def written_by(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    """The files that each call writes, by call id; a call that writes none is not in it."""
    found = ((pair.use.id, written_paths(pair.use)) for pair in pairs)
    return {call_id: paths for call_id, paths in found if paths}


def latest_of_each_kind(pairs: Sequence[Pair], written: Container[str]) -> dict[str, Reason]:
    """The calls that are the latest of their kind, by id: git status, diff and log, plan, edit, question, result.

    ``written`` are the calls that write a file.
    """
    latest: dict[str, tuple[str, Reason]] = {}
    for pair in pairs:
        kind = kind_of(pair.use.tool)
        if kind == "plan":
            latest[kind] = pair.use.id, LATEST_TASK_STATE
        elif kind == "question":
            latest[kind] = pair.use.id, LATEST_USER_QUESTION
        elif kind in ("edit", "write") or pair.use.id in written:
            latest["edit"] = pair.use.id, LATEST_ARTIFACT_EDIT
        command = command_of(pair.use)
        if command is not None and "git" in command:
            for subcommand in _GIT_STATES.intersection(git_subcommand(run) or "" for run in runs_of(command)):
                latest[f"git {subcommand}"] = pair.use.id, LATEST_GIT_STATE
    newest = max(pairs, key=lambda pair: (pair.result_message, pair.use_message), default=None)
    if newest is not None:
        latest["result"] = newest.use.id, LATEST_TOOL_RESULT
    return dict(latest.values())


def paths_of(use: ToolUse, read: FileRead | None, written: Sequence[str], session_cwd: str | None) -> list[str]:
    """The files that a call is about: the one it reads, else those it writes, else the one it names; absolute
    where a folder is known."""
    paths = [read.path] if read is not None else list(written)
    if not paths:
        named = named_path(use)
        paths = [named] if named else []
    return [_resolved(path, use, session_cwd) for path in paths]


def edited_later(
    pairs: Sequence[Pair], reads: Mapping[str, FileRead], written: Mapping[str, Sequence[str]], session_cwd: str | None
) -> Iterator[str]:
    """The reads of a file that a later edit, or a patch sent through any tool, changes."""
    if not written:
        return
    edited: set[str] = set()
    for pair in reversed(pairs):
        read = reads.get(pair.use.id)
        if read is not None and _resolved(read.path, pair.use, session_cwd) in edited:
            yield pair.use.id
        edited.update(_resolved(path, pair.use, session_cwd) for path in written.get(pair.use.id, ()))


def bears_error(pairs: Iterable[Pair], errors: Collection[str], before: int) -> Iterator[str]:
    """The large outputs before message ``before`` that failed, or that have an error in them."""
    for pair in pairs:
        if pair.result_message >= before:
            continue
        text = pair.result.text
        if len(text) > LARGE_OUTPUT and (pair.use.id in errors or shows_error(text)):
            yield pair.use.id


def _resolved(path: str, use: ToolUse, session_cwd: str | None) -> str:
    return os.path.normpath(os.path.join(cwd_of(use) or session_cwd or "", path))
