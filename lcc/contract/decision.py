"""What a pass decides about one call: the values that every policy returns and the report prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Action = Literal["keep", "trim", "drop", "dedupe", "replace"]
Source = Literal["pin", "rules", "jev", "laya", "fail_safe"]
Check = Literal["disk", "transcript_proxy", "read_only_allowlist", "stash"]


class FileRecovery(NamedTuple):
    """Re-read ``path`` (relative to ``cwd``); ``lines`` is 1-based and inclusive, None for the whole file."""

    path: str
    cwd: str | None
    lines: tuple[int, int] | None


class CommandRecovery(NamedTuple):
    """Run ``command`` again in ``cwd``."""

    command: str
    cwd: str | None


class StashRecovery(NamedTuple):
    """Recall the object ``sha256`` (64 hex digits) from the stash; ``tokens`` and ``size`` (bytes) are what left."""

    sha256: str
    tokens: int
    size: int


Recovery: TypeAlias = FileRecovery | CommandRecovery | StashRecovery


class DiskProof(NamedTuple):
    """The file that was read for the proof: as named, as resolved, and the sha256 of all of its bytes."""

    path: str
    real: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on one call and what stands in for its result.

    ``text`` is the result's new text, None when it stays as it is (keep) or goes with its call (drop).
    ``note`` is the one-line pointer inside ``text``. Decisions hold no call id, so equal keeps are shared.
    """

    action: Action
    reason: str
    source: Source = "rules"
    text: str | None = None
    note: str | None = None
    kept_at: str | None = None
    recover: Recovery | None = None
    check: Check | None = None
    disk: DiskProof | None = None
    score: float | None = None
    keep_call: float | None = None
    keep_result: float | None = None
