"""Notes that lead out of the conversation: their target stands in the file, and the model is not sent it any more.

A rewind behind the target does that, and a client's compaction that keeps the note and not the target. The file
still has the text, so it is put back in the note's place, and the pass decides about it as about any other output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lcc.contract.notes import Note, find_note
from lcc.relevance.reading.calls import writes_codex_header
from lcc.transcript import Pair, Transcript


@dataclass(frozen=True, slots=True)
class Followed:
    """A transcript in which no note leads out of the conversation, as far as the file has what it stood for."""

    transcript: Transcript
    texts: Mapping[str, str] = field(default_factory=dict)
    """The texts that were put back, by text id."""
    warnings: tuple[str, ...] = ()


def with_stranded_notes_followed(transcript: Transcript) -> Followed:
    """Follow the notes of the conversation whose target is not in it; each is told as a warning."""
    notes = dict(_notes_of_results(transcript))
    sent = _texts(transcript.pairs()) if notes else {}
    stranded = {text_id: note for text_id, note in notes.items() if text_id in sent and note.target not in sent}
    if not stranded:
        return Followed(transcript)
    aside = _texts(transcript.aside_pairs())
    texts: dict[str, str] = {}
    warnings: list[str] = []
    for text_id, note in stranded.items():
        target = aside.get(note.target or "")
        text = None if target is None else _text(sent[text_id], note, target)
        where = "the file has no such call" if target is None else "the conversation does not reach that call any more"
        if text is None or sent[text_id].result.text_path is None:
            warnings.append(f"{text_id}: its note names {note.target}, and {where}: the note leads nowhere")
        else:
            texts[text_id] = text
            warnings.append(f"{text_id}: its note names {note.target}, and {where}: the text was put back")
    messages = tuple(
        message._replace(tool_results=tuple(result.with_texts(texts) for result in message.tool_results))
        if any(text_id in texts for result in message.tool_results for text_id, _, _ in result.texts())
        else message
        for message in transcript.messages
    )
    return Followed(replace(transcript, messages=messages), texts, tuple(warnings))


def _notes_of_results(transcript: Transcript) -> Iterator[tuple[str, Note]]:
    """The notes that name another result, by the text id of the result that each stands in."""
    for message in transcript.messages:
        for result in message.tool_results:
            for text_id, _, part in result.texts():
                note = find_note(part.text)
                if note is not None and note.kind in ("identical", "lines"):
                    yield text_id, note


def _texts(pairs: Iterable[Pair]) -> dict[str, Pair]:
    return {text.text_id: text for pair in pairs for text in pair.texts()}


def _text(pair: Pair, note: Note, target: Pair) -> str | None:
    """What the note stood for; None where the target does not give all of it."""
    text = target.result.text
    if find_note(text) is not None:
        return None
    if note.kind == "identical":
        # The lines ahead of a Codex output are its own, and no note has them.
        if writes_codex_header(pair.use.tool) or writes_codex_header(target.use.tool):
            return None
        return text
    first, last = note.lines or (1, 0)
    lines = text.split("\n")
    return "\n".join(lines[first - 1 : last]) if first <= last <= len(lines) else None
