"""Which objects may go, and removing them: first a plan that only reads, then the same plan carried out.

An object is kept while

- a note in a session file that still exists names it: every file a session's references name, and every
  session file of Claude Code and Codex on this machine, is searched for the ids of our notes;
- a session that has no file, or whose file has gone, named it less than ``PATHLESS_SECONDS`` ago;
- any session named it less than ``EMIT_SECONDS`` ago: its note may not have reached the file yet;
- it is younger than the limits ask, or it was put again since the plan was made.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lcc.client_folders import CLIENTS
from lcc.private_files import open_regular
from lcc.stash.folder import locked
from lcc.stash.objects import MIN_ID_LENGTH, places_in, read_stored, write_pack
from lcc.stash.references import (
    References,
    all_references,
    read_references,
    reference_files,
    rewrite_references,
)
from lcc.stash.store import Stash, StoredCopy

DAY = 86400.0
EMIT_SECONDS = DAY
PATHLESS_SECONDS = 90 * DAY
GC_LOCK_SECONDS = 30.0
_CHUNK = 4 * 1024 * 1024
_NAMED = re.compile(rb"lcc recall ([0-9a-f]{12,64})")
_LEFTOVER = re.compile(r"\.(?:\d+-\d+-\d+(?:\.pack\.[0-9a-f]{16})?|[0-9a-f]{32}\.(?:\d+|[0-9a-f]{16}))\.tmp")
"""A pack or a reference file beside its place, also as older versions call them."""
_OVERLAP = len(b"lcc recall ") + 64


@dataclass(frozen=True, slots=True)
class GcLimits:
    """What to collect of the objects that nothing keeps."""

    older_than_seconds: float = 30 * DAY
    max_bytes: int | None = None
    """Collect the oldest until all objects together take at most this much, however young they are."""
    session: str | None = None
    """Only what this session named; its own references keep nothing, and no age is asked."""


@dataclass(frozen=True, slots=True)
class GcPlan:
    """What a collection removes, and why the rest stays. Making one changes nothing."""

    remove: tuple[StoredCopy, ...]
    total: int
    total_bytes: int
    kept_by_notes: int
    """Objects that a note in a session file names."""
    kept_by_references: int
    """Objects that a session without a file, or a very recent compaction, names."""
    kept_by_age: int
    missing: tuple[tuple[str, str], ...]
    """(session, sha256) of objects that are named and not there."""
    leftovers: tuple[Path, ...]
    """Files of writes that were cut off."""
    now: float
    references: dict[Path, tuple[int, int]] = field(repr=False)
    session: str | None = None

    @property
    def remove_bytes(self) -> int:
        """How many bytes on the disk the removal frees."""
        return sum(entry.stored_bytes for entry in self.remove)


@dataclass(frozen=True, slots=True)
class GcResult:
    """What was removed. ``spared`` were named or put again after the plan."""

    removed: int
    removed_bytes: int
    spared: int


def plan_collection(stash: Stash, limits: GcLimits, session_folders: Sequence[Path], now: float) -> GcPlan:
    """What may go at ``now`` (seconds since the epoch). Reads every session file once; changes nothing.

    Raises ``OSError`` when a session file cannot be read: what it names is not known then.
    """
    references = list(all_references(stash.folder))
    in_notes = _named_in_files(_session_files(references, session_folders))
    in_references = _kept_by_references(references, limits.session, now)
    entries = sorted(stash.entries(), key=lambda entry: (entry.modified_ns, entry.sha256))
    free = [
        entry for entry in entries if entry.sha256[:MIN_ID_LENGTH] not in in_notes and entry.sha256 not in in_references
    ]
    remove = _within_limits(free, entries, references, limits, now)
    present = {entry.sha256 for entry in entries}
    noted = sum(entry.sha256[:MIN_ID_LENGTH] in in_notes for entry in entries)
    return GcPlan(
        remove=tuple(remove),
        total=len(entries),
        total_bytes=sum(entry.stored_bytes for entry in entries),
        kept_by_notes=noted,
        kept_by_references=len(entries) - len(free) - noted,
        kept_by_age=len(free) - len(remove),
        missing=tuple(_missing(references, in_notes, present)),
        leftovers=tuple(_leftovers(stash.folder)),
        now=now,
        references={each.file: each.signature for each in references},
        session=limits.session,
    )


def collect(stash: Stash, plan: GcPlan) -> GcResult:
    """Carry out ``plan``. What was named or put since it was made is spared. Raises ``OSError``.

    Interrupted at any point it leaves whole objects; two at once do no harm.
    """
    removed = removed_bytes = spared = 0
    by_pack: dict[Path, list[StoredCopy]] = {}
    for entry in plan.remove:
        by_pack.setdefault(entry.place.pack, []).append(entry)
    for pack, entries in by_pack.items():
        with locked(stash.folder, exclusive=True, seconds=GC_LOCK_SECONDS):
            gone = _remove_from_pack(stash.folder, pack, entries, _named_since(stash.folder, plan))
        removed += len(gone)
        removed_bytes += sum(entry.stored_bytes for entry in gone)
        spared += len(entries) - len(gone)
    if not stash.folder.exists():
        return GcResult(0, 0, 0)
    with locked(stash.folder, exclusive=True, seconds=GC_LOCK_SECONDS):
        for leftover in plan.leftovers:
            # Writers hold the shared lock while such a file exists: under the exclusive one nobody needs it.
            leftover.unlink(missing_ok=True)
    left = {entry.sha256 for entry in stash.entries()}
    _tidy_references(stash, {entry.sha256 for entry in plan.remove} - left, plan.now)
    return GcResult(removed, removed_bytes, spared)


def missing_objects(stash: Stash, session_folders: Sequence[Path]) -> list[tuple[str, str]]:
    """(session, sha256) of every object that a session recorded, a note still names, and that is not there.

    Raises ``OSError`` when a session file cannot be read.
    """
    references = list(all_references(stash.folder))
    in_notes = _named_in_files(_session_files(references, session_folders))
    present = {entry.sha256 for entry in stash.entries()}
    return _missing(references, in_notes, present)


def _missing(references: Iterable[References], in_notes: set[str], present: set[str]) -> list[tuple[str, str]]:
    return [
        (each.session, sha)
        for each in references
        for sha in each.named
        if sha not in present and sha[:MIN_ID_LENGTH] in in_notes
    ]


def named_in_file(path: Path) -> set[str]:
    """The ids (first 12 hex digits) that the notes in ``path`` name. Linear, in bounded memory."""
    named: set[str] = set()
    with open(open_regular(path), "rb") as file:
        rest = b""
        while chunk := file.read(_CHUNK):
            window = rest + chunk
            named.update(match[1][:MIN_ID_LENGTH].decode() for match in _NAMED.finditer(window))
            rest = window[-_OVERLAP:]
    return named


def _named_in_files(paths: Iterable[Path]) -> set[str]:
    named: set[str] = set()
    for path in paths:
        try:
            named |= named_in_file(path)
        except FileNotFoundError:
            continue
    return named


def _session_files(references: Sequence[References], folders: Iterable[Path]) -> list[Path]:
    """Every session file that may hold a note: those that references name, and what stands beside any of them.

    A session is copied by the client's ``/branch``, and moved with its folder: the copy stands below the same folder
    of sessions, whichever profile that belongs to.
    """
    sources = [source for each in references for source in each.sources]
    found = dict.fromkeys(path for path in map(Path, sources) if path.is_file())
    seen: set[tuple[int, int]] = set()
    for folder in dict.fromkeys([*folders, *_folders_of(sources)]):
        found |= dict.fromkeys(_files_below(folder, seen))
    return list(found)


def _folders_of(sources: Iterable[str]) -> Iterator[Path]:
    """The folders of sessions of each profile that a source belongs to."""
    for source in sources:
        for client in CLIENTS:
            profile = client.session.fullmatch(source)
            if profile is not None:
                yield from (Path(profile[1], name) for name in client.holders)


def _files_below(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """The session files in ``folder`` and below, through links too; each folder once, so that no link leads round."""
    for base, inner, names in os.walk(folder, onerror=_raise_unless_missing, followlinks=True):
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(base)
            if (status.st_dev, status.st_ino) in seen:
                inner.clear()
                continue
            seen.add((status.st_dev, status.st_ino))
        for name in names:
            path = Path(base, name)
            if name.endswith(".jsonl") and path.is_file():
                yield path


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _kept_by_references(references: Iterable[References], dropped: str | None, now: float) -> set[str]:
    kept: set[str] = set()
    for each in references:
        if dropped is not None and each.session == dropped:
            continue
        # A file that has gone may have been moved: only one that is there can show that its notes are not.
        seconds = EMIT_SECONDS if any(map(os.path.exists, each.sources)) else PATHLESS_SECONDS
        kept.update(sha for sha, named in each.named.items() if now - named < seconds)
    return kept


def _within_limits(
    free: list[StoredCopy], entries: list[StoredCopy], references: list[References], limits: GcLimits, now: float
) -> list[StoredCopy]:
    """Of the ``free`` entries (oldest first) those that the limits let go."""
    if limits.session is not None:
        own = {sha for each in references if each.session == limits.session for sha in each.named}
        return [entry for entry in free if entry.sha256 in own]
    oldest_kept_ns = (now - limits.older_than_seconds) * 1e9
    total = sum(entry.stored_bytes for entry in entries)
    remove = []
    for entry in free:
        too_much = limits.max_bytes is not None and total > limits.max_bytes
        if entry.modified_ns <= oldest_kept_ns or too_much:
            remove.append(entry)
            total -= entry.stored_bytes
    return remove


def _named_since(folder: Path, plan: GcPlan) -> set[str]:
    """What references that changed after the plan name. Under the exclusive lock."""
    named: set[str] = set()
    for path in reference_files(folder):
        status = path.stat()
        if plan.references.get(path) == (status.st_size, status.st_mtime_ns):
            continue
        references = read_references(path)
        named.update(sha for sha, at in references.named.items() if at >= int(plan.now) - 1)
    return named


def _remove_from_pack(folder: Path, pack: Path, entries: list[StoredCopy], named_since: set[str]) -> list[StoredCopy]:
    """Leave the rest of the pack in a new one, flushed before the old one goes. Under the exclusive lock."""
    gone = [entry for entry in entries if entry.sha256 not in named_since]
    try:
        status = pack.lstat()
        if not gone or status.st_mtime_ns != gone[0].modified_ns:
            return []
        removed = {entry.place.offset for entry in gone}
        left = [place for place in places_in(pack) if place.offset not in removed]
        if left:
            # Copied as they stand: what is damaged stays damaged, and is reported as such.
            new = write_pack(folder, ((place.sha256, read_stored(place)) for place in left))
            os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
        pack.unlink()
    except FileNotFoundError:
        return []
    return gone


def _tidy_references(stash: Stash, removed: set[str], now: float) -> None:
    """Drop the lines of objects that this collection removed, and repeated ones. One lock hold a file."""
    for path in reference_files(stash.folder):
        with (
            contextlib.suppress(FileNotFoundError),
            locked(stash.folder, exclusive=True, seconds=GC_LOCK_SECONDS),
        ):
            references = read_references(path)
            gone = {sha for sha in references.named.keys() & removed if references.named[sha] < now - 1}
            if gone or references.lines > 2 * len(references.named):
                rewrite_references(references, references.named.keys() - gone)


def _leftovers(folder: Path) -> Iterator[Path]:
    for part in ("packs", "refs"):
        with contextlib.suppress(OSError), os.scandir(folder / part) as found:
            for entry in found:
                if _LEFTOVER.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)
