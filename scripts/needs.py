"""What an agent really needed again from earlier outputs, found in what it did next.

Three kinds, each traced to the newest earlier result that held it: a file range that was read again unchanged,
text that an edit had to quote exactly, and a value (a path, an identifier, a number) that a call's input took
from an output. What the agent had meanwhile seen or written again elsewhere is not needed from the old result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Kind = Literal["read again", "quoted in an edit", "value used"]

READS = frozenset({"Read", "view", "read_file"})
EDITS = frozenset({"Edit", "MultiEdit"})
_WORD = re.compile(r"[A-Za-z0-9_./-]{8,}")
_ROW = re.compile(r"^\s*(\d+)(?:\t|→)", re.MULTILINE)
_PATH_KEYS = ("file_path", "path", "notebook_path")
SHORTEST_QUOTE = 12


class Need(NamedTuple):
    """Something needed again: how many calls after the cut (from 1), from which result, and the exact text of
    it (None: the whole result)."""

    calls: int
    kind: Kind
    source: str
    piece: str | None


@dataclass
class _Seen:
    """What the conversation held up to the cut."""

    order: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    reads: list[tuple[str, str, range]] = field(default_factory=list)
    """Path, call id and line numbers of each successful read."""
    word_source: dict[str, str] = field(default_factory=dict)
    """For each word, the newest result that holds it."""
    said: set[str] = field(default_factory=set)
    """Words of texts and inputs: known without any result."""
    written: dict[str, int] = field(default_factory=dict)
    """For each line the agent wrote into a file, when it last did."""
    edited: dict[str, int] = field(default_factory=dict)
    """For each path, when it was last written."""


def distinctive(word: str) -> bool:
    """Whether a word is a value and not a word of the language."""
    return any(mark in word for mark in "_/.0123456789") or not (word[1:].islower() or word.isupper())


def words_of(text: str) -> set[str]:
    """The words of a text that can be values."""
    return {word.strip("./-") for word in _WORD.findall(text) if distinctive(word)}


def strings(value: Any) -> Iterator[str]:
    """Every string in a call's input."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def path_of(use: dict[str, Any]) -> str | None:
    given = use["input"] if isinstance(use["input"], dict) else {}
    return next((given[key] for key in _PATH_KEYS if isinstance(given.get(key), str)), None)


def needs(before: list[dict[str, Any]], after: list[dict[str, Any]], within: int) -> list[Need]:
    """What the first ``within`` calls of ``after`` needed from results in ``before``."""
    seen = _take_in(before)
    later_words: set[str] = set()
    later_texts: list[str] = []
    edited_since: set[str] = set()
    read_since: set[str] = set()
    found: list[Need] = []
    calls = 0
    for message in after:
        for use in message.get("toolUses", []):
            calls += 1
            if calls > within:
                return found
            path = path_of(use)
            if use["tool"] in READS and path is not None and path not in edited_since | read_since:
                found += _read_again(seen, use, path, calls)
                read_since.add(path)
            if use["tool"] in EDITS:
                found += _quoted(seen, use, later_texts, calls)
                if path is not None:
                    edited_since.add(path)
            inputs = "\n".join(strings(use["input"]))
            found += _used(seen, inputs, later_words, calls)
            later_words |= words_of(inputs)
            later_texts.append(inputs)
        later_words |= words_of(message.get("text", ""))
        for result in message.get("toolResults", []):
            later_words |= words_of(result["text"])
            later_texts.append(result["text"])
    return found


def _take_in(messages: list[dict[str, Any]]) -> _Seen:
    seen = _Seen()
    uses: dict[str, dict[str, Any]] = {}
    for moment, message in enumerate(messages):
        seen.said |= words_of(message.get("text", ""))
        for use in message.get("toolUses", []):
            uses[use["tool_use_id"]] = use
            inputs = list(strings(use["input"]))
            seen.said |= words_of("\n".join(inputs))
            if use["tool"] in EDITS or use["tool"] == "Write":
                seen.written.update((line.strip(), moment) for text in inputs for line in text.split("\n"))
                seen.edited[path_of(use) or ""] = moment
        for result in message.get("toolResults", []):
            name, text = result["tool_use_id"], result["text"]
            seen.order[name], seen.texts[name] = moment, text
            seen.word_source.update((word, name) for word in words_of(text))
            use = uses.get(name)
            if use is not None and use["tool"] in READS and not result.get("is_error"):
                numbers = [int(number) for number in _ROW.findall(text)]
                if numbers and (path := path_of(use)) is not None:
                    seen.reads.append((path, name, range(numbers[0], numbers[-1] + 1)))
    return seen


def _read_again(seen: _Seen, use: dict[str, Any], path: str, calls: int) -> Iterator[Need]:
    """The newest read of the same lines, where nothing wrote the file since."""
    offset = use["input"].get("offset") or 1
    last = offset + (use["input"].get("limit") or 10**6)
    for read_path, name, lines in reversed(seen.reads):
        if read_path == path and lines.start < last and offset < lines.stop:
            if seen.edited.get(path, -1) < seen.order[name]:
                yield Need(calls, "read again", name, None)
            return


def _quoted(seen: _Seen, use: dict[str, Any], later: list[str], calls: int) -> Iterator[Need]:
    """For each text that an edit quotes, the newest result that shows its longest line."""
    given = use["input"]
    edits = given.get("edits") if isinstance(given.get("edits"), list) else [given]
    for edit in edits:
        old = edit.get("old_string") if isinstance(edit, dict) else None
        line = max(old.split("\n"), key=len).strip() if isinstance(old, str) else ""
        if len(line) < SHORTEST_QUOTE or any(line in text for text in later):
            continue
        source = max(
            (name for name, text in seen.texts.items() if line in text),
            key=seen.order.__getitem__,
            default=None,
        )
        if source is not None and seen.written.get(line, -1) < seen.order[source]:
            yield Need(calls, "quoted in an edit", source, line)


def _used(seen: _Seen, inputs: str, later: set[str], calls: int) -> Iterator[Need]:
    """For each value in a call's input that only a result had shown, that result."""
    for word in sorted(words_of(inputs) - seen.said - later):
        source = seen.word_source.get(word)
        if source is not None:
            yield Need(calls, "value used", source, word)
