"""`stashed`: what the policy takes and leaves, notes that hold, and results kept when nothing can be stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from making import MadeSession
from stash.tampering import damage

from lcc.contract.decision import Decision, InStash, Keep, KeptLater, Pointer
from lcc.contract.options import PassOptions
from lcc.contract.reasons import (
    CALL_BEFORE_LATEST_ERROR,
    FAILED_RESULT,
    FILE_WRITTEN_LATER,
    IDENTICAL_OUTPUT_KEPT_LATER,
    KEEP_DISK_MISMATCH,
    KEEP_DISK_MISSING,
    LATEST_ERROR_RESULT,
    NAMED_IN_GOAL_OR_RECENT_TURNS,
    NOT_RECOVERABLE,
    NOT_STASH_ELIGIBLE,
    SHORT_RESULT_KEPT_WHOLE,
    STASH_WRITE_FAILED,
    STASHED,
    Reason,
)
from lcc.relevance.evidence.guards import GuardFacts, Guards, guards_of
from lcc.relevance.reading.calls import file_reads
from lcc.relevance.stash_policy import ForStash, StashChoice, StashedReason, StashPolicy, choose_for_stash
from lcc.relevance.transcript_stashed import (
    stash_decision,
    stash_kept,
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

    def said(self, text: str) -> Session:
        self.say(text, "assistant")
        return self

    def later(self, count: int = 60) -> Session:
        self.talk(count)
        return self

    def choices(self, policy: StashPolicy = StashPolicy()) -> dict[str, StashChoice]:  # noqa: B008
        transcript = self.transcript
        guards = guards_of_stashed(transcript)
        unguarded = [pair for pair in guards.facts.pairs if pair.use.id not in guards.kept]
        choices = choose_for_stash(transcript, unguarded, guards.facts.errors, count, policy)
        return {**guards.kept, **choices}


@pytest.mark.parametrize(
    ("tool", "given", "reason"),
    [
        ("Bash", {"command": "make"}, "old_command_output"),
        ("Read", {"file_path": "/p/a.py"}, "old_file_read"),
        ("Grep", {"pattern": "x"}, "old_search"),
        ("WebFetch", {"url": "https://example.org"}, "old_web_page"),
        ("Edit", {"file_path": "/p/a.py"}, "old_edit_output"),
        ("mcp__tracker__list", {}, "old_tool_output"),
    ],
)
def test_an_old_long_result_goes_with_the_reason_of_its_kind(
    tool: str, given: dict[str, Json], reason: StashedReason
) -> None:
    """Every kind of tool output can be stashed."""
    choice = Session().add("a", tool, given, LONG).later().choices()["a"]
    assert choice == ForStash(reason, count(LONG))


@pytest.mark.parametrize(
    ("tool", "given", "text"),
    [
        ("TodoWrite", {"todos": []}, LONG),
        ("ExitPlanMode", {"plan": "x"}, LONG),
        ("AskUserQuestion", {"question": "which one?"}, LONG),
        ("Skill", {"skill": "x"}, LONG),
        ("Task", {"prompt": "look"}, LONG + "agentId: ad0e154 (for resuming to continue this agent's work if needed)"),
    ],
)
def test_plans_questions_and_resume_trailers_stay(tool: str, given: dict[str, Json], text: str) -> None:
    """However old they are."""
    assert Session().add("a", tool, given, text).later().choices()["a"] == NOT_STASH_ELIGIBLE


def test_the_newest_messages_stay_to_the_message() -> None:
    """A result is recent when it stands among the policy's newest messages."""
    policy = StashPolicy(recent_messages=10)
    assert not isinstance(Session().add("a", "Bash", {"command": "make"}, LONG).later(9).choices(policy)["a"], ForStash)
    assert isinstance(Session().add("a", "Bash", {"command": "make"}, LONG).later(10).choices(policy)["a"], ForStash)


def test_an_error_stays_until_the_same_call_succeeded() -> None:
    """A failed test run goes only once the same command has passed later."""
    session = Session().add("bad", "Bash", {"command": "pytest -q"}, LONG, flag=True)
    assert session.later().choices()["bad"] == LATEST_ERROR_RESULT
    session.add("between", "Bash", {"command": "ls"}, "a", flag=False)
    session.add("other", "Bash", {"command": "pytest -q tests/x"}, LONG, flag=True)
    assert session.later().choices()["bad"] == FAILED_RESULT
    session.add("good", "Bash", {"command": "pytest -q"}, "ok", flag=False)
    assert session.later().choices()["bad"] == ForStash("error_overcome", count(LONG))


def test_an_error_that_came_back_stays() -> None:
    """Success before the failure overcomes nothing."""
    session = Session().add("good", "Bash", {"command": "pytest -q"}, "ok", flag=False)
    session.add("bad", "Bash", {"command": "pytest -q"}, LONG, flag=True)
    assert not isinstance(session.later().choices()["bad"], ForStash)


@pytest.mark.parametrize(
    "later",
    [
        "The culprit is build_widget_tree, called from src/widgets/tree.py.",
        "see src/widgets/tree.py: build_widget_tree",
    ],
)
def test_a_result_that_the_newest_turns_quote_stays(later: str) -> None:
    """Distinctive words that come back in a late text keep the result that they came from."""
    text = LONG + "src/widgets/tree.py:12: def build_widget_tree(node):\n"
    session = Session().add("a", "Bash", {"command": "make"}, text).later()
    assert isinstance(session.choices()["a"], ForStash)
    assert not isinstance(session.said(later).choices()["a"], ForStash)


def test_words_of_the_language_keep_nothing() -> None:
    """Long plain words are in every text."""
    text = LONG + "configuration environment application development"
    session = Session().add("a", "Bash", {"command": "make"}, text).later()
    assert isinstance(
        session.said("The configuration environment application development is done").choices()["a"], ForStash
    )


def test_only_the_latest_source_of_a_quoted_value_stays() -> None:
    """When two results hold the quoted words, the newer one is where the session has them from."""
    text = LONG + "src/widgets/tree.py build_widget_tree"
    session = Session().add("old", "Bash", {"command": "make"}, text).add("new", "Bash", {"command": "make"}, text)
    choices = session.later().said("src/widgets/tree.py has build_widget_tree").choices()
    assert isinstance(choices["old"], ForStash)
    assert not isinstance(choices["new"], ForStash)


def test_an_input_counts_as_a_use_and_the_users_own_words_do_not() -> None:
    """Later calls quote results; a text that came before its result does not quote it."""
    text = LONG + "src/widgets/tree.py build_widget_tree"
    before = Session().said("src/widgets/tree.py build_widget_tree").add("a", "Bash", {"command": "m"}, text)
    policy = StashPolicy(recent_messages=0, use_messages=1000)
    assert isinstance(before.choices(policy)["a"], ForStash)
    given: dict[str, Json] = {"file_path": "src/widgets/tree.py", "old_string": "def build_widget_tree("}
    after = Session().add("a", "Bash", {"command": "m"}, text).later().add("b", "Edit", given, "ok")
    assert not isinstance(after.choices()["a"], ForStash)


def test_short_results_stay_whole() -> None:
    """By characters, and by what the note would save."""
    session = Session().add("a", "Bash", {"command": "m"}, "x" * 399).add("b", "Bash", {"command": "m"}, "y" * 560)
    choices = session.later().choices()
    assert choices["a"] == choices["b"] == SHORT_RESULT_KEPT_WHOLE


# Decisions ------------------------------------------------------------------------------------------


@pytest.fixture
def stash(tmp_path: Path) -> Stash:
    return Stash(tmp_path / "stash", "s")


def kept(ids: Sequence[str], reason: Reason = NOT_RECOVERABLE) -> dict[str, Decision]:
    return dict.fromkeys(ids, Keep(reason))


def test_the_bytes_are_in_the_stash_when_the_decision_is_there(stash: Stash) -> None:
    """The note names them, and the record says where they are and how much left."""
    text = LONG + "\ud83d ends in half a pair"
    decision = stash_decision(text, "old_command_output", 640, stash)
    sha = hashlib.sha256(bytes_of_text(text)).hexdigest()
    assert isinstance(decision, Pointer)
    assert decision.text == decision.note == f"[removed: 640 tokens · lcc recall {sha[:12]}]"
    assert (decision.action, decision.reason) == ("replace", STASHED("old_command_output"))
    assert decision.proof == InStash(sha, 640, len(bytes_of_text(text)))
    assert stash.get(sha[:12]) == bytes_of_text(text)


def test_a_dry_run_decides_the_same_and_writes_nothing(stash: Stash) -> None:
    """Not even the folder."""
    assert stash_decision(LONG, "old_search", 5, None) == stash_decision(LONG, "old_search", 5, stash)
    other = Stash(stash.folder.parent / "none")
    stash_decision(LONG, "old_search", 5, None)
    assert not other.folder.exists()


def test_what_cannot_be_stored_is_kept_and_said(tmp_path: Path) -> None:
    """A file where the folder should be: every result stays, with the error's name, and one warning."""
    (tmp_path / "file").write_text("in the way")
    transcript = Session().add("a", "Bash", {"command": "m"}, LONG).add("b", "Grep", {}, LONG + "b").later().transcript
    decisions = stash_kept(
        transcript, list(transcript.pairs()), (), kept(["a", "b"]), count, Stash(tmp_path / "file" / "stash")
    )
    assert {decision.action for decision in decisions.values()} == {"keep"}
    assert {decision.reason for decision in decisions.values()} == {STASH_WRITE_FAILED("ENOTDIR")}
    assert write_warnings(decisions) == ("stash_write_failed:ENOTDIR: 2 results were kept",)


def test_what_a_guard_keeps_is_not_asked() -> None:
    """The latest error and the call before it, and what a message names."""
    session = Session().add("named", "Bash", {"command": "cat src/named.c | sort"}, LONG)
    session.add("before", "Bash", {"command": "m"}, LONG, flag=False)
    session.add("error", "Bash", {"command": "n"}, LONG, flag=True)
    session.messages.append({"role": "user", "text": "go on with named.c"})
    guards = guards_of_stashed(session.later().transcript)
    assert guards.kept == {
        "named": NAMED_IN_GOAL_OR_RECENT_TURNS,
        "before": CALL_BEFORE_LATEST_ERROR,
        "error": LATEST_ERROR_RESULT,
    }


@pytest.mark.parametrize("reason", [NOT_RECOVERABLE, KEEP_DISK_MISMATCH, FILE_WRITTEN_LATER, KEEP_DISK_MISSING])
def test_what_no_proof_covers_goes(stash: Stash, reason: Reason) -> None:
    """Whatever the reason is that it could not be pointed at."""
    transcript = Session().add("a", "Read", {"file_path": "/a"}, LONG).later().transcript
    decisions = stash_kept(transcript, list(transcript.pairs()), (), kept(["a"], reason), count, stash)
    assert decisions["a"].reason == STASHED("old_file_read")


def test_what_a_note_points_at_stays(stash: Stash) -> None:
    """The target of a kept-output note is never replaced."""
    transcript = Session().add("a", "Bash", {"command": "m"}, LONG).add("b", "Bash", {"command": "m"}, LONG)
    parsed = transcript.later().transcript
    decisions = kept(["b"]) | {"a": Pointer(KeptLater("b"), IDENTICAL_OUTPUT_KEPT_LATER, "note", "note")}
    assert stash_kept(parsed, list(parsed.pairs()), (), decisions, count, stash) == {}


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
