"""`lossless`: an output that a later, kept result repeats becomes a pointer to it (the seed's section 5).

The pass walks the results from the newest to the oldest, so that every pointer's target is already known
to be kept. Line ranges are found through an index of anchor lines: each result names its longest lines, and
each kept result is looked through once for lines that some result has named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from lcc.contract.decision import Keep, KeptLater, Pointer
from lcc.contract.notes import Note, find_note, identical_note, lines_note
from lcc.contract.reasons import IDENTICAL_OUTPUT_KEPT_LATER, NO_LOSSLESS_SUPERSEDER, OUTPUT_LINES_OF_LATER, Reason
from lcc.relevance.reading.headers import comparable, header_length, is_only_header
from lcc.relevance.verification import Change, Violation, changed_results, untouched_violations
from lcc.transcript import Json, Message, parse_payload

SHORTEST_NOTE = 30  # characters; no dedupe note is shorter, so a shorter result is never worth one
_LINES_LOOKED_AT = 64  # anchors are taken from a result's first so many lines
_FEW_LINES = 4  # so many are each looked up in an output, which is faster than to walk over all of its lines
_PLACES_PER_ANCHOR = 32  # places remembered for one anchor line: keeps the search linear for any input

NO_SUPERSEDER = Keep(NO_LOSSLESS_SUPERSEDER)


class Output(NamedTuple):
    """A text of a result as this pass sees it; ``id`` is its text id."""

    id: str
    tool: str
    text: str
    is_error: bool


class _Anchor(NamedTuple):
    line: str
    number: int
    """The line's 0-based number in the result."""
    offset: int
    """Where the line begins in the result's text."""


class _Place(NamedTuple):
    output: Output
    line: int
    offset: int


class LaterOutputs:
    """The results kept so far, walking backwards, and the search for an earlier result among them."""

    def __init__(self, candidates: Iterable[Output]) -> None:
        """``candidates`` are the results that may become pointers; each is asked about once, by `find`."""
        self._anchors: dict[str, tuple[_Anchor, ...]] = {}
        self._wanted: dict[str, int] = {}
        self._places: dict[str, list[_Place]] = {}
        self._same: dict[tuple[bool, str], Output] = {}
        for output in candidates:
            if len(output.text) > SHORTEST_NOTE:
                anchors = self._anchors.get(output.text)
                if anchors is None:
                    anchors = self._anchors[output.text] = _anchors_of(output.text)
                for anchor in anchors:
                    self._wanted[anchor.line] = self._wanted.get(anchor.line, 0) + 1

    def keep(self, output: Output) -> None:
        """Take ``output`` as kept unchanged: earlier results may point at it from now on."""
        if len(output.text) <= SHORTEST_NOTE:
            return
        self._same[output.is_error, comparable(output.tool, output.text)] = output
        lines = output.text.split("\n")
        named = self._wanted.keys() & lines if len(lines) > 1 else ()
        if named:
            self._remember(output, lines, named)

    def find(self, output: Output) -> Pointer | None:
        """The pointer that stands for ``output``, or None when no kept later result repeats it."""
        if len(output.text) <= SHORTEST_NOTE:
            return None
        found = self._find(output)
        for anchor in self._anchors[output.text]:
            left = self._wanted[anchor.line] - 1
            if left:
                self._wanted[anchor.line] = left
            else:  # no earlier result asks for this line any more
                del self._wanted[anchor.line]
                self._places.pop(anchor.line, None)
        return found

    def _find(self, output: Output) -> Pointer | None:
        if is_only_header(output.tool, output.text):  # an empty output says nothing
            return None
        same = self._same.get((output.is_error, comparable(output.tool, output.text)))
        # A header of one tool is words of another's output: then the two differ in more than their headers.
        if same is not None and _body(same) == _body(output):
            return _dedupe(output, same.id, identical_note(same.id), IDENTICAL_OUTPUT_KEPT_LATER)
        for place, first in self._candidates(output):
            note = lines_note(first, first + output.text.count("\n"), place.output.id)
            decision = _dedupe(output, place.output.id, note, OUTPUT_LINES_OF_LATER)
            if decision:
                return decision
        return None

    def _remember(self, output: Output, lines: list[str], named: AbstractSet[str]) -> None:
        if len(named) <= _FEW_LINES and all(lines.count(line) == 1 for line in named):
            for line in named:
                place = _anchor(lines, line)
                places = self._places.setdefault(line, [])
                if len(places) < _PLACES_PER_ANCHOR:
                    places.append(_Place(output, place.number, place.offset))
            return
        offset = 0
        for number, line in enumerate(lines):
            if line in named:
                places = self._places.setdefault(line, [])
                if len(places) < _PLACES_PER_ANCHOR:
                    places.append(_Place(output, number, offset))
            offset += len(line) + 1

    def _candidates(self, output: Output) -> Iterable[tuple[_Place, int]]:
        """Kept results that hold ``output`` as whole lines, each with the 1-based number of the first."""
        places: list[_Place] = []
        rarest: _Anchor | None = None
        for anchor in self._anchors[output.text]:
            found = self._places.get(anchor.line)
            if found is None:  # no kept result has this line
                return
            if rarest is None or len(found) < len(places):
                rarest, places = anchor, found
        if rarest is None:
            return
        for place in places:
            start = place.offset - rarest.offset
            end = start + len(output.text)
            text = place.output.text
            if (
                place.output.is_error == output.is_error
                and start >= 0
                and (start == 0 or text[start - 1] == "\n")
                and (end == len(text) or text[end : end + 1] == "\n")
                and text.startswith(output.text, start)
            ):
                yield place, place.line - rarest.number + 1


def verify_lossless(original: Json, compacted: Json) -> list[Violation]:
    """Whether every note of ``compacted`` holds: its claim is checked from the two payloads alone.

    Both are the seed's payload (a messages array or ``{"messages": [...]}``). Returns what is wrong, [] when
    nothing is. Raises ``TranscriptError`` for a payload that cannot be read.
    """
    return lossless_violations(parse_payload(original).messages, parse_payload(compacted).messages)


def lossless_violations(original: Sequence[Message], compacted: Sequence[Message]) -> list[Violation]:
    """`verify_lossless` over parsed messages."""
    found = untouched_violations(original, compacted)
    if found:
        return found
    changes = list(changed_results(original, compacted))
    dedupes: list[tuple[Change, Note]] = []
    for change in changes:
        note = dedupe_note(change)
        if note is not None:
            dedupes.append((change, note))
        else:
            found.append(Violation(change.id, "its note is none of the lossless notes"))
    return found + dedupe_violations(original, dedupes, changes)


def dedupe_note(change: Change) -> Note | None:
    """The pointer to another result that the new text is, or None when it is none."""
    note = find_note(change.after.text)
    return note if note is not None and note.kind in ("identical", "lines") and note.text == change.after.text else None


def dedupe_violations(
    original: Sequence[Message], dedupes: Sequence[tuple[Change, Note]], changes: Sequence[Change]
) -> list[Violation]:
    """Which of ``dedupes`` point at something else than what they claim; ``changes`` are all changed results."""
    changed = {change.id for change in changes}
    named = {note.target for _, note in dedupes}
    targets: dict[str, tuple[Output, int]] = {}
    repeated: set[str] = set()
    tools = {use.id: use.tool for message in original for use in message.tool_uses}
    position = 0
    for whole in (result for message in original for result in message.tool_results):
        ids = whole.text_ids()
        for offset, text_id in enumerate(ids):
            if text_id in named:
                if text_id in targets:
                    repeated.add(text_id)
                tool, text = tools.get(whole.tool_use_id, ""), whole.texts()[offset][2].text
                targets[text_id] = (Output(text_id, tool, text, bool(whole.is_error)), position + offset)
        position += len(ids)
    split: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    for change, note in sorted(dedupes, key=lambda dedupe: dedupe[1].target or ""):
        if note.target not in split:
            split.clear()  # the lines of one target at a time: those of all of them would be many times the text
        problem = _claim_problem(change, note, targets, changed, repeated, split)
        if problem:
            problems[change.id] = problem
    found = (change.id for change, _ in dedupes)
    return [Violation(text_id, problems[text_id]) for text_id in found if text_id in problems]


def _claim_problem(
    change: Change,
    note: Note,
    targets: dict[str, tuple[Output, int]],
    changed: set[str],
    repeated: set[str],
    split: dict[str, list[str]],
) -> str | None:
    target_id = note.target
    if target_id is None or target_id not in targets or target_id in repeated:
        return f"its note points at {target_id!r}, which is no single result"
    target, position = targets[target_id]
    if position <= change.position:
        return f"its note points at {target_id!r}, which does not come later"
    if target_id in changed:
        return f"its note points at {target_id!r}, which is replaced itself"
    if target.is_error != bool(change.before.is_error):
        return f"its note points at {target_id!r}, whose error flag differs"
    if note.lines is None:
        same = comparable(change.tool, change.before.text) == comparable(target.tool, target.text)
        return None if same else f"its note says that {target_id!r} is identical, and it is not"
    first, last = note.lines
    lines = split.get(target_id)
    if lines is None:
        lines = split[target_id] = target.text.split("\n")
    if last > len(lines) or "\n".join(lines[first - 1 : last]) != change.before.text:
        return f"its note says that it is lines {first}-{last} of {target_id!r}, and it is not"
    return None


def _body(output: Output) -> str:
    return output.text[header_length(output.tool, output.text) :]


def _dedupe(output: Output, kept_at: str, note: str | None, reason: Reason) -> Pointer | None:
    if note is None or len(note) >= len(output.text):
        return None
    return Pointer(KeptLater(kept_at), reason, note, note)


def _anchors_of(text: str) -> tuple[_Anchor, ...]:
    """The one or two longest lines among the first lines of ``text``: rare lines, that is, in most outputs."""
    lines = text.split("\n", _LINES_LOOKED_AT)[:_LINES_LOOKED_AT]
    lengths = list(map(len, lines))
    left = lengths.copy()
    found: list[_Anchor] = []
    for _ in lines:
        index = left.index(max(left))
        left[index] = -1
        if not found or lines[index] != found[0].line:
            found.append(_Anchor(lines[index], index, sum(lengths[:index]) + index))
            if len(found) == 2:
                break
    return tuple(found)


def _anchor(lines: list[str], line: str) -> _Anchor:
    index = lines.index(line)
    return _Anchor(line, index, sum(map(len, lines[:index])) + index)
