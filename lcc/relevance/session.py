"""What a pass hands from hand to hand: the session that the policies decide about, and what one of them decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lcc.contract.decision import Decision, InputNote
from lcc.contract.modes import Guarantee, RulesMode
from lcc.contract.options import PassOptions
from lcc.contract.reasons import Reason, ReasonAbout
from lcc.contract.report import JudgeFacts
from lcc.relevance.choice import Scored
from lcc.relevance.evidence.guards import Guards, guards_of
from lcc.relevance.ladder import Rung
from lcc.relevance.ports import Ports
from lcc.relevance.reading.calls import FileRead
from lcc.relevance.transcript_recoverable import Surroundings
from lcc.transcript import Message, Pair, Transcript

if TYPE_CHECKING:
    from lcc.stash import Stash
    from lcc.tokens import TokenEstimator


@dataclass(frozen=True, slots=True)
class Session:
    """What every policy is given: the session's pairs, what guards them, and which may be decided about."""

    transcript: Transcript
    options: PassOptions
    ports: Ports
    stash: Stash | None
    """Where removed bytes go; None in a dry run, which decides the same and writes nothing."""
    stash_folder: Path | None
    """The stash's folder, in a dry run too; None where the mode needs no stash."""
    tokens: TokenEstimator
    pairs: tuple[Pair, ...]
    guards: Guards
    candidates: tuple[Pair, ...]
    """The calls that no guard keeps whole, nor any text of their results."""
    all_texts: tuple[Pair, ...]
    """Every text of every result, each as a pair of its own, in order."""
    texts: tuple[Pair, ...]
    """The texts of results that no guard keeps whole, each as a pair of its own."""
    asked: RulesMode
    """The mode that was asked for; `auto` is resolved in ``options``."""
    warnings: tuple[str, ...] = ()
    """What went wrong on a rung that was given up."""

    @property
    def reads(self) -> Mapping[str, FileRead]:
        """The calls that read a single file, by id."""
        return self.guards.facts.reads

    def unguarded(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Those of ``pairs`` that no guard keeps."""
        kept = self.guards.kept
        return [pair for pair in pairs if pair.use.id not in kept]

    def on_recoverable(self, warnings: tuple[str, ...]) -> Session:
        """The same session for `recoverable`, where the stash took nothing."""
        options = replace(self.options, rules_mode="recoverable")
        facts = replace(self.guards.facts, options=options)
        return replace(self, options=options, stash=None, stash_folder=None, guards=guards_of(facts), warnings=warnings)

    def surroundings(self) -> Surroundings:
        """What the recoverable rules look at beside each candidate."""
        return Surroundings(
            pairs=self.pairs,
            reads=self.reads,
            transcript=self.transcript,
            guarded=self.guards.kept,
            failed=self.guards.facts.errors,
            session_cwd=self.transcript.cwd,
            workspace_root=self.options.workspace_root,
            disk_check=self.options.disk_check,
            allow_command_pointers=self.options.allow_command_pointers,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """A decision for every candidate, by call id, or for each of its texts, by text id; and what the report says
    about the policy that made them."""

    decisions: dict[str, Decision]
    provider_used: str
    semantic_guarantee: Guarantee
    rules_mode: RulesMode | None = None
    violations: tuple[str, ...] | None = None
    """What the verification of the mode's own promise found; None where nothing was promised, so nothing verified."""
    recoverability_check: Literal["disk", "transcript_proxy"] | None = None
    degraded: bool = False
    degradation_reason: Reason | ReasonAbout | None = None
    judge: JudgeFacts | None = None
    warnings: tuple[str, ...] = ()
    messages: tuple[Message, ...] | None = None
    """What these decisions make of the transcript, where that has been made and verified already."""
    inputs: Mapping[str, tuple[InputNote, ...]] = field(default_factory=dict)
    """The strings of inputs that became notes, by call id."""
    scored: Mapping[str, Scored] = field(default_factory=dict)
    """How likely each result is needed again, where that was asked."""
    rungs: tuple[Rung, ...] | None = None
    """What each rung of `auto` did; None for every other mode."""
