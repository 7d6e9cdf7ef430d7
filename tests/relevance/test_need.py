"""How likely a result is needed again: each feature of the table, its line of words, and the excerpt (issue text: a
small explainable score)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lcc.contract.notes import count_lines, excerpt_line, find_note, stash_note
from lcc.relevance.need import POINTS, Feature, Need, need_key, needs_of, why
from lcc.relevance.need.excerpt import excerpt_of
from lcc.relevance.reading.calls import file_reads
from lcc.transcript import Json, parse_payload

Call = tuple[str, dict[str, Json], str]
FILLER: Call = ("Bash", {"command": "true"}, "ok")
UNSEEN = "the value of frobnicate_total_4711 is kept here"


def features(
    calls: Sequence[Call], *, of: int = 0, turns_after: dict[int, str] | None = None, failed: Sequence[int] = ()
) -> set[Feature]:
    """The features of the ``of``-th call; ``turns_after`` maps a call's number to what the user says behind it."""
    messages: list[dict[str, Json]] = [{"role": "user", "text": "Go on."}]
    for number, (tool, given, text) in enumerate(calls):
        use: Json = {"tool_use_id": f"t{number}", "tool": tool, "input": given}
        messages.append({"role": "assistant", "text": "", "toolUses": [use]})
        messages.append({"role": "user", "toolResults": [{"tool_use_id": f"t{number}", "text": text}]})
        if turns_after and number in turns_after:
            messages.append({"role": "user", "text": turns_after[number]})
    transcript = parse_payload({"messages": messages})
    pairs = list(transcript.pairs())
    needs = needs_of(
        transcript.messages,
        pairs,
        candidates={f"t{of}"},
        pinned=(),
        reads=file_reads(pairs),
        failed={f"t{number}" for number in failed},
    )
    return set(needs[f"t{of}"].features)


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Read", {"file_path": "/p/a.py"}, {"read"}),
        ("Bash", {"command": "cat /p/a.py"}, {"read"}),
        ("Bash", {"command": "cd /p && cat a.py | wc -l"}, {"read"}),
        ("Read", {"file_path": "/p/a.py", "offset": 3, "limit": 4}, {"read", "partial"}),
        ("Bash", {"command": "sed -n '3,9p' /p/a.py"}, {"read", "partial"}),
        ("Task", {"prompt": "look"}, {"agent"}),
        ("Glob", {"pattern": "*.py"}, {"list"}),
        ("Bash", {"command": "rg -n total src | head"}, {"list"}),
        ("Grep", {"pattern": "total"}, {"search"}),
        ("Bash", {"command": "cd /p && CI=1 timeout 60 python -m pytest -q"}, {"test"}),
        ("Bash", {"command": "npm run build"}, {"test"}),
        ("WebFetch", {"url": "https://example.org"}, {"web"}),
        ("mcp__tracker__list_issues", {}, {"web"}),
        ("TodoWrite", {"todos": []}, {"plan"}),
        ("Write", {"file_path": "/p/b.py", "content": "x"}, {"write"}),
        ("Edit", {"file_path": "/p/b.py", "old_string": "x", "new_string": "y"}, set()),
        ("Bash", {"command": "git log --oneline"}, set()),
    ],
)
def test_the_kind_of_a_call_gives_its_feature(tool: str, given: dict[str, Json], expected: set[Feature]) -> None:
    rest: list[Call] = [FILLER, ("Edit", {"file_path": "/p/z.py", "old_string": "q", "new_string": "r"}, "done")]

    assert features([(tool, given, "ok"), *rest]) == expected


def test_age_counts_in_calls_and_in_turns() -> None:
    assert features([FILLER] * 31) == set()
    assert features([FILLER] * 32) == {"calls_30"}
    assert features([FILLER] * 62) == {"calls_30", "calls_60"}
    assert features([FILLER] * 3, turns_after={1: "And now the other one."}) == {"turn_1"}
    assert features([FILLER] * 3, turns_after={0: "Next.", 1: "And the next."}) == {"turn_1", "turn_2"}


def test_what_a_client_says_in_the_users_place_is_no_turn() -> None:
    said = {1: "<local-command-stdout>done</local-command-stdout>"}

    assert features([FILLER] * 3, turns_after=said) == set()


def test_words_count_only_where_they_stand_nowhere_else() -> None:
    words = [f"value_{number}_of_it" for number in range(16)]
    plain: Call = ("Bash", {"command": "./x"}, UNSEEN)

    assert features([plain, FILLER]) == {"new_1"}
    assert features([("Bash", {"command": "./x"}, " ".join(words[:4])), FILLER]) == {"new_1", "new_4"}
    assert features([("Bash", {"command": "./x"}, " ".join(words)), FILLER]) == {"new_1", "new_4", "new_16"}
    assert features([plain, plain]) == set(), "a newer result holds them"
    assert features([plain, ("Bash", {"command": "echo frobnicate_total_4711"}, "ok")]) == {"used_lately"}
    assert features([plain, FILLER], turns_after={1: "So frobnicate_total_4711 it is."}) == {"turn_1", "used_lately"}


def test_reads_know_what_became_of_their_file() -> None:
    read: Call = ("Read", {"file_path": "/p/ledger.py"}, "1\tx")
    edit: Call = ("Edit", {"file_path": "/p/z.py", "old_string": "q", "new_string": "r"}, "done")

    assert features([read, FILLER]) == {"read", "edit_rhythm"}, "no edit yet"
    assert features([read, edit, FILLER]) == {"read"}
    assert features([read, *[edit] * 5]) == {"read", "edit_rhythm"}, "five edits in the last ten calls"
    assert features([read, read, edit]) == {"read", "read_again"}
    named = features([read, edit, FILLER], turns_after={2: "Look at ledger.py once more."})
    assert named == {"read", "turn_1", "named_lately"}


def test_failed_calls_are_told() -> None:
    assert features([FILLER, FILLER], failed=[0]) == {"failed"}


def test_the_line_says_the_strongest_of_what_adds_up() -> None:
    need = Need(0.0, ("read", "calls_30", "calls_60", "turn_1", "partial"))

    assert why(need) == "file read, over 60 calls ago, a turn ago, part of a file"


def test_every_feature_has_words_and_the_key_falls_with_what_is_saved() -> None:
    assert all(points.words for points in POINTS.values())
    assert need_key(1.0, 10_000, 100_000) < need_key(1.0, 1_000, 100_000)
    assert need_key(1.0, 1_000, 200_000) < need_key(1.0, 1_000, 100_000)
    assert need_key(0.5, 1_000, 100_000) < need_key(1.0, 1_000, 100_000)


class TestExcerpt:
    def test_new_paths_are_kept_word_for_word(self) -> None:
        text = "src/ledger/totals.py:12: x\n./docs/plan.md: y\nsrc/ledger/totals.py:13"

        assert excerpt_of(text, "search", {b"docs/plan.md"}) == ("src/ledger/totals.py",)

    def test_reads_pages_and_plans_have_none(self) -> None:
        for group in ("read", "web", "plan", "write"):
            assert excerpt_of("src/ledger/totals.py", group, ()) == ()

    def test_ids_are_kept_while_they_are_few(self) -> None:
        log = "\n".join(f"{number:07x}a Fix {number}" for number in range(0xABC0000, 0xABC0000 + 12))

        assert len(excerpt_of(log, None, ())) == 12
        assert excerpt_of(log + "\nfedcba98 more", None, ()) == ()
        assert excerpt_of("took 12345678 ms", None, ()) == (), "a number is no id"

    def test_an_agents_own_id_stays(self) -> None:
        assert excerpt_of("Done.\nagentId: a1b2-c3 (use it to go on)", "agent", ()) == ("a1b2-c3",)

    def test_long_lists_are_cut(self) -> None:
        text = "\n".join(f"src/part_{number}/module_{number}.py" for number in range(100))

        kept = excerpt_of(text, "list", ())

        assert len(kept) == 30
        assert sum(map(len, kept)) <= 1500

    @pytest.mark.parametrize("token", ["a b/c.py", "a/[b].py", "a/b\u2028.py", ""])
    def test_a_token_that_cannot_be_written_is_left_out(self, token: str) -> None:
        assert excerpt_line([token, "src/a.py"]) == "\n[it holds: src/a.py]"

    def test_many_lines_are_counted_in_the_note(self) -> None:
        note = stash_note(812, "0123456789ab" + "0" * 52)

        assert excerpt_line(["src/a.py"], 39) == excerpt_line(["src/a.py"])
        assert excerpt_line(["src/a.py"], 40) == "\n[it holds 40 lines: src/a.py]"
        assert excerpt_line([], 1234) == "\n[it holds 1234 lines]"
        both, alone = find_note(note + excerpt_line(["src/a.py"], 40)), find_note(note + excerpt_line([], 1234))
        assert both is not None
        assert (both.line_count, both.excerpt) == (40, ("src/a.py",))
        assert alone is not None
        assert (alone.line_count, alone.excerpt) == (1234, ())
        assert find_note(note + "\n[it holds]") is None
        assert [count_lines(text) for text in ("", "a", "a\n", "a\nb", "\n")] == [1, 1, 1, 2, 1]

    def test_the_note_is_recognised_with_its_excerpt(self) -> None:
        text = stash_note(812, "0123456789ab" + "0" * 52) + excerpt_line(["src/a.py", "deadbee"])

        found = find_note(text)

        assert found is not None
        assert (found.kind, found.target, found.excerpt) == ("stash", "0123456789ab", ("src/a.py", "deadbee"))
        assert found.text == text
        assert find_note(text + "\nmore") is None
        assert find_note("[removed: re-read a.py to recover]\n[it holds: src/a.py]") is None
