"""What an agent really needed again from earlier outputs, found in what it did after a cut.

A call needs a piece of text that its input quotes or names: the longest line of what an edit quotes, and every
distinctive word (a path, an identifier, a value) by which it says what to work on. Words of what it writes into
files are told apart, as "written": many are the agent's own or any programmer's. A piece is told with all results
before the cut that hold it, so that any policy can be asked: are all of them gone, and does nothing that took
their place hold it?

No need: what texts, inputs or anything after the cut up to that call hold; a path known in another spelling
(its last two parts); a word that results of three or more projects hold; the session's own id.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lcc.transcript import Json

Kind = Literal["quoted in an edit", "path", "value", "written"]
Payload = list[dict[str, Json]]

EDITS = frozenset({"Edit", "MultiEdit", "NotebookEdit"})
_WORD = re.compile(r"[\w./-]{8,}")
_PATH = re.compile(r"[\w.@~-]*/[\w./@-]*\w")
_WRITTEN = frozenset({"content", "new_string", "old_string", "edits", "new_source", "input", "patch"})
"""Fields of an input that hold what goes into a file."""
_PATCH = "*** Begin Patch"
SHORTEST_QUOTE = 12
MANY_PROJECTS = 3


class Need(NamedTuple):
    """Something needed again, by which call after the cut, and every result before the cut that holds it."""

    calls: int
    """How many calls after the cut, from 1."""
    call: str
    """The id of the call that needed it."""
    kind: Kind
    piece: str
    sources: tuple[str, ...]
    """Ids of results, the newest first."""


def distinctive(word: str) -> bool:
    """Whether a word is a value and not a word of the language."""
    return any(mark in word for mark in "_/.0123456789") or not (word[1:].islower() or word.isupper())


def words_of(text: str) -> set[str]:
    """The words of a text that can be values; of a path also its last two parts, by which it is known."""
    found: set[str] = set()
    for word in _WORD.findall(text):
        stripped = word.strip("./-")
        if len(stripped) >= 8 and distinctive(stripped):
            found.add(stripped)
            if "/" in stripped:
                found.add(tail(stripped))
    return found


def tail(path: str) -> str:
    """The last two parts of a path."""
    return "/".join(path.rsplit("/", 2)[-2:])


def strings(value: Json) -> Iterator[str]:
    """Every string in a call's input."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


@dataclass
class _Context:
    """What the conversation held up to the cut."""

    texts: dict[str, str] = field(default_factory=dict)
    """Every result, oldest first."""
    holders: dict[str, list[str]] = field(default_factory=dict)
    """For each word, the results that hold it, the oldest first."""
    said: set[str] = field(default_factory=set)
    """Words of texts and inputs."""
    lines: set[str] = field(default_factory=set)
    """Lines of texts and inputs, without the blanks around them."""


def needs(before: Payload, after: Payload, common: Collection[str] = ()) -> list[Need]:
    """What the calls of ``after`` needed from results in ``before``; words in ``common`` are no evidence."""
    context = _take_in(before)
    later: set[str] = set(common)
    later_lines: set[str] = set()
    found: list[Need] = []
    calls = 0
    for message in after:
        for use in uses_of(message):
            calls += 1
            inputs = "\n".join(strings(use["input"]))
            if use["tool"] in EDITS:
                found += _quoted(context, use, later_lines, calls)
            found += _named(context, use, later, calls)
            later |= words_of(inputs)
            later_lines.update(line.strip() for line in inputs.split("\n"))
        texts = [str(message.get("text") or ""), *(text for _, text in results_of_message(message))]
        for text in texts:
            later |= words_of(text)
            later_lines.update(bare(line) for line in text.split("\n"))
    return found


def bare(line: str) -> str:
    """A line of an output without the number that a read puts before it, and without blanks around it."""
    return re.sub(r"^\s*\d+(?:\t|→)", "", line).strip()


def uses_of(message: dict[str, Json]) -> Iterator[dict[str, Json]]:
    """The calls of a message."""
    uses = message.get("toolUses")
    yield from (use for use in uses if isinstance(use, dict)) if isinstance(uses, list) else ()


def results_of_message(message: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """The id and the text of each result in a message."""
    results = message.get("toolResults")
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict):
            yield str(result["tool_use_id"]), str(result["text"])


def _take_in(messages: Payload) -> _Context:
    context = _Context()
    for message in messages:
        said = [str(message.get("text") or ""), *(text for use in uses_of(message) for text in strings(use["input"]))]
        for text in said:
            context.said |= words_of(text)
            context.lines.update(line.strip() for line in text.split("\n"))
        for name, text in results_of_message(message):
            context.texts[name] = text
            for word in words_of(text):
                context.holders.setdefault(word, []).append(name)
    return context


def _quoted(context: _Context, use: dict[str, Json], later: Collection[str], calls: int) -> Iterator[Need]:
    """For each text that an edit quotes, its longest line, where only results show it."""
    given = use["input"] if isinstance(use["input"], dict) else {}
    listed = given.get("edits")
    edits = listed if isinstance(listed, list) else [given]
    for edit in edits:
        old = edit.get("old_string") if isinstance(edit, dict) else None
        line = max(old.split("\n"), key=len).strip() if isinstance(old, str) else ""
        if len(line) < SHORTEST_QUOTE or line in later or line in context.lines:
            continue
        sources = [name for name, text in context.texts.items() if line in text]
        if sources:
            yield Need(calls, str(use["tool_use_id"]), "quoted in an edit", line, tuple(reversed(sources)))


def _named(context: _Context, use: dict[str, Json], later: Collection[str], calls: int) -> Iterator[Need]:
    """For each value in a call's input that only results had shown, those results."""
    addressed = words_of("\n".join(_addressed(use["input"])))
    for word in sorted(words_of("\n".join(strings(use["input"])))):
        known = tail(word) if "/" in word else word
        if known != word or word in context.said or word in later:
            continue  # a path counts by its last two parts
        holders = context.holders.get(word)
        if holders:
            kind: Kind = "written" if word not in addressed else "path" if "/" in word else "value"
            yield Need(calls, str(use["tool_use_id"]), kind, word, tuple(reversed(holders)))


def _addressed(value: Json) -> Iterator[str]:
    """The strings of an input that say what to work on: all but what goes into a file."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _WRITTEN:
                yield from (text for text in strings(inner) if _PATCH not in text)
    else:
        yield from (text for text in strings(value) if _PATCH not in text)


def common_words(texts_by_project: dict[str, list[str]]) -> set[str]:
    """The words that results of many projects hold: they tell nothing of where they were seen."""
    seen: dict[str, int] = {}
    for texts in texts_by_project.values():
        words: set[str] = set()
        for text in texts:
            words |= words_of(text)
        for word in words:
            seen[word] = seen.get(word, 0) + 1
    return {word for word, projects in seen.items() if projects >= MANY_PROJECTS}
