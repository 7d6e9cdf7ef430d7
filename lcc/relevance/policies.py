"""The policies: who decides about the candidates of a pass, in which order, and what checks it.

Rules first point at what stays in the session, then at what is on disk, then (`stashed`) at what the stash
holds. A judge decides alone, or, with a rules mode that can prove, only about what no proof covers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from lcc.contract.decision import Decision, Drop, FileByTranscript, InputNote, InStash, Keep, KeptLater, Pointer, Trim
from lcc.contract.modes import MODES, Promise, RulesMode
from lcc.contract.reasons import (
    ALREADY_A_NOTE,
    CLEARED_BY_CLIENT,
    KEEP_DISK_NOT_ASKED,
    NO_CANDIDATES,
    STASH_WRITE_FAILED,
    Reason,
    ReasonAbout,
)
from lcc.contract.report import JudgeFacts
from lcc.relevance.choice import Choice, StashedReason, choose
from lcc.relevance.ladder import Load, Rung, load_of
from lcc.relevance.reading.headers import is_only_header
from lcc.relevance.session import Outcome, Session
from lcc.relevance.transcript_inputs import input_changes, input_notes, input_violations
from lcc.relevance.transcript_lossless import NO_SUPERSEDER, LaterOutputs, Output, lossless_violations
from lcc.relevance.transcript_recoverable import Surroundings, recoverable_decisions, recoverable_violations
from lcc.relevance.verification import Violation
from lcc.transcript import Edits, Message, Pair, apply_edits

if TYPE_CHECKING:
    from lcc.judge import DecisionCache
    from lcc.relevance.transcript_stashed import ToStash

DISK_NOT_ASKED = Keep(KEEP_DISK_NOT_ASKED)


def decide(session: Session) -> Outcome:
    """Run the policy that the options ask for."""
    if session.options.provider != "rules":
        return _decide_by_judge(session)
    promise = MODES[session.options.rules_mode].promise
    if promise is None:
        from lcc.relevance.transcript_rules import rules_decisions

        decisions = rules_decisions(session.candidates, session.guards)
        return Outcome(
            decisions,
            "rules",
            "none",
            session.options.rules_mode,
            degradation_reason=None if decisions else NO_CANDIDATES,
        )
    return _decide_by_proof(session, promise)


def edits_of(
    decisions: Mapping[str, Decision], inputs: Mapping[str, Sequence[InputNote]] = MappingProxyType({})
) -> Edits:
    """What the decisions, and the notes in ``inputs``, change in the transcript."""
    texts: dict[str, str] = {}
    dropped: list[str] = []
    for text_id, decision in decisions.items():
        if isinstance(decision, Keep):
            continue
        if isinstance(decision, Drop):
            dropped.append(text_id)
        else:
            texts[text_id] = decision.text
    return Edits(texts, frozenset(dropped), input_changes(inputs))


def _decide_by_proof(session: Session, promise: Promise) -> Outcome:
    mode = MODES[session.options.rules_mode]
    around = session.surroundings() if mode.reads_files else None
    recoverable = _by_recovery(session, session.texts, around) if around else {}
    load = _load(session) if mode.stashes else None
    choice = _choice(session, load) if load is not None else None
    decisions = _walk_back(session, recoverable, choice)
    warnings: tuple[str, ...] = ()
    if mode.stashes:
        from lcc.relevance.transcript_stashed import stash_decisions, write_warnings

        stashed = stash_decisions(_to_stash(session, choice, decisions), session.stash)
        decisions.update(stashed)
        warnings = write_warnings(stashed)
        if warnings and session.asked == "auto":
            return decide(session.on_recoverable(warnings))
    inputs = _inputs_that_go(session, load, decisions) if session.asked == "auto" and load is not None else {}
    messages = apply_edits(session.transcript, edits_of(decisions, inputs))
    violations = _verify(session, decisions, inputs, messages)
    _revert(decisions, inputs, violations, promise.broken)
    reason = promise.broken if violations else STASH_WRITE_FAILED if warnings else None
    return Outcome(
        decisions,
        "rules",
        promise.guarantee if decisions else "none",
        session.options.rules_mode,
        violations=tuple(str(violation) for violation in violations),
        recoverability_check=_check_name(around) if around else None,
        degraded=reason is not None,
        degradation_reason=reason or (None if decisions else NO_CANDIDATES),
        warnings=(*session.warnings, *warnings),
        messages=None if violations else messages,
        inputs=inputs,
        scored=choice.scored if choice else {},
        rungs=_rungs(session, decisions, inputs) if session.asked == "auto" else None,
    )


def _decide_by_judge(session: Session) -> Outcome:
    from lcc.relevance.transcript_judged import decide_judged

    options, ports = session.options, session.ports
    judged = decide_judged(
        session.transcript,
        session.unguarded(session.candidates),
        session.guards.facts.pins,
        options,
        progress=ports.progress,
        deadline=ports.deadline,
        environ=ports.environ,
        client=ports.judge_client,
        cache=_decisions_cache(session),
    )
    guarded = session.guards.kept
    decisions: dict[str, Decision] = {
        pair.use.id: Keep(guarded[pair.use.id]) for pair in session.candidates if pair.use.id in guarded
    }
    decisions.update(judged.decisions)
    proves = MODES[options.rules_mode].reads_files
    warnings: tuple[str, ...] = ()
    violations: tuple[str, ...] | None = None
    if proves:
        warnings = _prove_removals(session, decisions)
        violations = _verify_proven(session, decisions)
    facts = None
    if judged.requests is not None:
        facts = JudgeFacts(
            model_requested=judged.model_requested or options.jev_model,
            model_resolved=judged.jev_model_resolved,
            calls=judged.calls or 0,
            requests=judged.requests,
            state_tokens=judged.state_tokens,
            state_fit_stage=judged.state_fit_stage,
        )
    return Outcome(
        decisions,
        judged.provider_used,
        judged.semantic_guarantee,
        options.rules_mode if proves else None,
        violations=violations,
        recoverability_check=_check_name(session.surroundings()) if proves else None,
        degraded=judged.degraded or bool(warnings) or bool(violations),
        degradation_reason=judged.degradation_reason or _broken(options.rules_mode, violations, warnings),
        judge=facts,
        warnings=(*judged.warnings, *warnings),
    )


def _verify_proven(session: Session, decisions: dict[str, Decision]) -> tuple[str, ...]:
    """Verify the notes that stand beside a judge's own removals, and keep what they cannot give back.

    The judge's trims and drops promise nothing, so they are left out of what is verified.
    """
    promise = MODES[session.options.rules_mode].promise
    proven = {text_id: decision for text_id, decision in decisions.items() if isinstance(decision, Pointer)}
    violations = _verify(session, proven, {}, apply_edits(session.transcript, edits_of(proven)))
    if violations and promise is not None:
        _revert(decisions, {}, violations, promise.broken)
    return tuple(map(str, violations))


def _broken(mode: RulesMode, violations: Sequence[str] | None, warnings: Sequence[str]) -> Reason | ReasonAbout | None:
    promise = MODES[mode].promise
    if violations and promise is not None:
        return promise.broken
    return STASH_WRITE_FAILED if warnings else None


def _decisions_cache(session: Session) -> DecisionCache | None:
    """The judge's earlier decisions, where the options name a file; a dry run does not write it."""
    path = session.options.decisions_cache
    if path is None:
        return None
    from lcc.judge import DecisionCache

    return DecisionCache.open(path, read_only=session.ports.dry_run)


def _prove_removals(session: Session, decisions: dict[str, Decision]) -> tuple[str, ...]:
    """Turn what a judge trims or drops into a pointer or a stash note, where there is proof; returns the warnings.

    With the stash, a removal that could not be stored is kept: the caller asked that nothing be lost.
    """
    calls = [pair for pair in session.candidates if isinstance(decisions[pair.use.id], Trim | Drop)]
    removed = [text for pair in calls for text in pair.texts()]
    safer = _by_recovery(session, removed, session.surroundings())
    warnings: tuple[str, ...] = ()
    stashes = MODES[session.options.rules_mode].stashes
    if stashes:
        from lcc.relevance.transcript_stashed import stash_removed, write_warnings

        unproven = [pair for pair in removed if not isinstance(safer[pair.text_id], Pointer)]
        stashed = stash_removed(unproven, session.tokens.estimate, session.stash)
        safer.update(stashed)
        warnings = write_warnings(stashed)
    for pair in calls:
        verdict = decisions[pair.use.id].verdict
        texts = {text.text_id: replace(safer[text.text_id], verdict=verdict) for text in pair.texts()}
        bodies = [text.text_id for text in pair.texts() if not is_only_header(pair.use.tool, text.result.text)]
        if stashes or (bodies and all(isinstance(texts[text_id], Pointer) for text_id in bodies)):
            del decisions[pair.use.id]
            decisions.update(texts)
    return warnings


def _check_name(around: Surroundings) -> Literal["disk", "transcript_proxy"]:
    return "disk" if around.asks_disk else "transcript_proxy"


def _by_recovery(session: Session, candidates: Sequence[Pair], around: Surroundings) -> dict[str, Decision]:
    """The recoverable rules' verdicts. Where there is a stash, a file that was not read proves nothing: its bytes
    are better off in the stash than behind a pointer that the transcript alone speaks for."""
    decisions = recoverable_decisions(candidates, around)
    if MODES[session.options.rules_mode].stashes:
        for text_id, decision in decisions.items():
            if isinstance(decision, Pointer) and isinstance(decision.proof, FileByTranscript):
                decisions[text_id] = DISK_NOT_ASKED
    return decisions


def _load(session: Session) -> Load:
    """How full the context is, and how much is to go."""
    return load_of(session.transcript.messages, session.options, session.ports, session.tokens)


def _choice(session: Session, load: Load) -> Choice:
    """What goes by its score, among what no guard keeps."""
    facts, kept = session.guards.facts, session.guards.kept
    return choose(session.transcript.messages, session.all_texts, kept, facts.reads, facts.errors, load.to_free)


def _to_stash(session: Session, choice: Choice | None, decisions: Mapping[str, Decision]) -> list[ToStash]:
    """What was chosen and has no other proof."""
    if choice is None:
        return []
    from lcc.relevance.transcript_stashed import ToStash

    found = []
    for pair in session.texts:
        text_id, text = pair.text_id, pair.result.text
        reason = choice.chosen.get(text_id)
        if reason is not None and isinstance(decisions.get(text_id), Keep):
            tokens = session.tokens.estimate(text, pair.use.tool)
            found.append(ToStash(text_id, text, reason, tokens, choice.scored[text_id].need.excerpt))
    return found


def _freed_by_results(session: Session, decisions: Mapping[str, Decision]) -> tuple[int, int]:
    """How many texts became pointers, and the characters that they freed."""
    texts = {pair.text_id: pair.result.text for pair in session.all_texts}
    pointers = {text_id: found for text_id, found in decisions.items() if isinstance(found, Pointer)}
    return len(pointers), sum(len(texts[text_id]) - len(found.text) for text_id, found in pointers.items())


def _inputs_that_go(
    session: Session, load: Load, decisions: Mapping[str, Decision]
) -> dict[str, tuple[InputNote, ...]]:
    """The second rung, where the first did not free enough."""
    _, freed = _freed_by_results(session, decisions)
    to_free = load.still_to_free(freed, session.options.min_reduction)
    if to_free is None or not session.options.inputs:
        return {}
    form = session.transcript.format
    facts = session.guards.facts
    # What only says what became of a result says nothing of the input.
    kept = {call_id for call_id, reason in session.guards.kept.items() if facts.standing.get(call_id) is not reason}
    folders = (session.transcript.cwd, session.options.workspace_root)
    return input_notes(
        [pair for pair in session.pairs if form.input_path(pair.use) is not None],
        kept | facts.errors,
        len(session.transcript.messages),
        session.tokens.estimate,
        session.stash,
        folders=folders if session.surroundings().asks_disk else None,
        to_free=to_free,
    )


def _rungs(
    session: Session, decisions: Mapping[str, Decision], inputs: Mapping[str, Sequence[InputNote]]
) -> tuple[Rung, ...]:
    """What each rung did in the end."""
    pointers, freed = _freed_by_results(session, decisions)
    notes = [note for of_call in inputs.values() for note in of_call]
    in_inputs = Rung("inputs", len(notes), sum(note.chars - len(note.note) for note in notes))
    return (Rung("results", pointers, freed), *((in_inputs,) if notes else ()))


def _walk_back(session: Session, recoverable: Mapping[str, Decision], choice: Choice | None) -> dict[str, Decision]:
    """From the newest text of a result to the oldest: point at a kept later one, else at the file, else keep.

    With a choice only what was chosen is pointed at a file, and what was chosen is no target of a pointer: it goes.
    """
    eligible = {pair.text_id for pair in session.texts}
    outputs = {pair.text_id: _output(pair) for pair in session.all_texts if _may_be_pointed_at(session, pair)}
    later = LaterOutputs(output for text_id, output in outputs.items() if text_id in eligible)
    kept: Mapping[str, Reason] = choice.kept if choice is not None else {}
    chosen: Mapping[str, StashedReason] = choice.chosen if choice is not None else {}
    decisions: dict[str, Decision] = {}
    for message in reversed(session.transcript.messages):
        for result in reversed(message.tool_results):
            for text_id in reversed(result.text_ids()):
                output = outputs.get(text_id)
                if output is None:
                    continue
                if text_id in eligible:
                    decision = later.find(output) or recoverable.get(text_id, NO_SUPERSEDER)
                    if text_id in kept and not _points_at_kept(decision):
                        decision = Keep(kept[text_id])
                    decisions[text_id] = decision
                    if not isinstance(decision, Keep) or text_id in chosen:
                        continue
                later.keep(output)
    return decisions


def _points_at_kept(decision: Decision) -> bool:
    return isinstance(decision, Pointer) and isinstance(decision.proof, KeptLater)


def _may_be_pointed_at(session: Session, pair: Pair) -> bool:
    """Whether a pointer can name this text: in a sound line, in the live context, and no note itself."""
    standing = session.guards.facts.standing
    reason = standing.get(pair.use.id) or (standing.get(pair.text_id) if pair.part is not None else None)
    is_output = reason is None or reason not in (ALREADY_A_NOTE, CLEARED_BY_CLIENT)
    return is_output and pair.result.text_path is not None


def _output(pair: Pair) -> Output:
    return Output(pair.text_id, pair.use.tool, pair.result.text, bool(pair.result.is_error))


def _verify(
    session: Session,
    decisions: Mapping[str, Decision],
    inputs: Mapping[str, Sequence[InputNote]],
    compacted: Sequence[Message],
) -> list[Violation]:
    """What the mode's own verification says of ``compacted``, the messages that these decisions make."""
    original = session.transcript.messages
    if not MODES[session.options.rules_mode].reads_files:
        return lossless_violations(original, compacted)
    stashed = {
        text_id: decision.text
        for text_id, decision in decisions.items()
        if isinstance(decision, Pointer) and isinstance(decision.proof, InStash)
    }
    allow = session.options.allow_command_pointers
    changed = input_changes(inputs)
    found = recoverable_violations(original, compacted, allow_command_pointers=allow, stashed=stashed, inputs=changed)
    if stashed:
        from lcc.relevance.transcript_stashed import stashed_violations

        found += stashed_violations(original, compacted, session.stash, changed)
    if inputs:
        found += input_violations(session.pairs, inputs, session.stash)
    return found


def _revert(
    decisions: dict[str, Decision],
    inputs: dict[str, tuple[InputNote, ...]],
    violations: Sequence[Violation],
    reason: Reason,
) -> None:
    """Keep what the violations concern; one that concerns no single call keeps everything."""
    if not violations:
        return
    keep = Keep(reason)
    everything = any(violation.id is None for violation in violations)
    concerned = {violation.id for violation in violations}
    for call_id, decision in decisions.items():
        if not isinstance(decision, Keep) and (everything or call_id in concerned):
            decisions[call_id] = keep
    for call_id in [call_id for call_id in inputs if everything or call_id in concerned]:
        del inputs[call_id]
