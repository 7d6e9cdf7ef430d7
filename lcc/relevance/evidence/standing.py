"""Results that stand as they are in every mode, whatever a rule or a judge would say of them.

What an older note points at must stay, so that a second and a third pass keep every earlier pointer true;
and what is a pointer already, or holds no text that could be replaced, cannot become one.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence

from lcc.contract.notes import find_note
from lcc.contract.reasons import (
    ALREADY_A_NOTE,
    ALREADY_A_POINTER,
    CLEARED_BY_CLIENT,
    NAMED_BY_EARLIER_NOTE,
    NOT_A_SINGLE_TEXT,
    REFERRED_TO_BY_UNCHANGED_STUB,
    UNCHANGED_SINCE_LAST_READ_STUB,
    Reason,
)
from lcc.relevance.reading.calls import FileRead, full_path
from lcc.transcript import Pair, Transcript

_STUBS = ("File unchanged since last read", "Wasted call — file unchanged since your last Read")
_LONGEST_STUB = 400  # characters
_PERSISTED = "<persisted-output>"


def standing_reasons(
    transcript: Transcript, pairs: Sequence[Pair], reads: Mapping[str, FileRead], workspace_root: str | None = None
) -> dict[str, Reason]:
    """Which results stand, by call id or by text id, and why. A text that may be decided about is not in it.

    ``reads`` are the calls of ``pairs`` that read a file; their paths are relative to ``workspace_root`` at last.
    """
    reasons: dict[str, Reason] = {}
    named: list[str] = []
    for pair in pairs:
        if pair.use.id in transcript.cleared:
            reasons[pair.use.id] = CLEARED_BY_CLIENT
        for text_id, _, result in pair.result.texts():
            note = find_note(result.text)
            if note is not None:
                reasons[text_id] = ALREADY_A_NOTE
                if note.kind in ("identical", "lines") and note.target is not None:
                    named.append(note.target)
            elif pair.use.id in transcript.cleared:
                continue
            elif result.text_path is None:
                reasons[text_id] = NOT_A_SINGLE_TEXT
            elif result.text.startswith(_PERSISTED):
                reasons[text_id] = ALREADY_A_POINTER
    for message in transcript.aside:  # a rewind may lead back to a note, and its target must then still be there
        for outside in message.tool_results:
            for _, _, result in outside.texts():
                note = find_note(result.text)
                if note is not None and note.kind in ("identical", "lines") and note.target is not None:
                    named.append(note.target)
    for target in named:
        reasons.setdefault(target, NAMED_BY_EARLIER_NOTE)
    for stub, source in _stubs_and_sources(pairs, reads, transcript.cwd, workspace_root):
        reasons.setdefault(stub, UNCHANGED_SINCE_LAST_READ_STUB)
        if source is not None:
            reasons.setdefault(source, REFERRED_TO_BY_UNCHANGED_STUB)
    return reasons


def is_unchanged_stub(text: str) -> bool:
    """Whether a read's result only says that an earlier result in the conversation still holds."""
    return len(text) <= _LONGEST_STUB and text.startswith(_STUBS)


def _is_stub(pair: Pair) -> bool:
    return any(is_unchanged_stub(result.text) for _, _, result in pair.result.texts())


def _stubs_and_sources(
    pairs: Sequence[Pair], reads: Mapping[str, FileRead], session_cwd: str | None, workspace_root: str | None
) -> list[tuple[str, str | None]]:
    """Each stub's call id, with the id of the latest earlier read that it refers to."""
    if not any(pair.use.id in reads and _is_stub(pair) for pair in pairs):
        return []
    latest: dict[object, str] = {}
    found: list[tuple[str, str | None]] = []
    for pair in pairs:
        read = reads.get(pair.use.id)
        if read is None or not read.by_tool:
            continue
        path = os.path.normpath(full_path(read.path, read.cwd, session_cwd, workspace_root))
        # By its name alone where the directory of a relative path is not known.
        keys = ((path, read.span), path, ("named", os.path.basename(path)))
        if _is_stub(pair):
            found.append((pair.use.id, next((latest[key] for key in keys if key in latest), None)))
        elif not pair.result.is_error:
            latest.update(dict.fromkeys(keys, pair.use.id))
    return found
