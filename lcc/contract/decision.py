"""What a pass decides about one call: the values that every policy returns and the report prints.

A decision is one of four. What points at something holds the proof of it, of the kind that its record needs, so
that a record without its proof cannot be built. Decisions hold no call id, so equal ones are shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from lcc.contract.reasons import Reason
from lcc.transcript import Path

Action = Literal["keep", "trim", "drop", "dedupe", "replace"]
Source = Literal["pin", "rules", "jev", "laya", "fail_safe"]
Check = Literal["disk", "transcript_proxy", "read_only_allowlist", "stash"]


class Verdict(NamedTuple):
    """A judge's two probabilities about a call, each between 0 and 1."""

    keep_call: float
    keep_result: float

    @property
    def score(self) -> float:
        """The larger of the two: a call goes where it is below the threshold."""
        return max(self)


class KeptLater(NamedTuple):
    """A later result that is kept, ``kept_at`` its call id, holds the same output."""

    kept_at: str


class FileOnDisk(NamedTuple):
    """The file held exactly what went, when it was read for the proof.

    ``path`` is as the call named it (relative to ``cwd``), ``lines`` 1-based and inclusive, None for the whole
    file. ``named`` is the absolute path that was read, ``real`` what it resolved to, ``sha256`` (64 hex digits)
    the digest of all of its bytes.
    """

    path: str
    cwd: str | None
    lines: tuple[int, int] | None
    named: str
    real: str
    sha256: str


class FileByTranscript(NamedTuple):
    """No later call of the session can have written the file; it was not read. The fields are `FileOnDisk`'s."""

    path: str
    cwd: str | None
    lines: tuple[int, int] | None


class CommandAgain(NamedTuple):
    """``command``, run again in ``cwd``, only reads."""

    command: str
    cwd: str | None


class InStash(NamedTuple):
    """The stash holds the bytes as the object ``sha256`` (64 hex digits); ``tokens`` and ``size`` (bytes) left."""

    sha256: str
    tokens: int
    size: int


Proof: TypeAlias = KeptLater | FileOnDisk | FileByTranscript | CommandAgain | InStash
"""Why what went can be had back, and from where."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The call and its result stay as they are."""

    action: ClassVar[Literal["keep"]] = "keep"
    reason: Reason
    source: Source = "rules"
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Pointer:
    """The result becomes ``text``, in which ``note`` is the one line that says where ``proof`` gives it back."""

    proof: Proof
    reason: Reason
    note: str
    text: str
    source: Source = "rules"
    verdict: Verdict | None = None

    @property
    def action(self) -> Literal["dedupe", "replace"]:
        """As the record names it."""
        return "dedupe" if isinstance(self.proof, KeptLater) else "replace"


@dataclass(frozen=True, slots=True)
class Trim:
    """The result becomes ``text``, a part of it, and ``note``, the line in it that says how much went."""

    action: ClassVar[Literal["trim"]] = "trim"
    reason: Reason
    note: str
    text: str
    source: Source = "rules"
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """The call goes, and its result with it."""

    action: ClassVar[Literal["drop"]] = "drop"
    reason: Reason
    source: Source = "rules"
    verdict: Verdict | None = None


class InputNote(NamedTuple):
    """One string of a call's input that became ``note``; ``path`` is where it stands within the input.

    ``sha256`` (64 hex digits) and ``chars`` are those of the string that went.
    """

    path: Path
    note: str
    proof: FileOnDisk | InStash
    sha256: str
    chars: int


Decision: TypeAlias = Keep | Pointer | Trim | Drop
"""The verdict on one call."""
