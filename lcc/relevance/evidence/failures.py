"""Which calls failed, which failures were overcome later, and which was the latest (the seed's section 5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from lcc.relevance.reading.calls import FileRead, command_of, kind_of, named_path
from lcc.relevance.reading.headers import exit_code
from lcc.relevance.reading.programs import prints_source
from lcc.transcript import Pair

_COUNTED = "|".join(
    rf"(?<={number} {word})"
    for word in ("error", "errors", "failed", "failing", "failure", "failures")
    for number in ("[1-9]", "[0-9]0")
)
# The words of errors: a sign, and an expression that begins with it and says what must stand around it. A plain search
# for the sign is many times faster, so an expression is asked only where its sign occurs.
_ERRORS = {
    sign: re.compile(re.escape(sign) + rest, re.MULTILINE)
    for sign, rest in {
        # Languages, compilers, linkers, package managers: ValueError, error: error[E0308]: error TS2304: 2 errors
        "rror": rf"(?:(?<=[Ee]rror)(?:\[\w+\]| [A-Z]+[0-9]+)?:(?! 0\b)|\b(?<=Error)|\b(?<=npm error|Bus error)"
        rf"|s?\b(?:{_COUNTED}))",
        "ERR": r"(?<!\wERR)(?:OR\b|_[A-Z_]{2}|!)",
        "Exception": r"\b",
        "Traceback (most recent call last)": "",
        "fatal: ": r"(?<=^fatal: )",
        "ndefined": r"(?<=\b[Uu]ndefined)(?: reference to\b|: [A-Za-z_])",
        "Caused by: ": "",
        "nhandled ": "(?:promise rejection|exception)",
        "terminate called": "",
        "build stopped:": "",
        "ORA-": "[0-9]{5}",
        # systems and networks
        "Abort": r"(?:ed\b| trap\b)",
        "ut of memory": r"\b",
        "EADDRINUSE": "",
        "ECONNRE": "(?:FUSED|SET)",
        "ENOENT": "",
        "ETIMEDOUT": "",
        "onnection refused": "",
        "ailed to ": r"(?<=\b[Ff]ailed to )",
        "panic": r"(?:ked at\b|: )",
        # test runners
        "FAIL": r"(?<!\wFAIL)(?:ED|URES?)?\b",
        "fail": rf"(?:ed|ing|ures?)\b(?:{_COUNTED})",
        # the shell, and what it starts
        "xit ": r"(?:code|status):? [1-9]",
        "xited with ": "(?:code|status) [1-9]",
        "is not recognized as ": "",
        "! [": r"(?:remote )?rejected\]",
        "not ": r"(?:found\b|permitted\b|ok [0-9])",
        "No such file or directory": "",
        "ermission denied": "",
        "egmentation fault": "",
        "core dumped": "",
        "Killed": "$",
    }.items()
}
# What a program that prints files says in its own voice.
_OWN_VOICE = re.compile(
    r"^(?:fatal: |(?:/\S*/)?(?:[bd]a|z)?sh: |(?:cat|head|tail|sed|nl|ls|find|wc|tree|[ef]?grep|rg|ag|less): )",
    re.MULTILINE,
)
_TOOL_ERROR = "<tool_use_error>"
_NO_FILE = re.compile(
    r"<tool_use_error>|(?:Error\b|ERROR\b|File does not exist|No such file|Permission denied|Permission to use "
    r"|E(?:NOENT|ISDIR|ACCES|PERM)\b|File content \(|The user doesn't want to )"
)
_REMEMBERED_CALLS = 60


class LatestError(NamedTuple):
    """The ids of the latest failed call and of the call before it; None where there is none."""

    error: str | None
    before: str | None


def errors_among(pairs: Sequence[Pair], reads: Mapping[str, FileRead]) -> frozenset[str]:
    """The ids of the calls that failed; ``reads`` are those that read a file.

    When any result carries the host's error flag, the flags alone decide. Otherwise command output that
    shows an error counts, and never what a read or a search printed, for source code is full of such words.
    """
    flagged = frozenset(pair.use.id for pair in pairs if pair.result.is_error)
    if flagged or (pairs and all(pair.result.is_error is not None for pair in pairs)):
        return flagged
    shown: dict[str, bool] = {}  # sessions print the same again and again
    return frozenset(pair.use.id for pair in pairs if _looks_failed(pair, reads, shown))


def latest_error(pairs: Sequence[Pair], errors: Collection[str]) -> LatestError:
    """The latest failed call of the session and the call just before it."""
    for index in range(len(pairs) - 1, -1, -1):
        if pairs[index].use.id in errors:
            return LatestError(pairs[index].use.id, pairs[index - 1].use.id if index else None)
    return LatestError(None, None)


def recent_failures(pairs: Sequence[Pair], errors: Collection[str]) -> set[str]:
    """Those of ``errors`` among the newest 60 calls: what went wrong longer ago is as likely needed as any result."""
    return {pair.use.id for pair in pairs[-_REMEMBERED_CALLS:] if pair.use.id in errors}


def overcome(pairs: Sequence[Pair], errors: Collection[str]) -> set[str]:
    """Those of ``errors`` that a later call of the same tool, on the same command or path, did not repeat."""
    succeeded: set[tuple[str, str]] = set()
    found: set[str] = set()
    if not errors:
        return found
    for pair in reversed(pairs):
        about = command_of(pair.use) or named_path(pair.use)
        if about is None:
            continue
        key = (pair.use.tool, about)
        if pair.use.id not in errors:
            succeeded.add(key)
        elif key in succeeded:
            found.add(pair.use.id)
    return found


def shows_error(text: str) -> bool:
    """Whether an output has the look of an error in it: of a compiler, a shell, a test runner, a stack trace."""
    signs = [sign for sign in _ERRORS if sign in text]
    return any(_ERRORS[sign].search(text) for sign in signs)


def is_no_file(text: str) -> bool:
    """Whether a read's or a write's result says that it failed, flag or no flag."""
    return _NO_FILE.match(text) is not None


def _looks_failed(pair: Pair, reads: Mapping[str, FileRead], shown: dict[str, bool]) -> bool:
    text = pair.result.text
    if text.startswith(_TOOL_ERROR):
        return True
    if kind_of(pair.use.tool) not in ("command", "poll"):
        return False
    code = exit_code(pair.use.tool, text)
    if code is not None:
        return code != 0
    shows = shown.get(text)
    if shows is None:
        shows = shown[text] = shows_error(text)
    if not shows:
        return False
    command = command_of(pair.use)
    if pair.use.id in reads or (command is not None and prints_source(command)):
        return _OWN_VOICE.search(text) is not None
    return True
