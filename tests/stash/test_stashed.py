"""`stashed`: what the policy takes and leaves, notes that hold, and results kept when nothing can be stored."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from making import MadeSession
from stash.tampering import damage

from lcc.contract.decision import Decision, InStash, Keep, Pointer
from lcc.contract.options import PassOptions
from lcc.contract.reasons import (
    CALL_BEFORE_LATEST_ERROR,
    FAILED_RESULT,
    LATEST_ERROR_RESULT,
    NAMED_IN_GOAL_OR_RECENT_TURNS,
    SHORT_RESULT_KEPT_WHOLE,
    STASH_WRITE_FAILED,
    STASHED,
)
from lcc.relevance.choice import StashedReason
from lcc.relevance.evidence.guards import GuardFacts, Guards, guards_of
from lcc.relevance.reading.calls import file_reads
from lcc.relevance.transcript_stashed import (
    ToStash,
    stash_decisions,
    stash_removed,
    stashed_violations,
    verify_stashed,
    write_warnings,
)
from lcc.stash import Stash, bytes_of_text
from lcc.transcript import Edits, Json, Transcript, apply_edits, messages_to_payload

LONG = "some line of output without anything special in it at all\n" * 40


def count(text: str) -> int:
    return len(text) // 4


def guards_of_stashed(transcript: Transcript) -> Guards:
    pairs = tuple(transcript.pairs())
    options = PassOptions(provider="rules", rules_mode="stashed", preserve_recent=0)
    return guards_of(GuardFacts(transcript, options, pairs, file_reads(pairs)))


class Session(MadeSession):
    """Made call by call in one expression; `later` keeps what is under test away from the newest messages."""

    def add(self, call_id: str, tool: str, given: dict[str, Json], text: str, *, flag: bool | None = None) -> Session:
        self.call(tool, given, text, flag, id=call_id)
        return self

    def later(self, count: int = 60) -> Session:
        self.talk(count)
        return self


def test_an_error_stays_until_the_same_call_succeeded() -> None:
    """A failed test run may go only once the same command has passed later."""
    session = Session().add("bad", "Bash", {"command": "pytest -q"}, LONG, flag=True)
    assert guards_of_stashed(session.later().transcript).kept["bad"] == LATEST_ERROR_RESULT
    session.add("between", "Bash", {"command": "ls"}, "a", flag=False)
    session.add("other", "Bash", {"command": "pytest -q tests/x"}, LONG, flag=True)
    assert guards_of_stashed(session.later().transcript).kept["bad"] == FAILED_RESULT
    session.add("good", "Bash", {"command": "pytest -q"}, "ok", flag=False)
    assert "bad" not in guards_of_stashed(session.later().transcript).kept


def test_an_error_that_came_back_stays() -> None:
    """Success before the failure overcomes nothing."""
    session = Session().add("good", "Bash", {"command": "pytest -q"}, "ok", flag=False)
    session.add("bad", "Bash", {"command": "pytest -q"}, LONG, flag=True)
    assert "bad" in guards_of_stashed(session.later().transcript).kept


def test_what_a_guard_keeps_is_not_asked() -> None:
    """The latest error and the call before it, and what a message names."""
    session = Session().add("named", "Bash", {"command": "cat src/named.c | sort"}, LONG)
    session.add("before", "Bash", {"command": "m"}, LONG, flag=False)
    session.add("error", "Bash", {"command": "n"}, LONG, flag=True)
    session.say("go on with named.c")
    guards = guards_of_stashed(session.later().transcript)
    assert guards.kept == {
        "named": NAMED_IN_GOAL_OR_RECENT_TURNS,
        "before": CALL_BEFORE_LATEST_ERROR,
        "error": LATEST_ERROR_RESULT,
    }


# Decisions ------------------------------------------------------------------------------------------


@pytest.fixture
def stash(tmp_path: Path) -> Stash:
    return Stash(tmp_path / "stash", "s")


def stash_decision(
    text: str, reason: StashedReason, tokens: int, stash: Stash | None, excerpt: tuple[str, ...] = ()
) -> Decision:
    return stash_decisions([ToStash("a", text, reason, tokens, excerpt)], stash)["a"]


def test_the_bytes_are_in_the_stash_when_the_decision_is_there(stash: Stash) -> None:
    """The note names them, and the record says where they are and how much left."""
    text = LONG + "\ud83d ends in half a pair"
    decision = stash_decision(text, "old_command_output", 640, stash)
    sha = hashlib.sha256(bytes_of_text(text)).hexdigest()
    assert isinstance(decision, Pointer)
    assert decision.note == f"[removed: 640 tokens · lcc recall {sha[:12]}]"
    assert decision.text == f"{decision.note}\n[it holds 41 lines]"
    assert (decision.action, decision.reason) == ("replace", STASHED("old_command_output"))
    assert decision.proof == InStash(sha, 640, len(bytes_of_text(text)))
    assert stash.get(sha[:12]) == bytes_of_text(text)


def test_a_dry_run_decides_the_same_and_writes_nothing(stash: Stash) -> None:
    """Not even the folder."""
    assert stash_decision(LONG, "old_search", 5, None) == stash_decision(LONG, "old_search", 5, stash)
    other = Stash(stash.folder.parent / "none")
    stash_decision(LONG, "old_search", 5, None)
    assert not other.folder.exists()


def test_an_excerpt_stands_behind_the_note(stash: Stash) -> None:
    """Word for word; the record's note is the first line alone."""
    text = LONG + "src/widgets/tree.py:12: def build_widget_tree(node):"
    decision = stash_decision(text, "old_search", 640, stash, ("src/widgets/tree.py",))
    sha = hashlib.sha256(text.encode()).hexdigest()
    assert isinstance(decision, Pointer)
    assert decision.note == f"[removed: 640 tokens · lcc recall {sha[:12]}]"
    assert decision.text == decision.note + "\n[it holds 41 lines: src/widgets/tree.py]"


def test_an_excerpt_that_makes_the_note_longer_keeps_the_result(stash: Stash) -> None:
    """Note and excerpt together must be shorter than what went."""
    text = "src/widgets/tree.py " * 3
    assert stash_decision(text, "old_search", 6, stash, ("src/widgets/tree.py",)) == Keep(SHORT_RESULT_KEPT_WHOLE)


def test_what_cannot_be_stored_is_kept_and_said(tmp_path: Path) -> None:
    """A file where the folder should be: every result stays, with the error's name, and one warning."""
    (tmp_path / "file").write_text("in the way")
    chosen = [ToStash("a", LONG, "old_command_output", 9), ToStash("b", LONG + "b", "old_search", 9)]
    decisions = stash_decisions(chosen, Stash(tmp_path / "file" / "stash"))
    assert {decision.action for decision in decisions.values()} == {"keep"}
    assert {decision.reason for decision in decisions.values()} == {STASH_WRITE_FAILED("ENOTDIR")}
    assert write_warnings(decisions) == ("stash_write_failed:ENOTDIR: 2 results were kept",)


def test_a_judges_removals_are_stashed_whatever_they_are(stash: Stash) -> None:
    """The policy is not asked; only a result that its note would not shorten is kept."""
    transcript = Session().add("a", "Bash", {"command": "m"}, LONG).add("b", "Bash", {"command": "m"}, "ok").transcript
    decisions = stash_removed(list(transcript.pairs()), count, stash)
    assert decisions["a"].reason == STASHED("judged_not_needed")
    assert decisions["b"] == Keep(SHORT_RESULT_KEPT_WHOLE)


# The verification -----------------------------------------------------------------------------------


def note_of(decision: Decision) -> str:
    assert isinstance(decision, Pointer)
    return decision.note


def compacted_by(transcript: Transcript, texts: dict[str, str]) -> list[dict[str, Json]]:
    return messages_to_payload(apply_edits(transcript, Edits(texts)))


def test_the_verification_follows_every_note(stash: Stash) -> None:
    """Right notes pass; a note whose object is damaged, missing or another's is reported with its call."""
    session = Session().add("a", "Bash", {"command": "m"}, LONG).add("b", "Bash", {"command": "m"}, LONG + "b")
    transcript = session.transcript
    notes = {
        pair.use.id: note_of(stash_decision(pair.result.text, "old_command_output", 9, stash))
        for pair in transcript.pairs()
    }
    original: Json = session.messages
    right = compacted_by(transcript, notes)
    assert verify_stashed(original, right, stash) == []  # type: ignore[arg-type]
    swapped = compacted_by(transcript, {"a": notes["b"], "b": notes["a"]})
    assert [each.id for each in verify_stashed(original, swapped, stash)] == ["a", "b"]  # type: ignore[arg-type]
    behind = compacted_by(transcript, {"a": notes["a"] + "\n\n<system-reminder>x</system-reminder>"})
    assert [each.id for each in verify_stashed(original, behind, stash)] == ["a"]  # type: ignore[arg-type]
    for entry in list(stash.entries()):
        damage(stash, entry.sha256)
    assert [each.id for each in verify_stashed(original, right, stash)] == ["a", "b"]  # type: ignore[arg-type]


def test_a_dry_runs_notes_are_verified_by_their_digits(stash: Stash) -> None:
    """Without a stash the digits of the note must be those of the removed bytes."""
    transcript = Session().add("a", "Bash", {"command": "m"}, LONG).transcript
    note = note_of(stash_decision(LONG, "old_command_output", 9, None))
    assert stashed_violations(transcript.messages, apply_edits(transcript, Edits({"a": note})), None) == []
    wrong = apply_edits(transcript, Edits({"a": note.replace(note[-13:-1], "0" * 12)}))
    assert [each.id for each in stashed_violations(transcript.messages, wrong, None)] == ["a"]


def test_an_excerpt_must_be_of_the_output(stash: Stash) -> None:
    """A token that the removed output did not hold is a violation; so is a text that is no shorter."""
    text = LONG + "src/widgets/tree.py"
    transcript = Session().add("a", "Bash", {"command": "m"}, text).transcript
    decision = stash_decision(text, "old_search", 9, stash, ("src/widgets/tree.py",))
    assert isinstance(decision, Pointer)
    right = apply_edits(transcript, Edits({"a": decision.text}))
    assert stashed_violations(transcript.messages, right, stash) == []
    wrong = apply_edits(transcript, Edits({"a": decision.text.replace("tree.py", "trees.py")}))
    assert [each.id for each in stashed_violations(transcript.messages, wrong, stash)] == ["a"]
