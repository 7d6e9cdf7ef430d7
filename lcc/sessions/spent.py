"""What the sessions on this machine cost and what compactions saved of it, from the session files alone.

Who else writes these files: the client, while a session runs. They are only read, one after the other.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lcc.client_folders import project_folders
from lcc.private_files import read_bounded
from lcc.sessions.listing import MAX_SESSION_BYTES, session_files
from lcc.tokens.requests import Spending, spending_of
from lcc.tokens.savings import Savings, savings

if TYPE_CHECKING:
    from lcc.transcript import Json

_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,79}")
_COMPACTED = b"compact_boundary"


class Spent(NamedTuple):
    """One session file with its sums."""

    path: Path
    modified: float
    """Seconds since 1970."""
    savings: Savings


class SavedSum(NamedTuple):
    """The sums of several sessions. Costs are in tokens at the plain input price."""

    sessions: int
    compactions: int
    recalls: int
    cost: float
    """Measured."""
    saved: float
    """Estimated."""

    @property
    def share(self) -> float:
        """Of what they would have cost without the compactions, the share that was saved."""
        without = self.cost + self.saved
        return self.saved / without if without > 0 else 0.0

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        return {
            "sessions": self.sessions,
            "compactions": self.compactions,
            "recalls": self.recalls,
            "cost_measured": round(self.cost),
            "cost_without_estimated": round(self.cost + self.saved),
            "saved_estimated": round(self.saved),
        }


def read_savings(path: Path, window: int | None = None) -> Savings:
    """The sums of the session file ``path``, with what its sub-agents' files beside it cost as ``aside``.

    Damaged lines say nothing. Raises ``OSError`` for the session file; sub-agents' that cannot be read are left out.
    """
    found = savings(_spending(path), window)
    return replace(
        found, aside=found.aside + sum(map(_cost_of, sorted(path.with_suffix("").glob("subagents/**/agent-*.jsonl"))))
    )


def _cost_of(path: Path) -> float:
    try:
        spending = _spending(path)
    except OSError:
        return 0.0
    return sum(request.cost for request in (*spending.requests, *spending.aside))


def _spending(path: Path) -> Spending:
    return spending_of(read_bounded(path, MAX_SESSION_BYTES).split(b"\n"))


def savings_of(session: str | None, env: Mapping[str, str]) -> Savings | None:
    """The sums of the session with that id, where Claude Code has its file; None for one that cannot be read."""
    if session is None or not _ID.fullmatch(session):
        return None
    for folder in project_folders(env):
        with contextlib.suppress(OSError):
            return read_savings(folder / f"{session}.jsonl")
    return None


def compacted_sessions(folders: Iterable[Path]) -> Iterator[Spent]:
    """The sessions in ``folders`` that went on after a compaction that left notes; unreadable ones are left out."""
    for folder in folders:
        try:
            files = session_files([folder])
        except OSError:
            continue
        for path in files:
            try:
                is_compacted = _COMPACTED in read_bounded(path, MAX_SESSION_BYTES)
                if is_compacted and (found := read_savings(path)).compactions:
                    yield Spent(path, os.stat(path).st_mtime, found)
            except OSError:
                continue


def summed(spent: Iterable[Spent]) -> SavedSum:
    """The sums of those sessions."""
    found = [each.savings for each in spent]
    return SavedSum(
        sessions=len(found),
        compactions=sum(len(each.compactions) for each in found),
        recalls=sum(each.recalls for each in found),
        cost=sum(each.cost for each in found),
        saved=sum(each.saved for each in found),
    )
