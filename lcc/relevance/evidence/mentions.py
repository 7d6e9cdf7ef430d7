"""Where some texts mention something literal: a file's name, a URL, a command, a call's id.

People write names in every script, in quotes and brackets, behind ``@``, before ``#L10``, ``:12:3`` or a comma,
with backslashes, in another case. So nothing is cut into words: what may be mentioned is looked for as it stands,
and what stands around it says whether it is a mention or a part of a longer name. In doubt it is a mention, for
what is mentioned is kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple
from unicodedata import category, normalize

_LONGEST_TEXT = 200_000  # characters of one text in which is looked
PREFIX = 3  # characters by which a text is looked through for all literals at once
_SIZES = (1, 2, PREFIX)
_MOST_MENTIONS = 64  # of one literal that are told apart
_LONGEST_FOLDER = 400  # characters before a file's name that are looked at

# A mention begins where no ASCII letter or digit stands before it, or at any character of another script.
_STARTS = re.compile(r"(?<![a-z0-9])\S|[^\x00-\x7f]")
_MARK = re.compile(r"\.\S|/")
_ESCAPE = re.compile(r"\\(?=[\W_])")
_QUOTED = re.compile("%[0-9A-Fa-f]{2}")
_PATH_BEFORE = re.compile(r"[\w.+~@%$#/-]*$")
_DIFF_SIDES = ("a", "b")  # that stand before every path of a diff
_ASCII_QUOTES = "\"'`"
_QUOTES = ("Pi", "Pf", "Ps", "Pe")  # as Unicode calls them


class Mention(NamedTuple):
    """One way in which a text mentions a literal."""

    where: int
    """In which texts, as the caller numbers them (a bit each)."""
    folders: tuple[str, ...]
    """The folders that the text writes before it, the nearest last."""
    marked: bool
    """Whether it stands in quotes or is written as a part of a path, and so is no word of a sentence."""


ANYHOW = Mention(0, (), True)


def fold(text: str) -> str:
    """``text`` as mentions are compared: without case, one form of each character, one blank, slashes only."""
    folded = text.lower() if text.isascii() else normalize("NFC", normalize("NFC", text).casefold())
    return " ".join(folded.replace("\\", "/").split())


class Mentions:
    """What some texts mention, asked for all literals at once."""

    def __init__(self, texts: Mapping[str, int]) -> None:
        """``texts`` are the texts, each with the bits that say where it is from."""
        folded: dict[str, int] = {}
        for text, where in texts.items():
            cut = text[:_LONGEST_TEXT]
            for form in _forms(cut):
                key = fold(form)
                folded[key] = folded.get(key, 0) | where
        self._texts = [(text, where, [m.start() for m in _STARTS.finditer(text)]) for text, where in folded.items()]
        starts = {text[at : at + size] for text, _, places in self._texts for at in places for size in _SIZES}
        self.starts = frozenset(starts)
        """The first `PREFIX` characters of all that the texts may mention (folded), and of what is shorter, all."""
        self.has_marks = any(_MARK.search(text) or any(map(_is_quote, set(text))) for text in folded)
        """Whether there is anything that a file's name has in it, or that marks a word as a name."""

    @cached_property
    def first_words(self) -> frozenset[str]:
        """What any mention of several words begins with, up to the first blank."""
        ends = ((text, at, text.find(" ", at)) for text, _, places in self._texts for at in places)
        return frozenset(text[at:end] for text, at, end in ends if end >= 0)

    def find(self, literals: Collection[str]) -> dict[str, set[Mention]]:
        """The mentions of each of ``literals`` (folded, not empty) that has any."""
        lengths: dict[str, set[int]] = {}
        for literal in literals:
            lengths.setdefault(literal[:PREFIX], set()).add(len(literal))
        sizes = [size for size in _SIZES if any(len(prefix) == size for prefix in lengths)]
        found: dict[str, set[Mention]] = {}
        for text, where, places in self._texts:
            for at in places:
                for size in sizes:
                    for length in lengths.get(text[at : at + size], ()):
                        literal = text[at : at + length]
                        if literal in literals and not _goes_on(text, at, at + len(literal)):
                            mentions = found.setdefault(literal, set())
                            full = len(mentions) >= _MOST_MENTIONS
                            mentions.add(ANYHOW._replace(where=where) if full else _mention(text, at, literal, where))
        return found


def _forms(text: str) -> Iterator[str]:
    """``text`` as it is, without the shell's escapes, and as its URLs read (``my%20file.py``)."""
    yield text
    if "\\" in text:
        yield _ESCAPE.sub("", text)
    if _QUOTED.search(text):
        from urllib.parse import unquote

        yield unquote(text)


def is_in(said: Iterable[str], folders: str) -> bool:
    """Whether a file in ``folders`` (folded, with slashes) may be the one before which ``said`` is written.

    The two are compared from the file outwards, as far as both go. What is no name (``..``, ``~``, ``…``) may be
    any folder; the outermost one may have something glued to it.
    """
    outwards, own = list(said)[::-1], folders.split("/")[::-1] if folders else []
    for index, (written, folder) in enumerate(zip(outwards, own, strict=False)):
        if written == folder:
            continue
        if not folder or not any(map(str.isalnum, written)):
            return True
        if index == len(outwards) - 1 and written in _DIFF_SIDES:
            return True
        outermost = index in (len(outwards) - 1, len(own) - 1)
        return outermost and (_ends_with(written, folder) or _ends_with(folder, written))
    return True


def _mention(text: str, at: int, literal: str, where: int) -> Mention:
    before, behind = text[at - 1 : at], text[at + len(literal) : at + len(literal) + 1]
    folders: tuple[str, ...] = ()
    if before == "/":
        written = _PATH_BEFORE.search(text[max(0, at - _LONGEST_FOLDER) : at])
        folders = tuple(written.group().split("/")[:-1]) if written else ()
    marked = "/" in (before, behind) or (_is_quote(before) and _is_quote(behind))
    return Mention(where, folders, marked)


def _is_quote(character: str) -> bool:
    """Whether ``character`` (none at the end of a text) opens or closes a quotation, in any script."""
    if not character or character.isascii():
        return bool(character) and character in _ASCII_QUOTES
    return category(character) in _QUOTES


def _goes_on(text: str, start: int, end: int) -> bool:
    """Whether what stands from ``start`` to ``end`` is only a part of a longer name."""
    return _goes_on_before(text, start) or _goes_on_behind(text, start, end)


def _goes_on_before(text: str, start: int) -> bool:
    if start == 0:
        return False
    before, further = text[start - 1], text[start - 2 : start - 1]
    if before in "_.-":  # `_a.py_` is set in italics, `…a.py` is not
        return further != "" and _same_word(further, text[start])
    return _same_word(before, text[start])


def _goes_on_behind(text: str, start: int, end: int) -> bool:
    if end == len(text):
        return False
    behind, further = text[end], text[end + 1 : end + 2]
    if behind == "_":
        return further.isalnum() or further == "_"
    if behind == ".":
        return further.isascii() and further.isalnum()
    if behind in "-/&=%":
        has_extension = text.rfind(".", start + 1, end) > text.rfind("/", start, end)
        is_dotted = further == "." and end + 2 < len(text) and (text[end + 2].isalnum() or text[end + 2] in "._/")
        return not has_extension and (further.isalnum() or further == "_" or is_dotted)
    return _same_word(text[end - 1], behind)


def _ends_with(longer: str, end: str) -> bool:
    start = len(longer) - len(end)
    return bool(end) and longer.endswith(end) and not _goes_on_before(longer, start)


def _same_word(one: str, other: str) -> bool:
    """Whether two neighbours are of one word: both letters or digits of one script that sets words apart."""
    if not (one.isalnum() or one == "_") or not (other.isalnum() or other == "_"):
        return False
    script = _script(one)
    return script is not None and script == _script(other)


def _script(character: str) -> int | None:
    """A number for the script; None for those that glue words together, or a preposition to the next word."""
    code = ord(character)
    if code < 0x250 or 0x1E00 <= code < 0x1F00:
        return 0  # Latin
    if 0x590 <= code < 0x900 or code >= 0xE00:
        return None  # Hebrew, Arabic; Thai, Chinese, Japanese, Korean and others
    return 1 if 0x400 <= code < 0x530 else code >> 7
