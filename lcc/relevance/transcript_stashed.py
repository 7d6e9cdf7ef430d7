"""`stashed`: a kept result that no proof covers becomes a note, once its bytes are safe in the stash.

The bytes are durable and have been read back equal before a note that names them is in any decision. What
cannot be stored is kept.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lcc.contract.decision import Decision, InStash, Keep, Pointer
from lcc.contract.notes import count_lines, excerpt_line, find_note, stash_note
from lcc.contract.reasons import (
    SHORT_RESULT_KEPT_WHOLE,
    STASH_WRITE_FAILED,
    STASHED,
)
from lcc.relevance.choice import StashedReason
from lcc.relevance.verification import NO_INPUTS, Change, Violation, changed_results, untouched_violations
from lcc.stash import Stash, StashError, Stored, bytes_of_text
from lcc.transcript import Json, Message, Pair, Path, parse_payload


class ToStash(NamedTuple):
    """One text to stash: its text id, the text, why (completes ``stashed:``), and the tokens that go."""

    id: str
    text: str
    reason: StashedReason
    tokens: int
    excerpt: tuple[str, ...] = ()
    """Words of the text to keep beside the note."""


def stash_removed(
    pairs: Sequence[Pair], count_tokens: Callable[[str], int], stash: Stash | None
) -> dict[str, Decision]:
    """Decisions that stash exactly these results: a judge would remove them, so the policy is not asked."""
    chosen = [ToStash(p.text_id, p.result.text, "judged_not_needed", count_tokens(p.result.text)) for p in pairs]
    return stash_decisions(chosen, stash)


def stash_decisions(chosen: Sequence[ToStash], stash: Stash | None) -> dict[str, Decision]:
    """Store the texts together, and give each its decision: ``replace`` once it is safe, else ``keep``."""
    contents = [bytes_of_text(item.text) for item in chosen]
    shas = [hashlib.sha256(content).hexdigest() for content in contents]
    notes = [
        stash_note(item.tokens, sha) + excerpt_line(item.excerpt, count_lines(item.text))
        for item, sha in zip(chosen, shas, strict=True)
    ]
    shorter = [len(note) < len(item.text) for note, item in zip(notes, chosen, strict=True)]
    outcomes: list[Stored | OSError | None] = [None] * len(chosen)
    if stash is not None:
        places = [index for index, is_shorter in enumerate(shorter) if is_shorter]
        for index, outcome in zip(places, stash.put_many([contents[index] for index in places]), strict=True):
            outcomes[index] = outcome
    if stash is not None:
        notes = _unambiguous(notes, chosen, shas, stash)
    return {
        item.id: _decision(item, len(contents[index]), shas[index], notes[index], outcomes[index])
        if shorter[index]
        else Keep(SHORT_RESULT_KEPT_WHOLE)
        for index, item in enumerate(chosen)
    }


def _unambiguous(notes: Sequence[str], chosen: Sequence[ToStash], shas: Sequence[str], stash: Stash) -> list[str]:
    """The notes, with more digits where the stash holds another object of the same first ones."""
    try:
        others = stash.alike(shas)
    except OSError:  # then nothing was stored either
        return list(notes)
    return [
        stash_note(item.tokens, sha, others[sha]) + note[len(stash_note(item.tokens, sha)) :] if sha in others else note
        for note, item, sha in zip(notes, chosen, shas, strict=True)
    ]


def write_warnings(decisions: Mapping[str, Decision]) -> tuple[str, ...]:
    """One line for each kind of error that kept results out of the stash; () when there was none."""
    counts: dict[str, int] = {}
    for decision in decisions.values():
        if decision.reason.kind is STASH_WRITE_FAILED:
            counts[decision.reason.code] = counts.get(decision.reason.code, 0) + 1
    return tuple(f"{code}: {count} results were kept" for code, count in counts.items())


def verify_stashed(original: Json, compacted: Json, stash: Stash) -> list[Violation]:
    """Whether every stash note stands for exactly the bytes that the stash gives for it.

    Both are the seed's payload. Other notes are `verify_recoverable`'s. Returns what is wrong, [] when
    nothing is. Raises ``TranscriptError`` for a payload that cannot be read.
    """
    return stashed_violations(parse_payload(original).messages, parse_payload(compacted).messages, stash)


def stashed_violations(
    original: Sequence[Message],
    compacted: Sequence[Message],
    stash: Stash | None,
    inputs: Mapping[str, Mapping[Path, str]] = NO_INPUTS,
) -> list[Violation]:
    """`verify_stashed` over parsed messages; with ``stash`` None each note's digits are checked alone.

    ``inputs`` are the strings of inputs that became notes, which another check answers for.
    """
    found = untouched_violations(original, compacted, inputs)
    if found:
        return found
    named: list[tuple[Change, str, bytes]] = []
    for change in changed_results(original, compacted):
        note = find_note(change.after.text)
        if note is None or note.kind != "stash" or note.target is None:
            continue
        content = bytes_of_text(change.before.text)
        sha256 = hashlib.sha256(content).hexdigest()
        if not sha256.startswith(note.target):
            found.append(Violation(change.id, "its note names other bytes than the ones that went"))
        elif change.after.text != note.text:
            found.append(Violation(change.id, "something stands behind its note"))
        elif not all(token in change.before.text for token in note.excerpt):
            found.append(Violation(change.id, "its excerpt holds what the output did not"))
        elif note.line_count not in (None, count_lines(change.before.text)):
            found.append(Violation(change.id, "its note gives another number of lines"))
        elif len(change.after.text) >= len(change.before.text):
            found.append(Violation(change.id, "its note is not shorter than what went"))
        else:
            named.append((change, sha256, content))
    if stash is not None and named:
        found += _unfollowed(named, stash)
    return found


def _unfollowed(named: Sequence[tuple[Change, str, bytes]], stash: Stash) -> list[Violation]:
    """The notes for which the stash does not give the bytes that went."""
    try:
        given = stash.get_many(sha256 for _, sha256, _ in named)
    except OSError as error:
        return [Violation(change.id, f"the stash cannot be read: {error}") for change, *_ in named]
    found = []
    for change, sha256, content in named:
        outcome = given[sha256]
        if isinstance(outcome, StashError):
            found.append(Violation(change.id, f"its note cannot be followed: {outcome}"))
        elif outcome != content:
            found.append(Violation(change.id, "the stash gives other bytes than the ones that went"))
    return found


def _decision(item: ToStash, size: int, sha256: str, note: str, outcome: Stored | OSError | None) -> Decision:
    if isinstance(outcome, OSError):
        name = errno.errorcode.get(outcome.errno or 0, type(outcome).__name__)
        return Keep(STASH_WRITE_FAILED(name))
    line = note.partition("\n")[0]
    return Pointer(InStash(sha256, item.tokens, size), STASHED(item.reason), line, note)
