"""The ladder's rung behind the results: long strings in the inputs of old calls become notes, each with its proof.

What a `Write` wrote and the file still holds is pointed at there; everything else is in the stash, durable and read
back equal, before its note is in any decision. The call, its other fields, their order and their types stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

from lcc.contract.decision import FileOnDisk, InputNote, InStash
from lcc.contract.notes import reread_note, stash_note
from lcc.contract.reasons import Reason
from lcc.relevance.evidence.disk import read_file
from lcc.relevance.need.inputs import InputString, old_inputs
from lcc.relevance.reading.calls import cwd_of, full_path, kind_of, named_path
from lcc.relevance.verification import Violation
from lcc.stash import Stash, StashError, Stored, bytes_of_text
from lcc.transcript import Pair, Path, value_in

LEAST_SAVED = 200
"""Characters that a note in an input must save."""


def input_notes(
    pairs: Sequence[Pair],
    kept: Collection[str],
    message_count: int,
    count_tokens: Callable[[str], int],
    stash: Stash | None,
    *,
    folders: tuple[str | None, str | None] | None,
    to_free: int | None = None,
) -> dict[str, tuple[InputNote, ...]]:
    """The notes for the strings that go, by call id; the oldest first, until ``to_free`` characters are freed.

    ``kept`` are the calls that a guard or a failure keeps. ``folders`` are the session's and the workspace's, where the
    disk is asked. With ``stash`` None nothing is written, and the notes are the same as if every write succeeded.
    """
    chosen: list[InputString] = []
    freed = 0
    for item in old_inputs(pairs, kept, message_count):
        if to_free is not None and freed >= to_free:
            break
        chosen.append(item)
        freed += len(item.text) - LEAST_SAVED // 4
    on_disk = {index: note for index, item in enumerate(chosen) if folders and (note := _on_disk(item, folders))}
    rest = [(index, item) for index, item in enumerate(chosen) if index not in on_disk]
    notes = on_disk | _stashed(rest, count_tokens, stash)
    found: dict[str, list[InputNote]] = {}
    for index, item in enumerate(chosen):
        note = notes.get(index)
        if note is not None and len(item.text) - len(note.note) >= LEAST_SAVED:
            found.setdefault(item.pair.use.id, []).append(note)
    return {call_id: tuple(of_call) for call_id, of_call in found.items()}


def input_changes(notes: Mapping[str, Sequence[InputNote]]) -> dict[str, dict[Path, str]]:
    """The notes as edits of the transcript."""
    return {call_id: {note.path: note.note for note in of_call} for call_id, of_call in notes.items()}


def input_violations(
    pairs: Sequence[Pair], notes: Mapping[str, Sequence[InputNote]], stash: Stash | None
) -> list[Violation]:
    """The calls with a note that does not stand for exactly the string that went.

    Files are not read here: they are hashed once more right before the answer is given.
    """
    uses = {pair.use.id: pair.use for pair in pairs}
    found: list[Violation] = []
    named: list[tuple[str, str, bytes]] = []
    for call_id, of_call in notes.items():
        for note in of_call:
            value = value_in(uses[call_id].input, note.path)
            content = bytes_of_text(value) if isinstance(value, str) else b""
            if not isinstance(value, str) or hashlib.sha256(content).hexdigest() != note.sha256:
                found.append(Violation(call_id, "a note in its input stands for another string"))
            elif isinstance(note.proof, InStash):
                named.append((call_id, note.sha256, content))
    if stash is not None and named:
        given = stash.get_many(sha256 for _, sha256, _ in named)
        for call_id, sha256, content in named:
            outcome = given[sha256]
            if isinstance(outcome, StashError) or outcome != content:
                found.append(Violation(call_id, "a note in its input cannot be followed"))
    return found


def _on_disk(item: InputString, folders: tuple[str | None, str | None]) -> InputNote | None:
    """The note for what a `Write` wrote, where the file holds exactly that."""
    use = item.pair.use
    path = named_path(use)
    if kind_of(use.tool) != "write" or path is None or item.path != ("content",):
        return None
    cwd = cwd_of(use)
    named = full_path(path, cwd, *folders)
    file = read_file(named)
    note = reread_note(path, None, verified=True)
    content = bytes_of_text(item.text)
    if note is None or isinstance(file, Reason) or file.data != content:
        return None
    sha256 = file.sha256()
    return InputNote(item.path, note, FileOnDisk(path, cwd, None, named, file.real, sha256), sha256, len(item.text))


def _stashed(
    items: Sequence[tuple[int, InputString]], count_tokens: Callable[[str], int], stash: Stash | None
) -> dict[int, InputNote]:
    contents = [bytes_of_text(item.text) for _, item in items]
    outcomes: Sequence[Stored | OSError | None] = [None] * len(items)
    if stash is not None:
        outcomes = stash.put_many(contents)
    notes: dict[int, InputNote] = {}
    for (index, item), content, outcome in zip(items, contents, outcomes, strict=True):
        if isinstance(outcome, OSError):
            continue
        sha256, tokens = hashlib.sha256(content).hexdigest(), count_tokens(item.text)
        proof = InStash(sha256, tokens, len(content))
        notes[index] = InputNote(item.path, stash_note(tokens, sha256), proof, sha256, len(item.text))
    return notes
