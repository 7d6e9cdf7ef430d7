"""What no rule may take away: the latest error and the call before it, and what the user has just named.

Both rooms of rules use these (the seed's section 5, `recoverable` and `lossy`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lcc.relevance.reading.calls import FileRead, file_reads, kind_of, named_path
from lcc.relevance.reading.headers import exit_code
from lcc.transcript import Message, Pair, ToolUse

# Searched for one by one before the expression: a plain search is many times faster.
_ERROR_SIGNS = ("Traceback (most", "Error", "ERROR", "FAIL", "xit code ", "Exception", "fatal: ")
_ERROR = re.compile(
    r"Traceback \(most recent call last\)|\b(?:\w*Error|ERROR|FAIL(?:ED)?|\w*Exception)\b"
    r"|\b[Ee]xit code [1-9]|^fatal: ",
    re.MULTILINE,
)
_TOOL_ERROR = "<tool_use_error>"
_NAMED = re.compile(r"[^\s\"'`<>()\[\]{},;|*?!]+")
_TRAILING = ".:"
_LONGEST_NAMED_TEXT = 200_000  # characters of one message in which names are looked for


def errors_among(pairs: Sequence[Pair], reads: Mapping[str, FileRead] | None = None) -> frozenset[str]:
    """The ids of the calls that failed; ``reads`` are those that read a file, where the caller has them.

    When any result carries the host's error flag, the flags alone decide. Otherwise command output that
    shows an error counts, and never what a read or a search printed, for source code is full of such words.
    """
    flagged = frozenset(pair.use.id for pair in pairs if pair.result.is_error)
    if flagged or (pairs and all(pair.result.is_error is not None for pair in pairs)):
        return flagged
    if reads is None:
        reads = file_reads(pairs)
    return frozenset(pair.use.id for pair in pairs if _looks_failed(pair, reads))


def _looks_failed(pair: Pair, reads: Mapping[str, FileRead]) -> bool:
    text = pair.result.text
    if text.startswith(_TOOL_ERROR):
        return True
    if kind_of(pair.use.tool) not in ("command", "poll"):
        return False
    code = exit_code(pair.use.tool, text)
    if code is not None:
        return code != 0
    return pair.use.id not in reads and shows_error(text)


def shows_error(text: str) -> bool:
    """Whether an output has the look of an error in it."""
    return any(sign in text for sign in _ERROR_SIGNS) and _ERROR.search(text) is not None


class LatestError(NamedTuple):
    """The ids of the latest failed call and of the call before it; None where there is none."""

    error: str | None
    before: str | None


def latest_error(pairs: Sequence[Pair], errors: frozenset[str]) -> LatestError:
    """The latest failed call of the session and the call just before it."""
    for index in range(len(pairs) - 1, -1, -1):
        if pairs[index].use.id in errors:
            return LatestError(pairs[index].use.id, pairs[index - 1].use.id if index else None)
    return LatestError(None, None)


class Names:
    """The paths, file names, URLs and call ids that some texts name."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [text[:_LONGEST_NAMED_TEXT] for text in texts]
        words: set[str] = set()
        for text in self._texts:
            words.update(word.rstrip(_TRAILING) for word in _NAMED.findall(text))
        self._words = frozenset(word.removeprefix("./").removeprefix("@").partition(":")[0] for word in words)
        self._urls = frozenset(word for word in words if "://" in word)

    def __bool__(self) -> bool:
        return bool(self._words)

    def name_path(self, path: str) -> bool:
        """Whether the texts name ``path``: as it stands, by its last parts, or by its file name."""
        if not self._words:
            return False
        rest = path.removeprefix("./").rstrip("/")
        if rest in self._words:
            return True
        if not _NAMED.fullmatch(rest):  # a path with a blank or a bracket in it is no single word of a text
            name = rest.rpartition("/")[2]
            return bool(name) and any(name in text for text in self._texts)
        parts = rest.split("/")
        return any("/".join(parts[start:]) in self._words for start in range(max(0, len(parts) - 12), len(parts)))

    def name_call(self, use: ToolUse, read: FileRead | None) -> bool:
        """Whether the texts name the call: its id, or the URL or the file (``read``) that it is about."""
        if not self._words:
            return False
        if use.id in self._words:
            return True
        path = read.path if read else named_path(use)
        if path and self.name_path(path):
            return True
        url = use.input.get("url") if isinstance(use.input, dict) else None
        return isinstance(url, str) and url in self._urls

    def name_any(self, strings: Iterable[str]) -> bool:
        """Whether any path or file name in ``strings`` (a command, a pattern) is one that the texts name."""
        if not self._words:
            return False
        return any(
            ("." in word or "/" in word) and self.name_path(word.rstrip(_TRAILING))
            for text in strings
            for word in _NAMED.findall(text[:_LONGEST_NAMED_TEXT])
        )


def goal_text(question: str, messages: Sequence[Message]) -> str:
    """What the session is about: the caller's question, else the first thing that the user wrote."""
    if question.strip():
        return question
    return next((message.text for message in messages if message.role == "user" and message.text), "")


def recent_user_texts(messages: Sequence[Message], preserve_recent: int) -> list[str]:
    """What the user wrote in the pinned recent messages, and the newest thing they wrote wherever it stands."""
    recent = messages[len(messages) - preserve_recent :] if preserve_recent else ()
    texts = [message.text for message in recent if message.role == "user" and message.text]
    if not texts:
        newest = next((m.text for m in reversed(messages) if m.role == "user" and m.text), None)
        texts = [newest] if newest is not None else []
    return texts
