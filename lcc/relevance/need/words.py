"""The words of a text that can be looked for elsewhere: paths, identifiers and values, as bytes."""

from __future__ import annotations

_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-") | frozenset(range(128, 256))
_TO_WORDS = bytes(byte if byte in _KEPT else 32 for byte in range(256))
_MARKS = frozenset(b"_/.0123456789")
SHORTEST = 8
"""Bytes of the shortest word that says where it came from."""


def words_of(text: str) -> set[bytes]:
    """Every word of ``text``: runs of letters, digits, ``_ . / -`` and of what is not ASCII."""
    return set(text.encode("utf-8", "surrogatepass").translate(_TO_WORDS).split())


def last_word(text: str) -> bytes:
    """The last word of ``text``; empty where it has none."""
    words = text.encode("utf-8", "surrogatepass").translate(_TO_WORDS).split()
    return words[-1] if words else b""


def is_distinctive(word: bytes) -> bool:
    """Whether a word is a path, an identifier or a value, and not a word of the language."""
    if not _MARKS.isdisjoint(word):
        return True
    return not word[1:].islower() and not word.isupper() and b"-" not in word


def is_telling(word: bytes) -> bool:
    """Whether a word is distinctive and long enough, less the marks at its ends."""
    stripped = word.strip(b"./-")
    return len(stripped) >= SHORTEST and is_distinctive(stripped)
