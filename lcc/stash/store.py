"""Putting bytes into the stash, and getting exactly those bytes back."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lcc.stash.folder import locked, make_folder
from lcc.stash.objects import (
    MIN_ID_LENGTH,
    DamagedObjectError,
    Place,
    StashError,
    find_in_pack,
    pack_files,
    packed,
    places_in,
    read_object,
    read_pack,
    write_pack,
)
from lcc.stash.references import UNNAMED_SESSION, append_references, named_before

_ID = re.compile(rf"[0-9a-f]{{{MIN_ID_LENGTH},64}}")
WRITE_LOCK_SECONDS = 2.0  # gc holds the lock for milliseconds; longer means that its process is stopped
_PACK_BYTES = 16 * 1024 * 1024  # of contents in one pack: on a disk that fills up, what fitted before is not lost


class UnknownObjectError(StashError):
    """There is no object with that id, or the id is not one."""


class AmbiguousObjectError(StashError):
    """The id is the beginning of more than one object's."""


class Stored(NamedTuple):
    """One object that is durable: its address, its size in bytes, and whether this call wrote it."""

    sha256: str
    size: int
    new: bool


class StoredCopy(NamedTuple):
    """One stored copy of an object: the bytes it takes on disk, and when it was last put."""

    sha256: str
    stored_bytes: int
    modified_ns: int
    place: Place


def bytes_of_text(text: str) -> bytes:
    """UTF-8; a lone surrogate, which a transcript can hold, is kept as it is."""
    return text.encode("utf-8", "surrogatepass")


def text_of_bytes(content: bytes) -> str | None:
    """The text that ``bytes_of_text`` made ``content`` from; None when it is not text."""
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


@dataclass(frozen=True, slots=True)
class Stash:
    """The stash in ``folder``, used on behalf of ``session``, whose notes stand in the file ``source``.

    Building one touches nothing. The session and its file tell gc which notes are still alive; without a
    file, the session's objects are kept for a fixed time.
    """

    folder: Path
    session: str = UNNAMED_SESSION
    source: str | None = None

    def put(self, content: bytes) -> Stored:
        """Store ``content``; when this returns, it is durable and has been read back equal.

        Raises ``OSError`` when it cannot be stored (full disk, read-only folder, unsafe folder, too large).
        """
        outcome = self.put_many([content])[0]
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def put_many(self, contents: Sequence[bytes]) -> list[Stored | OSError]:
        """As ``put`` for several at once, flushed together: an outcome for each, in order. Raises nothing.

        What this session has stored before is not written again, once it has been read and is equal.
        """
        if not contents:
            return []
        try:
            for folder in (self.folder, self.folder / "packs", self.folder / "refs"):
                make_folder(folder)
            with locked(self.folder, exclusive=False, seconds=WRITE_LOCK_SECONDS):
                putting = _Putting(self)
                outcomes = putting.put(contents)
                if putting.packs:
                    append_references(self.folder, self.session, self.source, putting.packs, time.time())
        except OSError as error:
            return [error] * len(contents)
        return outcomes

    def reference(self, shas: Sequence[str]) -> None:
        """Record that this session's notes name ``shas`` too (a fork takes over its parent's notes).

        Raises ``OSError``, or ``UnknownObjectError`` for one that is not there.
        """
        if not shas:
            return
        make_folder(self.folder / "refs")
        with locked(self.folder, exclusive=False, seconds=WRITE_LOCK_SECONDS):
            packs: dict[str, str] = {}
            for sha in shas:
                for place in self.places(sha):
                    os.utime(place.pack)
                    packs[sha] = place.pack.name
                if sha not in packs:
                    raise self._unknown(sha)
            append_references(self.folder, self.session, self.source, packs, time.time())

    def get(self, object_id: str) -> bytes:
        """The bytes of the object whose id begins with ``object_id`` (12 to 64 hex digits), proven by sha256.

        Raises a ``StashError`` of its kind, or ``OSError`` when the file cannot be read.
        """
        damage: DamagedObjectError | None = None
        for place in self._resolved(object_id):
            try:
                return read_object(place)
            except DamagedObjectError as error:
                damage = error
            except FileNotFoundError:
                continue
        raise damage or self._unknown(object_id)

    def get_many(self, shas: Iterable[str]) -> dict[str, bytes | StashError]:
        """The bytes of each object by its full sha256, or what is wrong with it; the newest packs are asked first.

        Raises ``OSError`` when an object was not found and a pack cannot be read.
        """
        found: dict[str, bytes | StashError] = {}
        missing = dict.fromkeys(shas)
        unreadable: OSError | None = None
        for pack in pack_files(self.folder):
            if not missing:
                break
            try:
                for place in find_in_pack(pack, list(missing)):
                    try:
                        found[place.sha256] = read_object(place)
                        missing.pop(place.sha256, None)
                    except DamagedObjectError as error:
                        found.setdefault(place.sha256, error)
            except FileNotFoundError:
                continue
            except OSError as error:
                unreadable = error
        absent = [sha for sha in missing if sha not in found]
        if absent and unreadable is not None:
            raise unreadable
        return found | {sha: self._unknown(sha) for sha in absent}

    def resolve(self, object_id: str) -> str:
        """The full sha256 for an id of 12 or more hex digits. Raises as ``get``."""
        return self._resolved(object_id)[0].sha256

    def places(self, prefix: str) -> list[Place]:
        """Where the objects stand whose sha256 begins with ``prefix``, the newest pack first.

        A pack that cannot be read is passed over where another one has the object; else its ``OSError`` is raised.
        """
        found: list[Place] = []
        unreadable: OSError | None = None
        for pack in pack_files(self.folder):
            try:
                found += find_in_pack(pack, (prefix,))
            except FileNotFoundError:
                continue
            except OSError as error:
                unreadable = error
        if unreadable is not None and not found:
            raise unreadable
        return found

    def alike(self, shas: Iterable[str]) -> dict[str, int]:
        """How many digits name an object alone, for those of ``shas`` that share their first ones with another."""
        by_prefix: dict[str, set[str]] = {}
        for sha in shas:
            by_prefix.setdefault(sha[:MIN_ID_LENGTH], set()).add(sha)
        wanted = {prefix: frozenset(given) for prefix, given in by_prefix.items()}
        for pack in pack_files(self.folder):
            try:
                for place in find_in_pack(pack, by_prefix.keys()):
                    by_prefix[place.sha256[:MIN_ID_LENGTH]].add(place.sha256)
            except OSError:
                continue  # it may vanish; what cannot be read names nothing
        return {
            sha: max(_first_difference(sha, other) + 1 for other in by_prefix[prefix] if other != sha)
            for prefix, given in wanted.items()
            for sha in given
            if len(by_prefix[prefix]) > 1
        }

    def entries(self) -> Iterator[StoredCopy]:
        """Every stored copy, the newest pack first. A pack that vanishes or cannot be read is passed over."""
        for pack in pack_files(self.folder):
            try:
                modified = pack.lstat().st_mtime_ns
                places = places_in(pack)
            except OSError:
                continue
            for place in places:
                yield StoredCopy(place.sha256, place.stored_bytes, modified, place)

    def check(self) -> Iterator[tuple[str, str | None]]:
        """Read every stored copy: its sha256, and what is wrong with it, None when it is whole.

        A pack that cannot be read as a whole is `pack_problem`'s.
        """
        for pack in pack_files(self.folder):
            try:
                for place, outcome in read_pack(pack):
                    yield place.sha256, str(outcome) if isinstance(outcome, DamagedObjectError) else None
            except OSError:
                continue  # `pack_problem` says it

    def _resolved(self, object_id: str) -> list[Place]:
        wanted = object_id.strip().lower()
        if not _ID.fullmatch(wanted):
            raise UnknownObjectError(
                object_id, f"{object_id!r} is not an id: give the {MIN_ID_LENGTH} to 64 hex digits of the note"
            )
        places = self.places(wanted)
        shas = sorted({place.sha256 for place in places})
        if len(shas) > 1:
            raise AmbiguousObjectError(
                object_id, f"{object_id} fits {len(shas)} objects; give more digits: {', '.join(shas)}"
            )
        if not places:
            raise self._unknown(object_id)
        return places

    def _unknown(self, object_id: str) -> UnknownObjectError:
        return UnknownObjectError(
            object_id,
            f"the stash in {self.folder} has no object {object_id}: it was collected, or LCC_STASH_DIR is not "
            "what it was at the compaction",
        )


def _first_difference(one: str, other: str) -> int:
    return next(index for index, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


class _Putting:
    """One call of put_many, under the shared lock."""

    def __init__(self, stash: Stash) -> None:
        self._stash = stash
        self._outcomes: dict[str, Stored | OSError] = {}
        self.packs: dict[str, str] = {}
        """The pack of each object that is safe now."""

    def put(self, contents: Sequence[bytes]) -> list[Stored | OSError]:
        shas = [hashlib.sha256(content).hexdigest() for content in contents]
        unique = dict(zip(shas, contents, strict=True))
        self._adopt(unique)
        missing = [sha for sha in unique if sha not in self._outcomes]
        for group in _groups(missing, unique):
            self._write({sha: unique[sha] for sha in group})
        first = {sha: index for index, sha in reversed(list(enumerate(shas)))}
        return [_not_new(self._outcomes[sha], first[sha] < index) for index, sha in enumerate(shas)]

    def _adopt(self, contents: dict[str, bytes]) -> None:
        """Take what this session has stored before, where it is still whole; gc goes by the time of the last put."""
        before = named_before(self._stash.folder, self._stash.session)
        by_pack: dict[str, list[str]] = {}
        for sha in contents.keys() & before.keys():
            by_pack.setdefault(before[sha], []).append(sha)
        for name, shas in by_pack.items():
            pack = self._stash.folder / "packs" / name
            try:
                whole = {place.sha256 for place in find_in_pack(pack, shas) if _holds(place, contents[place.sha256])}
                if whole:
                    os.utime(pack)
            except OSError:
                continue  # it is written again
            for sha in whole:
                self._outcomes[sha] = Stored(sha, len(contents[sha]), False)
                self.packs[sha] = name

    def _write(self, contents: dict[str, bytes]) -> None:
        objects: dict[str, bytes] = {}
        for sha, content in contents.items():
            try:
                objects[sha] = packed(sha, content)
            except OSError as error:
                self._outcomes[sha] = error
        if not objects:
            return
        try:
            pack = write_pack(self._stash.folder, objects.items())
            places = {place.sha256: place for place in places_in(pack)}
        except OSError as error:
            self._outcomes |= dict.fromkeys(objects, error)
            return
        for sha in objects:
            outcome = self._outcomes[sha] = _read_back(places.get(sha), sha, contents[sha])
            if isinstance(outcome, Stored):
                self.packs[sha] = pack.name


def _holds(place: Place, content: bytes) -> bool:
    """Whether what stands there can be read and is ``content``."""
    try:
        return read_object(place) == content
    except (DamagedObjectError, OSError):
        return False


def _groups(shas: Iterable[str], contents: dict[str, bytes]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for sha in shas:
        if group and size + len(contents[sha]) > _PACK_BYTES:
            yield group
            group, size = [], 0
        group.append(sha)
        size += len(contents[sha])
    if group:
        yield group


def _read_back(place: Place | None, sha256: str, content: bytes) -> Stored | OSError:
    try:
        if place is not None and read_object(place) == content:
            return Stored(sha256, len(content), True)
    except OSError as error:
        return error
    except DamagedObjectError as error:
        return OSError(errno.EIO, str(error))
    return OSError(errno.EIO, f"the object {sha256[:12]} was not read back as it was written")


def _not_new(outcome: Stored | OSError, seen: bool) -> Stored | OSError:
    return outcome._replace(new=False) if seen and isinstance(outcome, Stored) else outcome
