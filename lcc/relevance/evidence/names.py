"""Which calls some texts name: by id, file, URL, command, what was searched for, or a path in the input.

A text names a call in one of two ways. It may name what the call is *about*: its id, the file that it reads or
writes, its URL, its command, what it searched for. Or it may name something that the call's input *mentions*: a
path or a URL in a command or in a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from lcc.relevance.evidence.mentions import PREFIX, Mention, Mentions, fold, is_in
from lcc.relevance.reading.calls import FileRead, command_of, input_strings, kind_of, named_path, written_paths
from lcc.relevance.reading.programs import SEARCHES, called, runs_of, searched_for, words_of_ascii
from lcc.transcript import Json, Pair, ToolUse

_PATTERN_KEYS = ("pattern", "query", "glob", "regex", "symbol")
_LONGEST_STRING = 200_000  # characters of an input's string in which paths are looked for
_LONGEST_LITERAL = 1_000
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;|*?!=:&]++")
_URL = re.compile(r"(?<!\w)\w[\w+.-]*+://([^\s\"'<>`]++)")
_REGEX_ESCAPE = re.compile(r"\\[a-zA-Z]|[\\^$]")
_IDENTIFIER = re.compile(r"[^\W\d][\w.-]*+")
_NO_FILE = frozenset({"e.g", "i.e", "null"})

_Find: TypeAlias = "Callable[[str, Mentions], Iterator[_Spelling]]"


class Naming(NamedTuple):
    """Which texts name a call: the bits of those that name what it is about, and of those that name it at all."""

    about: int
    at_all: int


class _Spelling(NamedTuple):
    """One way to write what a call is about, or what its input mentions."""

    literal: str
    folders: str | None = None
    """The folders of a path, to be compared with those that a text writes; None: no path."""
    needs_mark: bool = False
    """Whether it could be a word of any sentence, and counts only in quotes or as a part of a path."""
    about: bool = True


def named_calls(
    pairs: Iterable[Pair], reads: Mapping[str, FileRead], texts: Mapping[str, int], with_folders: int = -1
) -> dict[str, Naming]:
    """The calls of ``pairs`` that ``texts`` name, by id.

    ``reads`` are the calls that read a file. Each text comes with the bits that say where it is from. A folder that is
    searched or otherwise worked in, and a program in quotes, are names only in texts from ``with_folders`` (bits).
    """
    mentions = Mentions(texts)
    starts = mentions.starts
    if not starts:
        return {}
    speller = _Speller(mentions)
    asked: dict[str, list[tuple[str, _Spelling]]] = {}
    for pair in pairs:
        use = pair.use
        call_id = use.id.lower()
        if call_id[:PREFIX] in starts:
            asked.setdefault(call_id, []).append((use.id, _Spelling(call_id)))
        for spelling in speller.spellings(use, reads.get(use.id)):
            asked.setdefault(spelling.literal, []).append((use.id, spelling))
    found: dict[str, Naming] = {}
    for literal, ways in mentions.find(asked.keys()).items():
        for call_id, spelling in asked[literal]:
            where = _where(spelling, ways) & (with_folders if spelling.needs_mark else -1)
            if where:
                about, at_all = found.get(call_id, (0, 0))
                found[call_id] = Naming(about | (where if spelling.about else 0), at_all | where)
    return found


def _where(spelling: _Spelling, ways: Iterable[Mention]) -> int:
    where = 0
    for mention in ways:
        if (mention.marked or not spelling.needs_mark) and (
            spelling.folders is None or is_in(mention.folders, spelling.folders)
        ):
            where |= mention.where
    return where


class _Speller:
    """Spells calls, as far as the texts may mention what is written.

    What a session says again and again is spelled once. Most spellings begin with nothing that the texts have, so
    their first characters are looked at before anything is made of them: a session has thousands.
    """

    def __init__(self, mentions: Mentions) -> None:
        self._mentions = mentions
        self._known: dict[tuple[_Find, str], tuple[_Spelling, ...]] = {}

    def spellings(self, use: ToolUse, read: FileRead | None) -> Iterable[_Spelling]:
        """The ways to write a call that may be mentioned, beside its id."""
        kind = kind_of(use.tool)
        if kind == "read":
            path = read.path if read is not None else named_path(use)
            return self._of(_of_path, path) if path else ()
        if kind in ("edit", "write"):  # what is written into a file names nothing
            return [spelling for path in written_paths(use) for spelling in self._of(_of_path, path)]
        command = command_of(use) if kind == "command" else None
        if command is None:
            return filter(self._may_be_mentioned, self._of_input(use.input, named_path(use)))
        of_command = self._of(_of_command, command)
        return of_command if read is None else (*self._of(_of_path, read.path), *of_command)

    def _may_be_mentioned(self, spelling: _Spelling) -> bool:
        return spelling.literal[:PREFIX] in self._mentions.starts and len(spelling.literal) <= _LONGEST_LITERAL

    def _of_input(self, given: Json, path: str | None) -> list[_Spelling]:
        found: list[_Spelling] = []
        patterns: list[str] = []
        if isinstance(given, dict):
            patterns = [text for key in _PATTERN_KEYS if isinstance(text := given.get(key), str)]
            url = given.get("url")
            if isinstance(url, str):
                found += _of_url(url, True)
        for pattern in patterns:
            found += self._of(_of_pattern, pattern)
        if path:
            # A search in a folder is about what it looks for; a listing is about the folder.
            named = _path(path)
            in_folder = patterns and "." not in named.literal[1:]
            found.append(named._replace(needs_mark=True) if in_folder else named)
        for text in input_strings(given):
            if text != path and (self._mentions.has_marks or "://" in text):
                found += self._of(_of_text, text)
        return found

    def _of(self, find: _Find, text: str) -> tuple[_Spelling, ...]:
        found = self._known.get((find, text))
        if found is None:
            spellings = dict.fromkeys(find(text, self._mentions))
            found = self._known[find, text] = tuple(filter(self._may_be_mentioned, spellings))
        return found


def _may_begin(text: str, mentions: Mentions) -> bool:
    """Whether ``text``, folded, begins as something that is mentioned; True where only folding it would tell."""
    head = text[:PREFIX]
    return head.lower() in mentions.starts if head.isalnum() and text[: PREFIX + 1].isascii() else True


def _of_path(path: str, mentions: Mentions) -> Iterator[_Spelling]:
    if "\\" in path or _may_begin(path.rstrip("/").rpartition("/")[2], mentions):
        yield _path(path)


def _of_command(command: str, mentions: Mentions) -> Iterator[_Spelling]:
    if _may_begin(command, mentions):
        yield _Spelling(fold(command))
    for run in runs_of(command) if _may_name_a_run(command, mentions) else ():
        if len(run[0]) < PREFIX or _may_begin(run[0], mentions):
            name = called(run)
            if name is not None:
                yield _Spelling(fold(name))
            yield _Spelling(fold(" ".join(run)), needs_mark=len(run) == 1)
            if all(word.startswith("-") for word in run[1:]):
                yield _Spelling(fold(run[0]), needs_mark=True)
        pattern = searched_for(run)
        if pattern:
            yield from _of_pattern(pattern, mentions)
    yield from _of_text(command, mentions)


def _may_name_a_run(command: str, mentions: Mentions) -> bool:
    """Whether the texts may mention one of the programs of ``command``, or what it searches for.

    A program's name alone counts only with a mark, and with more words the texts must have it ahead of a blank.
    """
    if mentions.has_marks or not command.isascii():
        return True
    words = words_of_ascii(command)
    return not words.isdisjoint(mentions.first_words) or not words.isdisjoint(SEARCHES)


def _of_pattern(pattern: str, mentions: Mentions) -> Iterator[_Spelling]:
    """A pattern as it stands, and those of its words that are words of no language: names of the code."""
    if len(pattern) > 1 and _may_begin(pattern, mentions):
        yield _Spelling(fold(pattern))
    for word in _IDENTIFIER.findall(_REGEX_ESCAPE.sub(" ", pattern)):
        name = word.strip(".-")
        of_code = any(c in "_." or c.isdigit() for c in name) or not (name[1:].islower() or name.isupper())
        if of_code and len(name) > 2 and name != pattern and _may_begin(name, mentions):
            yield _Spelling(fold(name))


def _of_text(text: str, mentions: Mentions) -> Iterator[_Spelling]:
    """The URLs and paths in a command, a prompt or any other string of an input."""
    if len(text) > _LONGEST_STRING:
        text = text[:_LONGEST_STRING]
    if "://" in text:
        for url in _URL.findall(text):
            yield from _of_url(url, False)
        text = _URL.sub(" ", text)
    if not mentions.has_marks:  # a file's name has a dot in it, or counts only with a mark
        return
    if "." not in text and "/" not in text and "\\" not in text:
        return
    first = _WORD.search(text)
    for position, word in enumerate(_path_words(text)):
        path = word[2:] if word[0] == "-" and word[1:2] != "-" else word
        if "\\" not in path and not _may_begin(path.rstrip("/").rpartition("/")[2].lstrip("-@+"), mentions):
            continue
        named = _path(path)
        name = named.literal.lstrip("-@+").rstrip(".")
        is_program = position == 0 and "/" in word and first is not None and first.group() == word
        if name not in _NO_FILE and any(map(str.isalpha, name)):
            yield _Spelling(name, named.folders, is_program or "." not in name, about=False)


def _path_words(text: str) -> Iterator[str]:
    """The words that could be a path, or the name of a file."""
    for piece in text.split():
        if "." in piece or "/" in piece or "\\" in piece:
            for word in _WORD.findall(piece):
                if "." in word or "/" in word or "\\" in word:
                    yield word


def _of_url(url: str, about: bool) -> Iterator[_Spelling]:
    """A URL without its scheme, its last slash and its fragment, as written and as it reads."""
    plain = fold(url.rpartition("://")[2].partition("#")[0]).rstrip("/.,;:")
    yield _Spelling(plain, about=about)
    if "%" in plain:
        from urllib.parse import unquote

        yield _Spelling(fold(unquote(plain)), about=about)


@lru_cache(maxsize=8192)
def _path(path: str) -> _Spelling:
    folders, _, name = fold(path).rstrip("/").rpartition("/")
    return _Spelling(name, folders, needs_mark=len(name) == 1)


def texts_by_place(groups: Sequence[tuple[int, Iterable[str]]]) -> dict[str, int]:
    """The texts of several places, each once, with the bits of all the places that have it."""
    found: dict[str, int] = {}
    for bit, texts in groups:
        for text in texts:
            found[text] = found.get(text, 0) | bit
    return found
