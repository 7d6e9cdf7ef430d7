"""What every object store must do, as tests: derive from ``StoreConformance`` and give it a ``store`` fixture.

A store has ``put_many(contents)``, ``get(id)`` and ``resolve(id)`` with the meaning of ``lcc.stash.Stash``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import pytest

from lcc.stash import Stored, UnknownObjectError


class Store(Protocol):
    def put_many(self, contents: Sequence[bytes]) -> list[Stored | OSError]: ...

    def get(self, object_id: str) -> bytes: ...

    def resolve(self, object_id: str) -> str: ...


CONTENTS = [
    b"",
    b"\n",
    b"plain text",
    b"\x00\xff" * 1000,
    "Zürich · 東京 · \U0001f600".encode(),
    b"\r\n\r",
    b"x" * 300_000,
    bytes(range(256)) * 40,
]


class StoreConformance:
    """The checks. A backend that passes them can stand in for the folder store."""

    def test_what_is_put_comes_back_byte_for_byte(self, store: Store) -> None:
        """Any bytes, also none, come back equal under their sha256."""
        for content, outcome in zip(CONTENTS, store.put_many(CONTENTS), strict=True):
            assert isinstance(outcome, Stored)
            assert outcome.sha256 == hashlib.sha256(content).hexdigest()
            assert outcome.size == len(content)
            assert store.get(outcome.sha256) == content

    def test_the_twelve_digits_of_a_note_are_enough(self, store: Store) -> None:
        """An id of 12 or more hex digits, in either case, finds its object."""
        (stored,) = store.put_many([b"by its note"])
        assert isinstance(stored, Stored)
        for length in (12, 13, 40, 64):
            assert store.resolve(stored.sha256[:length].upper()) == stored.sha256
            assert store.get(stored.sha256[:length]) == b"by its note"

    @pytest.mark.parametrize("wrong", ["", "abc", "0" * 11, "0" * 65, "g" * 12, "../../../etc/passwd", "0" * 12])
    def test_an_id_that_fits_nothing_is_an_error(self, store: Store, wrong: str) -> None:
        """No id that is malformed or unknown returns anything."""
        store.put_many([b"something else"])
        with pytest.raises(UnknownObjectError):
            store.get(wrong)

    def test_an_unknown_whole_id_is_an_error(self, store: Store) -> None:
        """A full sha256 that nothing was stored under is unknown."""
        with pytest.raises(UnknownObjectError):
            store.get("0" * 64)

    def test_the_same_bytes_are_stored_once(self, store: Store) -> None:
        """A second put of the same bytes has the same address and says that it wrote nothing."""
        first = store.put_many([b"twice", b"twice"])
        again = store.put_many([b"twice"])
        assert [each.new for each in [*first, *again] if isinstance(each, Stored)] == [True, False, False]
        assert len({each.sha256 for each in [*first, *again] if isinstance(each, Stored)}) == 1

    def test_outcomes_come_in_the_order_of_the_contents(self, store: Store) -> None:
        """One outcome for each content, in order, over more contents than one batch holds."""
        contents = [f"number {index}".encode() for index in range(200)]
        outcomes = store.put_many(contents)
        assert [each.sha256 for each in outcomes if isinstance(each, Stored)] == [
            hashlib.sha256(content).hexdigest() for content in contents
        ]
