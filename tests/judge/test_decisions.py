"""The seed's section 2: two questions for each unpinned pair, and what the probabilities decide."""

from __future__ import annotations

import pytest
from judge.judge_world import jev_at, judge, session
from judge.system_one_server import always, answers, http, system_one
from making import MadeSession

from lcc.contract.decision import Keep, Trim, Verdict
from lcc.contract.reasons import TRIM_NOT_SHORTER
from lcc.relevance.transcript_judged import decide_pair, trimmed
from lcc.transcript import Pair, apply_edits, parse_payload


def pair_of(text: str, tool: str = "Bash") -> Pair:
    session = MadeSession()
    session.call(tool, {"command": "ls"}, text)
    return next(session.transcript.pairs())


@pytest.mark.parametrize(
    ("keep_call", "keep_result", "action", "reason"),
    [
        (0.9, 0.9, "keep", "result_still_needed"),
        (0.1, 0.9, "keep", "result_still_needed"),
        (0.0, 0.5, "keep", "result_still_needed"),
        (0.9, 0.49, "trim", "call_kept_result_trimmed"),
        (0.5, 0.0, "trim", "call_kept_result_trimmed"),
        (0.49, 0.49, "drop", "call_and_result_not_needed"),
        (0.0, 0.0, "drop", "call_and_result_not_needed"),
    ],
)
def test_table(keep_call: float, keep_result: float, action: str, reason: str) -> None:
    """Each row of the seed's table, on both sides of the default threshold and on it."""
    decision = decide_pair(pair_of("x" * 900), Verdict(keep_call, keep_result), 0.5, 300, "jev")

    assert (decision.action, decision.reason.code, decision.source) == (action, reason, "jev")
    assert decision.verdict == (keep_call, keep_result)
    assert decision.verdict is not None
    assert decision.verdict.score == max(keep_call, keep_result)


def test_threshold_is_the_callers() -> None:
    """The same verdict falls on the other side of another threshold."""
    verdict = Verdict(0.65, 0.65)

    assert decide_pair(pair_of("x" * 900), verdict, 0.6, 300, "jev").action == "keep"
    assert decide_pair(pair_of("x" * 900), verdict, 0.7, 300, "jev").action == "drop"


@pytest.mark.parametrize("head_chars", [0, 1, 300, 850])
def test_trim_is_head_and_one_note_line(head_chars: int) -> None:
    """A trim is the head, byte for byte, and one line with the number of dropped characters and the tool."""
    text = "".join(f"{n:05d}\n" for n in range(200))

    decision = decide_pair(pair_of(text, "Bash"), Verdict(0.9, 0.1), 0.5, head_chars, "jev")

    assert isinstance(decision, Trim)
    assert decision.text.startswith(text[:head_chars])
    rest = decision.text[head_chars:].removeprefix("\n")
    assert rest == decision.note
    assert "\n" not in decision.note
    assert str(len(text) - head_chars) in decision.note
    assert "Bash" in decision.note
    assert len(decision.text) < len(text)


def test_trim_head_is_300_characters_by_default() -> None:
    """The request's default head is 300 characters."""
    with system_one(always(lambda name: 0.9 if name.startswith("keep_call_") else 0.1)) as server:
        outcome = judge(parse_payload(session(6)), jev_at(server.url))

    trim = outcome.decisions["t1"]
    assert isinstance(trim, Trim)
    assert trim.text.rindex("\n") in (299, 300)


@pytest.mark.parametrize("length", [0, 10, 300, 301, 340])
def test_trim_that_is_not_shorter_is_a_keep(length: int) -> None:
    """Where head and note line would be as long as the result, the result stays."""
    decision = decide_pair(pair_of("y" * length), Verdict(0.9, 0.1), 0.5, 300, "jev")

    assert decision == Keep(TRIM_NOT_SHORTER, "jev", Verdict(0.9, 0.1))


def test_trimmed_result_is_not_trimmed_again() -> None:
    """The note of an earlier trim stays true: a second trim would count the wrong characters."""
    made = trimmed(pair_of("z" * 5000), 300)
    assert made is not None
    _, once = made

    for head_chars in (0, 10, 300):
        assert trimmed(pair_of(once), head_chars) is None


def test_note_of_a_tool_with_a_line_break_is_one_line() -> None:
    """A tool's name cannot break the note line."""
    made = trimmed(pair_of("z" * 5000, "Ba\nsh"), 300)

    assert made is not None
    assert "\n" not in made[0]


def test_two_questions_for_each_unpinned_pair_and_none_for_a_pinned_one() -> None:
    """Every pair outside the first and the newest messages is asked about twice, by its id; no other is."""
    with system_one(always()) as server:
        outcome = judge(parse_payload(session(20)), jev_at(server.url), preserve_recent=6)

    asked = [name for request in server.asked for name in request.questions]
    unpinned = [f"t{n}" for n in range(1, 18)]  # the newest six messages are two and a half pairs and the last word
    assert sorted(asked) == sorted([f"keep_call_{i}" for i in unpinned] + [f"keep_result_{i}" for i in unpinned])
    assert set(outcome.decisions) == set(unpinned)
    assert outcome.questions_asked == 2 * len(unpinned)


def test_questions_are_noul_and_readable_by_themselves() -> None:
    """A question says which call it is about, what came of it, and what yes and no mean."""
    with system_one(always()) as server:
        judge(parse_payload(session(6)), jev_at(server.url), question="finish the parser fix")

    first = server.asked[0].json
    question = first["questions"]["keep_result_t1"]
    assert question["type"] == "noul"
    assert set(question["criteria"]) == {"true", "false"}
    assert "#1 Read step 1" in question["instructions"]
    assert "ok, 900 chars" in question["instructions"]
    assert first["state"]["goal"] == "finish the parser fix"
    assert first["model"] == "jev-latest"


def test_a_dropped_call_goes_with_its_result_and_nothing_else_changes() -> None:
    """The edits leave no half of a pair, and every text stands."""
    transcript = parse_payload(session(12))
    with system_one(always(0.1)) as server:
        outcome = judge(transcript, jev_at(server.url))
    from lcc.relevance.policies import edits_of

    after = apply_edits(transcript, edits_of(outcome.decisions))

    uses = {use.id for message in after for use in message.tool_uses}
    results = {result.tool_use_id for message in after for result in message.tool_results}
    assert uses == results == {"t10", "t11", "t12"}
    assert [m.text for m in after if m.text] == [m.text for m in transcript.messages if m.text]


def test_results_do_not_depend_on_the_order_of_the_answers() -> None:
    """Slow first answers and fast last ones give the same decisions and the same request bodies."""
    transcript = parse_payload(session(40))

    def value(name: str) -> float:
        return (int(name.rsplit("t", 1)[1]) * 7 % 10) / 10

    def slow_first(asked):  # type: ignore[no-untyped-def]
        yield 0.15 if asked.number == 0 else 0.0
        yield from http(200, answers(asked, value))

    outcomes, bodies = [], []
    for respond, workers in ((slow_first, 4), (always(value), 1)):
        with system_one(respond) as server:
            outcomes.append(judge(transcript, jev_at(server.url), max_workers=workers))
        bodies.append(sorted(request.body for request in server.asked))

    assert outcomes[0].decisions == outcomes[1].decisions
    assert list(outcomes[0].decisions) == list(outcomes[1].decisions)
    assert bodies[0] == bodies[1]
