"""Claude Code sessions: which lines of the tree the model is still sent."""

from __future__ import annotations

from typing import Any

import pytest
from making import answer, assistant, read_rows, row, text, use, user
from transcript.shapes import BASIC, shape


class TestTree:
    def test_a_rewound_branch_is_out(self) -> None:
        transcript = read_rows(
            user("u1", None, "one"),
            assistant("a1", "u1", "m1", text("old answer"), use("old")),
            answer("r1", "a1", "old"),
            user("u2", "u1", "again"),
            assistant("a2", "u2", "m2", text("new answer")),
        )

        assert shape(transcript.messages) == ["u:one", "u:again", "a:new answer"]

    def test_parents_may_stand_later_or_be_missing(self) -> None:
        """Section F3."""
        transcript = read_rows(
            assistant("a1", "u1", "m1", text("answer")),
            user("u1", "not here", "question"),
            user("u2", "a1", "next"),
        )

        assert shape(transcript.messages) == ["u:question", "a:answer", "u:next"]

    def test_a_circle_of_parents_ends(self) -> None:
        transcript = read_rows(user("u1", "u2", "one"), user("u2", "u1", "two"))

        assert shape(transcript.messages) == ["u:one", "u:two"]

    def test_a_self_parent_ends(self) -> None:
        assert shape(read_rows(user("u1", "u1", "one")).messages) == ["u:one"]

    def test_of_lines_with_one_uuid_the_last_counts(self) -> None:
        """Section F8, H: as in the client, which keeps them in a map."""
        transcript = read_rows(user("u1", None, "old copy"), user("u1", None, "one"), user("u2", "u1", "two"))

        assert shape(transcript.messages) == ["u:one", "u:two"]

    def test_all_before_the_last_boundary_is_out(self) -> None:
        """Section F4; even where a later line's parent leads back before it."""
        transcript = read_rows(
            *BASIC,
            row("system", "b1", None, subtype="compact_boundary", logicalParentUuid="u2"),
            user("s1", "b1", "summary", isCompactSummary=True),
            user("u5", "s1", "next"),
        )

        assert shape(transcript.messages) == ["u:summary", "u:next"]
        back = read_rows(
            *BASIC, row("system", "b1", None, subtype="compact_boundary"), user("u5", "u2", "handle on an old row")
        )
        assert shape(back.messages) == ["u:handle on an old row"]

    def test_the_segment_that_a_boundary_kept_stands_after_its_summary(self) -> None:
        kept = {"headUuid": "a1", "anchorUuid": "s1", "tailUuid": "u2"}
        transcript = read_rows(
            *BASIC,
            row("system", "b1", None, subtype="compact_boundary", compactMetadata={"preservedSegment": kept}),
            user("s1", "b1", "summary", isCompactSummary=True),
            user("u5", "s1", "next"),
        )

        assert shape(transcript.messages) == ["u:summary", "a:Looking. +t1", "u: -t1", "u:next"]

    def test_a_kept_segment_that_cannot_be_walked_is_left_out(self) -> None:
        kept = {"headUuid": "nowhere", "anchorUuid": "s1", "tailUuid": "u2"}
        transcript = read_rows(
            *BASIC,
            row("system", "b1", None, subtype="compact_boundary", compactMetadata={"preservedSegment": kept}),
            user("s1", "b1", "summary"),
        )

        assert shape(transcript.messages) == ["u:summary"]

    def test_the_lines_that_a_boundary_lists_stand_after_its_summary(self) -> None:
        """Newer clients list them; lines between them that are not listed are out."""
        kept = {"anchorUuid": "s1", "uuids": ["u1", "u2"]}
        lines = [
            *BASIC,
            row("system", "b1", None, subtype="compact_boundary", compactMetadata={"preservedMessages": kept}),
            user("s1", "b1", "summary", isCompactSummary=True),
            user("u5", "s1", "next"),
        ]
        assert shape(read_rows(*lines).messages) == ["u:summary", "u:do it", "u: -t1", "u:next"]

        from_old = [*lines, user("u6", "a2", "hangs on a line that is out")]
        assert shape(read_rows(*from_old).messages)[-2:] == ["u: -t1", "u:hangs on a line that is out"]

        kept["uuids"].append("missing")
        assert shape(read_rows(*lines).messages) == ["u:summary", "u:next"]

    def test_right_after_a_compaction_the_kept_lines_end_the_conversation(self) -> None:
        kept = {"anchorUuid": "s1", "uuids": ["a2", "u2"]}
        lines = [
            *BASIC,
            row("system", "b1", None, subtype="compact_boundary", compactMetadata={"preservedMessages": kept}),
            user("s1", "b1", "summary", isCompactSummary=True),
        ]
        assert shape(read_rows(*lines).messages) == ["u:summary", "a: +t1", "u: -t1"]

        kept["anchorUuid"] = "b1"
        assert shape(read_rows(*lines[:-1]).messages) == ["a: +t1", "u: -t1"]

    def test_only_the_last_boundary_counts(self) -> None:
        kept = {"anchorUuid": "s1", "uuids": ["u1"]}
        transcript = read_rows(
            *BASIC,
            row("system", "b1", None, subtype="compact_boundary", compactMetadata={"preservedMessages": kept}),
            user("s1", "b1", "summary one"),
            row("system", "b2", None, subtype="compact_boundary"),
            user("s2", "b2", "summary two"),
        )

        assert shape(transcript.messages) == ["u:summary two"]

    @pytest.mark.parametrize("flag", ["explicit", "rewound"])
    def test_a_rewind_without_a_new_prompt_ends_the_conversation_there(self, flag: str) -> None:
        rewound = {"type": "last-prompt", "leafUuid": "u1", flag: True}

        assert shape(read_rows(*BASIC, rewound).messages) == ["u:do it"]
        assert shape(read_rows(*BASIC, rewound, user("u9", "u1", "else")).messages) == ["u:do it", "u:else"]
        assert len(read_rows(*BASIC, {"type": "last-prompt", "leafUuid": "u1"}).messages) == 3
        assert len(read_rows(*BASIC, {"type": "last-prompt", "leafUuid": "unknown", flag: True}).messages) == 3

    @pytest.mark.parametrize(("seconds", "found"), [(4, True), (5, True), (6, False), (-1, False)])
    def test_a_line_that_lost_its_parent_goes_on_with_the_one_written_just_before(
        self, seconds: int, found: bool
    ) -> None:
        """As the client does on resume; only within five seconds."""
        transcript = read_rows(
            user("u1", None, "one", timestamp="2026-01-01T00:00:10.000Z"),
            user("x1", None, "side", timestamp="2026-01-01T00:00:10.500Z", isSidechain=True),
            user("u2", "lost", "two", timestamp=f"2026-01-01T00:00:{10 + seconds:02d}.000Z"),
        )

        assert shape(transcript.messages) == (["u:one", "u:two"] if found else ["u:two"])

    @pytest.mark.parametrize("timestamp", [5, "yesterday", "", None])
    def test_a_timestamp_that_is_none_is_no_help(self, timestamp: Any) -> None:
        lines = [user("u1", None, "one", timestamp=timestamp), user("u2", "lost", "two", timestamp=timestamp)]

        assert shape(read_rows(*lines).messages) == ["u:two"]

    def test_many_lines_without_parents_are_walked_in_linear_time(self) -> None:
        """All within one second, each with a parent that is not there."""
        lines = [user(f"u{n}", f"lost{n}", str(n), timestamp=f"2026-01-01T00:00:00.{n:05d}Z") for n in range(20_000)]

        assert len(read_rows(*lines).messages) == 20_000

    def test_a_result_on_another_branch_is_found_by_its_call(self) -> None:
        """Older clients: a progress entry stands between the call and its result, and nothing names the call."""
        transcript = read_rows(
            assistant("a1", None, "m1", use("t1")),
            assistant("a2", "a1", "m1", use("t2")),
            row("progress", "p1", "a1", data={"type": "hook_progress"}),
            answer("r1", "p1", "t1"),
            answer("r2", "a2", "t2"),
            user("u2", "r2", "next"),
        )

        assert shape(transcript.messages) == ["a: +t1 +t2", "u: -t1 -t2", "u:next"]

    def test_nothing_after_the_boundary_is_an_empty_conversation(self) -> None:
        transcript = read_rows(*BASIC, row("system", "b1", None, subtype="compact_boundary"))

        assert transcript.messages == ()

    def test_micro_compaction_names_what_is_cleared(self) -> None:
        """Section F5."""
        meta = {"compactedToolIds": ["t1", "t9"]}
        boundary = row("system", "c1", "u2", subtype="microcompact_boundary", microcompactMetadata=meta)

        transcript = read_rows(*BASIC, boundary, user("u3", "c1", "next"))

        assert transcript.cleared == {"t1", "t9"}
        assert len(list(transcript.pairs())) == 1

    def test_side_chains_are_out_of_a_session(self) -> None:
        """Section F6: versions 1.0 keep sub-agents in the same file."""
        transcript = read_rows(
            *BASIC[:3],
            user("s1", None, "sub-agent's task", isSidechain=True),
            assistant("s2", "s1", "m9", use("inner"), isSidechain=True),
        )

        assert shape(transcript.messages) == ["u:do it", "a:Looking. +t1"]

    def test_a_file_of_nothing_but_a_side_chain_is_the_sub_agents_session(self) -> None:
        transcript = read_rows(
            user("s1", None, "task", isSidechain=True),
            assistant("s2", "s1", "m9", use("inner"), isSidechain=True),
            answer("s3", "s2", "inner", isSidechain=True),
        )

        assert shape(transcript.messages) == ["u:task", "a: +inner", "u: -inner"]

    def test_a_file_without_parent_links_is_read_in_order(self) -> None:
        """Made by hand: no tree to walk."""
        lines = [{k: v for k, v in line.items() if k not in ("parentUuid", "uuid")} for line in BASIC]

        assert shape(read_rows(*lines).messages) == ["u:do it", "a:Looking. +t1", "u: -t1"]
