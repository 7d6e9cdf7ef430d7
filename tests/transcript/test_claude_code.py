"""Claude Code sessions: each shape that real files have, and those that they could have."""

from __future__ import annotations

from typing import Any

import pytest
from making import answer, assistant, jsonl, read_rows, result, row, text, thinking, use, user
from transcript.shapes import BASIC, shape

from lcc.transcript import Edits, Transcript, TranscriptError, read_transcript, render


def only_result(content: Any, **more: Any) -> Any:
    transcript = read_rows(*BASIC[:3], user("u2", "a2", [result("t1", content, **more)]))
    return transcript.messages[-1].tool_results[0]


class TestPhysicalLines:
    def test_two_objects_on_one_line_are_both_read_and_both_kept(self) -> None:
        """Section A1: no newline between an entry and the next."""
        raw = jsonl(*BASIC[:3]) + jsonl(BASIC[3])[:-1] + jsonl({"type": "summary", "summary": "s", "leafUuid": "u2"})

        transcript = read_transcript(raw)

        assert shape(transcript.messages) == ["u:do it", "a:Looking. +t1", "u: -t1"]
        assert render(transcript, Edits()) == raw
        edited = render(transcript, Edits({"t1": "[note]"}))
        assert edited == raw.replace(b'"content":"line"', b'"content":"[note]"')

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n \t\n"])
    def test_line_ends_and_blank_lines_stay_as_found(self, end: str) -> None:
        """Section A2, A3: CR LF and lines of white space."""
        raw = jsonl(*BASIC, end=end)

        transcript = read_transcript(raw)

        assert len(transcript.messages) == 3
        assert render(transcript, Edits({"t1": "[n]"})) == raw.replace(b'"content":"line"', b'"content":"[n]"')

    def test_a_file_may_end_without_a_newline(self) -> None:
        raw = jsonl(*BASIC)[:-1]

        assert len(read_transcript(raw).messages) == 3
        assert render(read_transcript(raw), Edits()) == raw

    def test_a_byte_order_mark_in_a_session_is_kept(self) -> None:
        raw = b"\xef\xbb\xbf" + jsonl(*BASIC)

        edited = render(read_transcript(raw), Edits({"t1": "[n]"}))

        assert edited.startswith(b"\xef\xbb\xbf{")
        assert len(read_transcript(edited).messages) == 3

    def test_a_line_of_megabytes_is_read(self) -> None:
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 2_000_000}}

        transcript = read_rows(user("u0", None, [image, text("see")]), user("u1", "u0", "go"))

        assert [(m.text, m.more) for m in transcript.messages] == [("see", True), ("go", False)]

    def test_carriage_returns_controls_and_emoji_inside_strings_come_back(self) -> None:
        """Section A4: raw UTF-8 beside escapes."""
        content = "a\r\nb \x1b[31m \u2028 \U0001f600 é"

        assert only_result(content).text == content

    def test_lines_without_uuid_or_message_pass_through(self) -> None:
        """Section A5, B5, B6."""
        raw = jsonl(
            {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}, "isSnapshotUpdate": False},
            {"type": "queue-operation", "operation": "enqueue", "sessionId": "s1"},
            *BASIC,
            {"type": "some-new-type", "x": [1.0, 1e5]},
            {"type": "last-prompt", "leafUuid": "u2"},
        )

        transcript = read_transcript(raw)

        assert len(transcript.messages) == 3
        assert render(transcript, Edits()) == raw

    def test_a_damaged_escape_is_read_around_and_its_line_is_left_alone(self) -> None:
        """Section A6: a masking tool cut an escape; the rest of the file is still of use."""
        raw = jsonl(*BASIC).replace(b'"content":"line"', rb'"content":"a\nb\someone@x \"q\""')

        transcript = read_transcript(raw)

        found = transcript.messages[-1].tool_results[0]
        assert (found.text, found.text_path) == ('a\nb\\someone@x "q"', None)
        assert render(transcript, Edits()) == raw
        [warning] = transcript.warnings
        column = raw.splitlines()[3].index(rb"\s") + 1
        assert warning.startswith(f"line 4, column {column}: ")


class TestEntries:
    def test_nested_progress_messages_are_no_messages(self) -> None:
        """Section B2: a sub-agent's messages inside a progress entry."""
        nested = {"type": "user", "message": {"role": "user", "content": [result("inner")]}}
        progress = row("progress", "p1", "a2", data={"type": "agent_progress", "message": nested})

        transcript = read_rows(*BASIC[:3], progress, answer("u2", "p1", "t1"))

        assert shape(transcript.messages) == ["u:do it", "a:Looking. +t1", "u: -t1"]

    def test_progress_and_attachment_entries_carry_the_chain(self) -> None:
        """Section B3."""
        transcript = read_rows(
            user("u1", None, "one"),
            row("attachment", "x1", "u1", attachment={"type": "file"}),
            row("progress", "x2", "x1", data={"type": "hook_progress"}),
            assistant("a1", "x2", "m1", text("two")),
        )

        assert shape(transcript.messages) == ["u:one", "a:two"]

    @pytest.mark.parametrize("mode", [{}, {"commandMode": "prompt"}])
    @pytest.mark.parametrize("prompt", ["wait", [text("wait")]])
    def test_words_typed_while_the_assistant_works_are_the_users(self, prompt: Any, mode: Any) -> None:
        """Section B4: they stand in an attachment of the chain."""
        queued = row("attachment", "q1", "u2", attachment={"type": "queued_command", "prompt": prompt, **mode})

        transcript = read_rows(*BASIC, queued, assistant("a9", "q1", "m9", text("I wait.")))

        assert shape(transcript.messages)[2:] == ["u: -t1", "u:wait", "a:I wait."]

    @pytest.mark.parametrize(
        "attachment",
        [
            None,
            {"type": "queued_command"},
            {"type": "queued_command", "prompt": "done: b1", "commandMode": "task-notification"},
            {"type": "nested_memory", "content": {"content": "x"}},
        ],
    )
    def test_other_attachments_are_no_messages(self, attachment: Any) -> None:
        transcript = read_rows(*BASIC, row("attachment", "q1", "u2", attachment=attachment), user("u3", "q1", "end"))

        assert shape(transcript.messages)[2:] == ["u: -t1", "u:end"]

    def test_meta_lines_and_the_compact_summary_are_the_users(self) -> None:
        transcript = read_rows(
            row("system", "b1", None, subtype="compact_boundary", logicalParentUuid="gone"),
            user("u1", "b1", "summary", isCompactSummary=True, isVisibleInTranscriptOnly=True),
            user("u2", "u1", "meta", isMeta=True),
        )

        assert shape(transcript.messages) == ["u:summary", "u:meta"]

    def test_system_lines_without_subtype_pass(self) -> None:
        """Section B1: versions 1.0."""
        transcript = read_rows(user("u1", None, "one"), row("system", "s1", "u1", content="x"), user("u2", "s1", "two"))

        assert shape(transcript.messages) == ["u:one", "u:two"]

    @pytest.mark.parametrize(
        "more",
        [{"isApiErrorMessage": True, "model": "<synthetic>"}, {"isVirtual": True}],
        ids=["an error of the API", "a line for the screen"],
    )
    def test_a_line_that_is_shown_and_never_sent_is_no_message(self, more: dict[str, Any]) -> None:
        """It is no speech of the assistant and none of the newest messages; the conversation goes on behind it."""
        line = assistant("e1", "u2", "e", text("You have hit your limit"))
        line["message"]["model"] = more.pop("model", "m")

        transcript = read_rows(*BASIC, {**line, **more}, user("u9", "e1", "again"))

        assert shape(transcript.messages) == [*shape(read_rows(*BASIC).messages), "u:again"]

    def test_an_error_that_a_model_wrote_is_a_message(self) -> None:
        """The client leaves out what no model wrote; anything else is sent."""
        line = assistant("e1", "u2", "e", text("Sorry"), isApiErrorMessage=True)

        assert read_rows(*BASIC, line).messages[-1].text == "Sorry"

    def test_what_the_client_writes_in_the_users_place_is_marked(self) -> None:
        """A skill's text is a message of the user for the API, and no words of theirs."""
        skill = user("s1", "u2", [text("Base directory for this skill")], isMeta=True)
        queued = {"type": "queued_command", "prompt": "hello"}
        typed = row("attachment", "q1", "s1", attachment=queued)
        sent = row("attachment", "q2", "q1", attachment={**queued, "origin": {"kind": "peer"}})
        meta = row("attachment", "q3", "q2", attachment={**queued, "isMeta": True})

        messages = read_rows(*BASIC, skill, typed, sent, meta, user("u9", "q3", "go on")).messages[-5:]

        assert [message.by_client for message in messages] == [True, False, True, True, False]


class TestMessages:
    def test_lines_of_one_message_id_are_one_message(self) -> None:
        """Section C3: thinking, text and call on lines of their own."""
        transcript = read_rows(
            user("u1", None, "go"),
            assistant("a1", "u1", "m1", thinking()),
            assistant("a2", "a1", "m1", text("first")),
            assistant("a3", "a2", "m1", use("t1"), use("t2")),
            assistant("a4", "a3", "m2", text("second")),
        )

        assert shape(transcript.messages) == ["u:go", "a:first +t1 +t2", "a:second"]
        assert transcript.messages[1].documents == (1, 2, 3)

    def test_interleaved_parallel_calls_are_one_step(self) -> None:
        """Section C4: use, result, use of the same message, result."""
        transcript = read_rows(
            user("u1", None, "go"),
            assistant("a1", "u1", "m1", use("t1")),
            answer("r1", "a1", "t1"),
            assistant("a2", "r1", "m1", use("t2")),
            answer("r2", "a2", "t2"),
            assistant("a3", "r2", "m2", text("done")),
        )

        assert shape(transcript.messages) == ["u:go", "a: +t1 +t2", "u: -t1 -t2", "a:done"]

    @pytest.mark.parametrize("source", [True, False])
    def test_results_on_branches_left_by_parallel_calls_still_belong(self, source: bool) -> None:
        """Section F2: each call's line is the parent of the next and of its own result."""
        more = {"sourceToolAssistantUUID": "a1"} if source else {}
        transcript = read_rows(
            user("u1", None, "go"),
            assistant("a1", "u1", "m1", use("t1")),
            assistant("a2", "a1", "m1", use("t2")),
            answer("r1", "a1", "t1", **more),
            answer("r2", "a2", "t2"),
            assistant("a3", "r2", "m2", text("done")),
        )

        assert shape(transcript.messages) == ["u:go", "a: +t1 +t2", "u: -t1 -t2", "a:done"]

    def test_calls_on_a_branch_left_by_parallel_calls_still_belong(self) -> None:
        """Both calls hang on the same parent; the walk passes one of them by."""
        transcript = read_rows(
            assistant("a0", None, "m1", text("Both.")),
            assistant("a1", "a0", "m1", use("t1")),
            assistant("a2", "a0", "m1", use("t2")),
            answer("r1", "a1", "t1"),
            answer("r2", "a2", "t2"),
            user("u9", "r2", "next"),
        )

        assert shape(transcript.messages) == ["a:Both. +t1 +t2", "u: -t1 -t2", "u:next"]

    def test_one_user_line_may_hold_several_results_and_text(self) -> None:
        """Section C5, H."""
        transcript = read_rows(
            assistant("a1", None, "m1", use("t1"), use("t2")),
            user("r1", "a1", [result("t1"), result("t2"), text("and this")]),
        )

        assert shape(transcript.messages) == ["a: +t1 +t2", "u:and this -t1 -t2"]

    def test_server_tool_blocks_and_unknown_blocks_stay_unread(self) -> None:
        """Section C6, H."""
        server = {"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {}}

        transcript = read_rows(assistant("a1", None, "m1", server, {"type": "hologram"}, text("x")))

        assert shape(transcript.messages) == ["a:x"]
        assert transcript.messages[0].more

    def test_the_same_message_id_in_a_later_step_is_another_message(self) -> None:
        """A proxy that numbers its messages badly."""
        transcript = read_rows(
            assistant("a1", None, "same", text("one")),
            assistant("a2", "a1", "other", text("two")),
            assistant("a3", "a2", "same", text("three")),
        )

        assert shape(transcript.messages) == ["a:one", "a:two", "a:three"]

    def test_a_line_beside_joins_the_last_step_of_its_message_id_and_moves_no_other(self) -> None:
        transcript = read_rows(
            assistant("a1", None, "same", text("one")),
            assistant("a2", "a1", "other", text("two")),
            assistant("a3", "a2", "same", use("t1")),
            assistant("a4", "a2", "same", use("t2")),
            answer("r1", "a3", "t1"),
            answer("r2", "a4", "t2"),
        )

        assert shape(transcript.messages) == ["a:one", "a:two", "a: +t1 +t2", "u: -t1 -t2"]

    @pytest.mark.parametrize("content", [None, [], ""])
    def test_a_message_without_content_is_empty(self, content: Any) -> None:
        assert shape(read_rows(user("u1", None, content)).messages) == ["u:"]

    def test_a_call_has_the_directory_of_its_line(self) -> None:
        transcript = read_rows(*BASIC)

        assert transcript.messages[1].tool_uses[0].cwd == "/p/sub"
        assert (transcript.cwd, transcript.session_id, transcript.client_version) == ("/p", "s1", "2.1.0")


class TestResults:
    @pytest.mark.parametrize("content", ["", "words", [text("words")]])
    def test_exactly_one_text_can_be_replaced(self, content: Any) -> None:
        """Section D1."""
        found = only_result(content)

        assert found.text == (content if isinstance(content, str) else "words")
        assert found.text_path is not None

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (None, ""),
            ([], ""),
            ([text("a"), text("agentId: 1")], "a\nagentId: 1"),
            ([text("a"), {"type": "image", "source": {}}], "a"),
            ([{"type": "image", "source": {}}], ""),
            ([{"type": "tool_reference", "tool_name": "x"}], ""),
        ],
    )
    def test_any_other_content_cannot_be_replaced(self, content: Any, words: str) -> None:
        """Section D1, D4: images, several parts, references, nothing."""
        found = only_result(content)

        assert (found.text, found.text_path) == (words, None)

    def test_absent_content_is_no_text(self) -> None:
        transcript = read_rows(*BASIC[:3], user("u2", "a2", [{"type": "tool_result", "tool_use_id": "t1"}]))

        assert transcript.messages[-1].tool_results[0].text_path is None

    @pytest.mark.parametrize(("more", "flag"), [({}, None), ({"is_error": False}, False), ({"is_error": True}, True)])
    def test_the_error_flag_is_what_the_host_said(self, more: Any, flag: bool | None) -> None:
        """Section D2."""
        assert only_result("x", **more).is_error is flag

    def test_orphan_results_and_open_calls_are_no_pairs_and_no_error(self) -> None:
        """Section D3: the call later than the result, cut off, or never answered."""
        transcript = read_rows(
            answer("r0", None, "lost"),
            answer("r1", "r0", "later"),
            assistant("a1", "r1", "m1", use("later"), use("open")),
        )

        assert list(transcript.pairs()) == []
        assert shape(transcript.messages) == ["u: -lost -later", "a: +later +open"]

    def test_duplicate_ids_are_named_and_never_paired(self) -> None:
        """Section F8, H."""
        transcript = read_rows(
            assistant("a1", None, "m1", use("t1"), use("t1"), use("t2"), use("t3")),
            user("r1", "a1", [result("t1"), result("t2"), result("t2"), result("t3")]),
        )

        assert transcript.duplicates == {"t1", "t2"}
        assert [pair.use.id for pair in transcript.pairs()] == ["t3"]


def strictly(*lines: Any) -> Transcript:
    return read_transcript(jsonl(*lines), strict=True)


class TestMalformed:
    @pytest.mark.parametrize(
        ("line", "problem", "place"),
        [
            ({"type": "user", "uuid": "x", "parentUuid": "u2"}, "must be an object", "line 5, message"),
            (user("x", "u2", 7), "must be a string or an array", "line 5, message.content"),
            (user("x", "u2", [7]), "must be an object", "line 5, message.content[0]"),
            (user("x", "u2", [{"type": "text", "text": None}]), "is null", "line 5, message.content[0].text"),
            (user("x", "u2", [{"text": "x"}]), "must be a string", "line 5, message.content[0].type"),
            (user("x", "u2", [result("")]), "call id", "line 5, message.content[0].tool_use_id"),
            (user("x", "u2", [result("t", 5)]), "must be a string or an array", "line 5, message.content[0].content"),
            (user("x", "u2", [result("t", is_error=1)]), "must be a boolean", "line 5, message.content[0].is_error"),
            (
                user("x", "u2", [result("t", [{"type": "text", "text": 1}])]),
                "must be a string",
                "line 5, message.content[0].content[0].text",
            ),
            (
                assistant("x", "u2", "m", {"type": "tool_use", "id": 1, "name": "x"}),
                "call id",
                "line 5, message.content[0].id",
            ),
            (assistant("x", "u2", "m", use("t", "")), "tool's name", "line 5, message.content[0].name"),
            ('{"type":"user","uu', "cut off", "line 5, column 19"),
            ("[]", "object", "line 5, column 1"),
            ("5", "object", "line 5, column 1"),
            ("{} x", "not valid JSON", "line 5, column 4"),
            ("{} []", "objects only", "line 5, column 4"),
            ('{"a":NaN}', "not valid JSON", "line 5, column 6"),
            ('{"a":1e999}', "not valid JSON", "line 5, column 6"),
            ('{"a":"\\ud800"}', "surrogate", "line 5, column 7"),
            ('{"é":nul}', "not valid JSON", "line 5, column 6"),
            ("[" * 2000, "depth", "line 5, column 1026"),
        ],
    )
    def test_is_refused_with_its_line(self, line: Any, problem: str, place: str) -> None:
        with pytest.raises(TranscriptError) as refused:
            strictly(*BASIC, line)

        assert problem in refused.value.problem
        assert refused.value.place.startswith(place)

    def test_a_deeply_nested_input_is_refused_with_its_line(self) -> None:
        deep: Any = "x"
        for _ in range(300):
            deep = [deep]

        with pytest.raises(TranscriptError, match=r"line 5, message\.content\[0\]\.input: nested deeper"):
            strictly(*BASIC, assistant("x", "u2", "m", use("t", a=deep)))

    def test_an_entry_without_uuid_in_a_tree_is_refused(self) -> None:
        line = {k: v for k, v in user("x", "u2", "lost").items() if k != "uuid"}

        with pytest.raises(TranscriptError, match="line 5, uuid"):
            strictly(*BASIC, line)

    def test_invalid_utf8_is_refused_with_its_column(self) -> None:
        with pytest.raises(TranscriptError, match="line 5, column 7: byte 0xff"):
            read_transcript(jsonl(*BASIC) + b'{"a":"\xff"}\n', strict=True)
