"""Looks at a session, once from its newest result to its oldest, and scores every result that may go.

Time is linear in the session's text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from lcc.relevance.evidence.said import is_the_users
from lcc.relevance.need.excerpt import excerpt_of, names_among
from lcc.relevance.need.points import KINDS, POINTS, Feature, Need
from lcc.relevance.need.words import is_telling, words_of
from lcc.relevance.reading.calls import FileRead, command_of, input_strings, kind_of
from lcc.transcript import Message, Pair

LATELY = 10
"""The newest messages whose words tell what the session works with."""
_MANY_EDITS, _OF_CALLS = 5, 10
_SHORTEST_NAME = 4
_NEW_WORDS: tuple[tuple[int, Feature], ...] = ((1, "new_1"), (4, "new_4"), (16, "new_16"))
_FIRST_PROGRAM = re.compile(
    r"(?:cd[ \t]+\S+[ \t]*(?:&&|;)[ \t]*|\w+=\S*[ \t]+|(?:timeout|time|nice|sudo)[ \t]+(?:\d\S*[ \t]+)?)*"
    r"([\w./-]+)(?:[ \t]+([\w./:-]+))?(?:[ \t]+([\w./:-]+))?"
)
_LISTS = frozenset("ls find tree rg grep egrep fd ag du".split())
_READS = frozenset("cat sed head tail nl less bat".split())
_TESTS = frozenset(
    "pytest tox nox jest vitest mocha make cmake ninja mvn gradle gradlew tsc eslint ruff mypy flake8 black prettier "
    "rspec phpunit ctest xcodebuild swift dotnet bazel pre-commit".split()
)
_TEST_WORDS = frozenset("test tests build check lint run clippy vet typecheck t pytest unittest install ci".split())
_RUNNERS = frozenset("npm yarn pnpm bun cargo go uv poetry python python3 npx deno rake bundle".split())


def needs_of(
    messages: Sequence[Message],
    pairs: Sequence[Pair],
    candidates: Collection[str],
    pinned: Collection[str],
    reads: Mapping[str, FileRead],
    failed: Collection[str],
) -> dict[str, Need]:
    """How likely each of ``candidates`` (text ids) is needed again.

    ``pairs`` are all texts of results in call order, each as a pair, ``pinned`` those that stay whatever is decided,
    ``reads`` those that read a single file, ``failed`` those that failed.
    """
    position = {pair.text_id: index for index, pair in enumerate(pairs)}
    turns = [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and not message.by_client and is_the_users(message.text)
    ]
    latest_read = {reads[pair.use.id].path: index for index, pair in enumerate(pairs) if pair.use.id in reads}
    edit_rhythm = _edit_rhythm(pairs)
    used = _used_lately(messages)
    named = _named_lately(messages)
    known = _said(messages)
    for pair in pairs:
        if pair.use.id in pinned or pair.text_id in pinned:
            known |= words_of(pair.result.text)
    names = set(names_among(known))
    found: dict[str, Need] = {}
    for pair in sorted(pairs, key=lambda pair: pair.result_message, reverse=True):
        call_id, text_id = pair.use.id, pair.text_id
        if call_id in pinned or text_id in pinned:
            continue
        words = words_of(pair.result.text)
        new = words - known
        known |= new
        new_names = set(names_among(new)) - names
        if text_id not in candidates:
            names |= new_names
            continue
        features = _of_call(pair, reads.get(call_id), call_id in failed)
        features |= _of_age(len(pairs) - 1 - position[text_id], len(turns) - bisect_right(turns, pair.result_message))
        telling = sum(1 for _ in islice(filter(is_telling, new), _NEW_WORDS[-1][0]))
        features.update(feature for least, feature in _NEW_WORDS if telling >= least)
        if any(used[word] > pair.result_message for word in used.keys() & words):
            features.add("used_lately")
        read = reads.get(call_id)
        if read is not None:
            if latest_read[read.path] > position[text_id]:
                features.add("read_again")
            if edit_rhythm:
                features.add("edit_rhythm")
            name = read.path.rstrip("/").rpartition("/")[2]
            if (
                len(name) >= _SHORTEST_NAME
                and named.get(name.encode("utf-8", "surrogatepass"), -1) > pair.result_message
            ):
                features.add("named_lately")
        found[text_id] = Need(
            sum(POINTS[feature].points for feature in features),
            tuple(feature for feature in POINTS if feature in features),
            excerpt_of(pair.result.text, _kind_among(features), names) if new_names or "agent" in features else (),
        )
        names |= new_names
    return found


def _kind_among(features: Collection[Feature]) -> Feature | None:
    """The feature that says what kind of result it is."""
    return next((kind for kind in KINDS if kind in features), None)


def _of_call(pair: Pair, read: FileRead | None, failed: bool) -> set[Feature]:
    features: set[Feature] = {"failed"} if failed else set()
    if read is not None:
        features.add("read")
        if read.span is not None or read.tail is not None:
            features.add("partial")
        return features
    group = _group(pair)
    if group is not None:
        features.add(group)
    return features


def _group(pair: Pair) -> Feature | None:
    tool = pair.use.tool
    match kind_of(tool):
        case "read":
            return "read"
        case "agent" | "report":
            return "agent"
        case "search":
            return "list" if tool.lower() in ("glob", "ls", "list_dir", "list_directory", "list_files") else "search"
        case "web":
            return "web"
        case "plan":
            return "plan"
        case "write":
            return "write"
        case "command":
            return _group_of_command(command_of(pair.use) or "")
        case "other" if tool.startswith("mcp__"):
            return "web"
    return None


def _group_of_command(command: str) -> Feature | None:
    found = _FIRST_PROGRAM.match(command.lstrip())
    if found is None:
        return None
    program = found[1].rpartition("/")[2]
    if program in _LISTS:
        return "list"
    if program in _READS:
        return "read"
    if program in _TESTS or (program in _RUNNERS and not _TEST_WORDS.isdisjoint({found[2], found[3]})):
        return "test"
    return "web" if program in ("curl", "wget") else None


def _of_age(calls: int, turns: int) -> set[Feature]:
    features: set[Feature] = set()
    if calls > 30:
        features.add("calls_30")
    if calls > 60:
        features.add("calls_60")
    if turns >= 1:
        features.add("turn_1")
    if turns >= 2:
        features.add("turn_2")
    return features


def _edit_rhythm(pairs: Sequence[Pair]) -> bool:
    """Whether nothing was edited yet, or much of it lately: what was read is then about to be quoted."""
    edits = [index for index, pair in enumerate(pairs) if kind_of(pair.use.tool) in ("edit", "write")]
    return not edits or sum(index >= len(pairs) - _OF_CALLS for index in edits) >= _MANY_EDITS


def _said(messages: Sequence[Message]) -> set[bytes]:
    """The words of every text and every call's input: they stay."""
    known: set[bytes] = set()
    for message in messages:
        if message.text:
            known |= words_of(message.text)
        for use in message.tool_uses:
            for text in input_strings(use.input):
                known |= words_of(text)
    return known


def _used_lately(messages: Sequence[Message]) -> dict[bytes, int]:
    """The telling words of the newest texts and inputs, with the last message that has each."""
    used: dict[bytes, int] = {}
    for index in range(max(0, len(messages) - LATELY), len(messages)):
        message = messages[index]
        texts = [message.text, *(text for use in message.tool_uses for text in input_strings(use.input))]
        for text in texts:
            used.update(dict.fromkeys(filter(is_telling, words_of(text)), index))
    return used


def _named_lately(messages: Sequence[Message]) -> dict[bytes, int]:
    """The file names in the newest texts, plans and agents' inputs, with the last message that has each."""
    named: dict[bytes, int] = {}
    for index in range(max(0, len(messages) - LATELY), len(messages)):
        message = messages[index]
        texts = [message.text]
        for use in message.tool_uses:
            if kind_of(use.tool) in ("plan", "agent"):
                texts += input_strings(use.input)
        for text in texts:
            for word in words_of(text):
                named[word.rstrip(b".").rpartition(b"/")[2]] = index
    return named
