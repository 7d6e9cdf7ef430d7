"""Codex rollouts: what the model is sent, and what only repeats it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from transcript.session_lines import jsonl, shape

from lcc.transcript import Edits, Transcript, TranscriptError, apply_edits, read_transcript, render


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return line("response_item", type=kind, **payload)


def message(role: str, words: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": part, "text": words}])


def call(call_id: str, name: str = "exec_command", **more: Any) -> dict[str, Any]:
    return item("function_call", name=name, call_id=call_id, **{"arguments": '{"cmd":"ls"}', **more})


def output(call_id: str, said: Any = "Exit code: 0\nOutput:\nx") -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output=said)


META = line("session_meta", id="s1", cwd="/p", cli_version="0.144.5")


def read(*lines: Any) -> Transcript:
    return read_transcript(jsonl(META, *lines))


def test_calls_and_outputs_are_paired_across_steps() -> None:
    """Section G1, G2: a run of calls is one message, a run of outputs is one."""
    transcript = read(
        message("user", "go"),
        item("reasoning", summary=[], encrypted_content="x"),
        message("assistant", "Looking."),
        call("c1"),
        call("c2"),
        output("c1"),
        line("event_msg", type="exec_command_end", call_id="c1", stdout="x"),
        output("c2"),
        call("c3"),
    )

    assert shape(transcript.messages) == ["u:go", "a:Looking.", "a: +c1 +c2", "u: -c1 -c2", "a: +c3"]
    assert [pair.use.id for pair in transcript.pairs()] == ["c1", "c2"]
    assert (transcript.cwd, transcript.session_id, transcript.client_version) == ("/p", "s1", "0.144.5")


def test_arguments_are_decoded_and_free_text_stays() -> None:
    """Section G2."""
    transcript = read(
        call("c1", arguments='{"cmd":"ls","workdir":"sub"}'),
        call("c2", name="ask", namespace="mcp__wiki", arguments="{not json"),
        item("custom_tool_call", name="apply_patch", call_id="c3", input="*** Begin Patch"),
        item("local_shell_call", call_id="c4", action={"type": "exec", "command": ["ls"]}),
        item("web_search_call", status="completed"),
        item("tool_search_call", call_id="c5", arguments={"query": "x"}),
    )

    uses = transcript.messages[0].tool_uses
    assert [(u.tool, u.input, u.cwd) for u in uses] == [
        ("exec_command", {"cmd": "ls", "workdir": "sub"}, "/p/sub"),
        ("mcp__wiki__ask", "{not json", "/p"),
        ("apply_patch", "*** Begin Patch", "/p"),
        ("local_shell", {"type": "exec", "command": ["ls"]}, "/p"),
    ]


@pytest.mark.parametrize(
    ("said", "words", "is_error", "replaceable"),
    [
        ("Wall time: 1 s\nOutput:\nx", "Wall time: 1 s\nOutput:\nx", None, True),
        ("", "", None, True),
        ([{"type": "input_text", "text": "x"}], "x", None, True),
        (
            [{"type": "input_text", "text": "Output:\n"}, {"type": "input_text", "text": "x"}],
            "Output:\n\nx",
            None,
            False,
        ),
        ([{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "u"}], "x", None, False),
        ({"content": "x", "success": False}, "x", True, True),
        ({"content": [{"type": "input_text", "text": "x"}], "success": True}, "x", False, True),
        ('{"output":"x","metadata":{"exit_code":0}}', '{"output":"x","metadata":{"exit_code":0}}', None, True),
        (None, "", None, False),
    ],
)
def test_every_form_of_output_is_read_and_edited_in_its_form(
    said: Any, words: str, is_error: bool | None, replaceable: bool
) -> None:
    """Section G3, G4, and older versions."""
    raw = jsonl(META, call("c1"), output("c1", said))
    transcript = read_transcript(raw)

    [pair] = transcript.pairs()
    assert (pair.result.text, pair.result.is_error) == (words, is_error)
    assert (pair.result.text_path is not None) is replaceable
    if replaceable:
        edited = render(transcript, Edits({"c1": "[note]"}))
        line_before, line_after = (json.loads(data.splitlines()[2])["payload"]["output"] for data in (raw, edited))
        assert edited.splitlines()[:2] == raw.splitlines()[:2]
        assert next(read_transcript(edited).pairs()).result.text == "[note]"
        assert type(line_before) is type(line_after)


def test_a_turn_context_moves_the_directory() -> None:
    transcript = read(call("c1"), line("turn_context", cwd="/q"), call("c2"))

    assert [use.cwd for use in transcript.messages[0].tool_uses] == ["/p", "/q"]


def test_a_compaction_with_its_history_replaces_what_came_before() -> None:
    kept = [message("user", "kept")["payload"], call("c9")["payload"], output("c9")["payload"]]
    transcript = read(
        message("user", "old"),
        call("c1"),
        output("c1"),
        line("compacted", message="", replacement_history=kept),
        call("c2"),
    )

    assert shape(transcript.messages) == ["u:kept", "a: +c9", "u: -c9", "a: +c2"]
    edits = Edits({"c9": "[n]"})
    assert shape(read_transcript(render(transcript, edits)).messages) == shape(apply_edits(transcript, edits))
    dropped = Edits({}, frozenset(["c9"]))
    assert shape(read_transcript(render(transcript, dropped)).messages) == ["u:kept", "a: +c2"]


def test_a_compaction_without_history_leaves_the_users_words_and_the_summary() -> None:
    transcript = read(message("user", "go"), call("c1"), output("c1"), line("compacted", message="summary"), call("c2"))

    assert shape(transcript.messages) == ["u:go", "u:summary", "a: +c2"]


@pytest.mark.parametrize(("turns", "left"), [(1, ["u:one", "a: +c1"]), (2, []), (9, [])])
def test_a_rollback_takes_turns_away(turns: int, left: list[str]) -> None:
    transcript = read(
        line("event_msg", type="task_started"),
        message("user", "one"),
        call("c1"),
        line("event_msg", type="task_started"),
        message("user", "two"),
        output("c1"),
        line("event_msg", type="thread_rolled_back", num_turns=turns),
        message("user", "three"),
    )

    assert shape(transcript.messages) == [*left, "u:three"]


def test_drops_take_whole_lines_and_leave_all_others() -> None:
    lines = [META, message("user", "go"), call("c1"), output("c1"), call("c2"), output("c2"), message("assistant", "x")]
    transcript = read_transcript(jsonl(*lines))

    rendered = render(transcript, Edits({"c2": "[n]"}, frozenset(["c1"])))

    assert rendered == jsonl(*lines[:2], call("c2"), output("c2", "[n]"), lines[6])


@pytest.mark.parametrize(
    ("line_", "problem", "place"),
    [
        ({"type": "response_item", "payload": 5}, "must be an object", "line 2, payload"),
        ({"type": "response_item", "payload": {"type": 5}}, "must be a string", "line 2, payload.type"),
        (item("message", role="wizard"), "must be one of", "line 2, payload.role"),
        (item("message", role="user", content=5), "must be a string or an array", "line 2, payload.content"),
        (item("message", role="user", content=[5]), "must be an object", "line 2, payload.content[0]"),
        (
            item("message", role="user", content=[{"type": "input_text"}]),
            "must be a string",
            "line 2, payload.content[0].text",
        ),
        (item("function_call", name="x"), "absent", "line 2, payload.call_id"),
        (call("c1", name=5), "a number", "line 2, payload.name"),  # type: ignore[arg-type]
        (item("function_call_output", call_id=5), "a number", "line 2, payload.call_id"),
        (output("c1", 5), "must be a string or an array", "line 2, payload.output"),
        (output("c1", [5]), "must be an object", "line 2, payload.output[0]"),
        (line("compacted", replacement_history=[5]), "must be an object", "line 2, payload.replacement_history[0]"),
    ],
)
def test_malformed_lines_are_refused_with_their_line(line_: Any, problem: str, place: str) -> None:
    with pytest.raises(TranscriptError) as refused:
        read_transcript(jsonl(META, line_), strict=True)

    assert problem in refused.value.problem
    assert refused.value.place == place
