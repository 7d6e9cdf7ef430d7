"""Walking a Claude Code session's tree from a line up to its root, as the client does on resume."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from lcc.transcript.formats.claude.entry import Entry, Kept

_NEAR: Final = 5.0
"""Seconds: how far ahead of a line that has lost its parent the client looks for one to go on with."""


class Walk:
    """The way up, with a compact boundary's cut and the lines that it kept."""

    def __init__(self, by_uuid: dict[str, Entry], boundary: Entry | None) -> None:
        self._by_uuid = by_uuid
        self._boundary = boundary.document if boundary is not None else -1
        self._kept = kept_lines(boundary.kept, by_uuid) if boundary is not None and boundary.kept else ()
        self._anchor = boundary.kept.anchor if boundary is not None and boundary.kept else ""
        self._above_kept = dict(zip(self._kept, (self._anchor, *self._kept), strict=False))
        self._nearby: _Nearby | None = None

    def is_cut(self, entry: Entry) -> bool:
        """Whether the boundary has taken the line out of the conversation."""
        return entry.document < self._boundary and entry.uuid not in self._above_kept

    def up_from(self, leaf: Entry) -> list[Entry]:
        """From the leaf to the root or up to the boundary, oldest first."""
        chain: list[Entry] = []
        seen: set[str] = set()
        entry: Entry | None = leaf
        if self._kept and leaf.uuid == self._anchor:
            entry = self._by_uuid[self._kept[-1]]
        elif leaf.document == self._boundary or self.is_cut(leaf):
            entry = None
        while entry is not None:
            seen.add(entry.uuid)
            chain.append(entry)
            entry = self._above(entry, seen)
        chain.reverse()
        return chain

    def _above(self, entry: Entry, seen: set[str]) -> Entry | None:
        parent = self._above_kept.get(entry.uuid, entry.parent)
        if parent is None:
            return None
        if self._kept and parent == self._anchor and entry.uuid not in self._above_kept:
            parent = self._kept[-1]
        found = self._by_uuid.get(parent)
        if found is not None and found.document == self._boundary:
            return None
        if found is not None and self.is_cut(found):
            found = self._by_uuid[self._kept[-1]] if self._kept else None
            return found if found is not None and found.uuid not in seen else None
        if found is None or found.uuid in seen:
            if self._nearby is None:
                self._nearby = _Nearby(e for e in self._by_uuid.values() if not self.is_cut(e))
            found = self._nearby.ahead_of(entry, seen)
        return found


def kept_lines(kept: Kept, by_uuid: dict[str, Entry]) -> tuple[str, ...]:
    """The uuids of the kept lines in their order; none where one is missing or the walk does not arrive."""
    if kept.anchor not in by_uuid:
        return ()
    if kept.uuids:
        return kept.uuids if all(uuid in by_uuid for uuid in kept.uuids) else ()
    walked: dict[str, None] = {}
    uuid: str | None = kept.tail
    while uuid is not None and uuid in by_uuid and uuid not in walked:
        walked[uuid] = None
        if uuid == kept.head:
            return tuple(reversed(walked))
        uuid = by_uuid[uuid].parent
    return ()


class _Nearby:
    """Finds the line written last ahead of another one, for lines whose parent is not in the file."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        timed = [(time, entry) for entry in entries if (time := _seconds(entry)) is not None]
        timed.reverse()
        timed.sort(key=lambda pair: pair[0])
        self._times = [time for time, _ in timed]
        self._entries = [entry for _, entry in timed]
        self._before = list(range(len(timed)))
        """For each line, the nearest one up to it that has not been passed yet; shortened on each search."""

    def ahead_of(self, entry: Entry, seen: set[str]) -> Entry | None:
        """The newest line on the same side, not newer than ``entry`` and not passed yet, if it is near enough."""
        time = _seconds(entry)
        if time is None:
            return None
        start = bisect_right(self._times, time) - 1
        index = start
        passed: list[int] = []
        while index >= 0:
            if self._before[index] != index:
                passed.append(index)
                index = self._before[index]
            elif self._entries[index].uuid in seen or self._entries[index].sidechain != entry.sidechain:
                passed.append(index)
                self._before[index] = index = index - 1
            else:
                break
        for step in passed:
            self._before[step] = index
        if index < 0 or time - self._times[index] > _NEAR:
            return None
        return self._entries[index]


def _seconds(entry: Entry) -> float | None:
    if entry.time is None:
        return None
    try:
        return datetime.fromisoformat(entry.time).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
