"""Codex rollouts: what the model is sent, and what only repeats it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from making import jsonl
from transcript.shapes import shape

from lcc.compaction.compact import compact
from lcc.contract.options import PassOptions
from lcc.recovery.inputs import restore_inputs
from lcc.relevance.ports import Ports
from lcc.stash import Stash
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


def test_the_files_own_session_is_the_first_one() -> None:
    """A fork or a sub-agent's file repeats the first lines of the session that it came from."""
    parent = line("session_meta", id="parent", cwd="/elsewhere", cli_version="0.1.0")
    transcript = read(parent, call("c1"), line("turn_context", cwd="/q"), parent, call("c2"))

    assert (transcript.session_id, transcript.client_version, transcript.cwd) == ("s1", "0.144.5", "/q")
    assert [use.cwd for use in transcript.messages[0].tool_uses] == ["/p", "/q"]


def test_what_another_agent_says_is_a_message_of_its_own() -> None:
    said = item("agent_message", author="/root/a", recipient="/root", content=[{"type": "input_text", "text": "Done."}])
    sealed = item("agent_message", content=[{"type": "encrypted_content", "encrypted_content": "x"}])
    transcript = read(call("c1"), output("c1"), said, sealed, call("c2"))

    assert shape(transcript.messages) == ["a: +c1", "u: -c1", "d:Done.", "d:", "a: +c2"]
    assert transcript.messages[3].more


BARE: tuple[Any, ...] = (
    {"id": "s25", "timestamp": "2025-06-20T10:00:00.000Z", "instructions": None, "git": {"branch": "main"}},
    {"record_type": "state"},
    message("user", "go")["payload"],
    {"type": "reasoning", "id": "rs", "summary": []},
    call("c1", "shell", arguments='{"command":["bash","-lc","ls"],"workdir":"/p"}')["payload"],
    output("c1", '{"output":"a\\nb","metadata":{"exit_code":0,"duration_seconds":0.1}}')["payload"],
    message("assistant", "done")["payload"],
)


@pytest.mark.parametrize("lines", [BARE, BARE[2:], BARE[4:]], ids=["whole", "without its first line", "from a call on"])
def test_a_rollout_of_mid_2025_has_its_items_in_the_lines(lines: tuple[Any, ...]) -> None:
    raw = jsonl(*lines)
    transcript = read_transcript(raw)

    assert transcript.format.name == "codex"
    assert shape(transcript.messages)[-3:] == ["a: +c1", "u: -c1", "a:done"]
    assert transcript.session_id == ("s25" if len(lines) == len(BARE) else None)
    assert transcript.messages[-3].tool_uses[0].cwd == "/p"
    assert render(transcript, Edits({"c1": "[n]"})) == raw.replace(json.dumps(BARE[5]["output"]).encode(), b'"[n]"')
    kept = [line_ for line_ in lines if line_.get("call_id") != "c1"]
    assert render(transcript, Edits({}, frozenset(["c1"]))) == jsonl(*kept)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_rollout_that_is_one_document_is_told_what_it_is(indent: int | None) -> None:
    raw = json.dumps({"session": {"id": "s", "timestamp": "t"}, "items": [BARE[2]]}, indent=indent).encode()

    with pytest.raises(TranscriptError, match=r"^old\.json: a rollout of the first Codex, one JSON document"):
        read_transcript(raw, name="old.json")


@pytest.mark.parametrize("odd", [{}, [], 5, None, True])
def test_a_type_of_any_kind_is_no_type(odd: Any) -> None:
    """Only names are looked up."""
    lines = [
        {"type": odd, "payload": {}},
        line("event_msg", type=odd),
        item("message", role="user", content=[{"type": odd}]),
    ]

    assert shape(read(*lines, message("user", "go")).messages)[-1] == "u:go"
    assert read_transcript(jsonl({"type": odd, "uuid": "u"}, {"type": "user", "message": {"content": "x"}})).messages


def test_old_scripts_and_patches_become_notes_and_come_back(tmp_path: Path) -> None:
    """`auto`: a custom tool's input is one string. The latest patch of a file and a function call's arguments stay, and
    the restored file is the original, byte for byte."""
    body = "".join(f"+    value_{number} = {number}" + chr(10) for number in range(60))
    patch = "*** Begin Patch" + chr(10) + "*** Update File: a.py" + chr(10) + body

    def custom(call_id: str, name: str, given: str) -> list[dict[str, Any]]:
        return [
            item("custom_tool_call", name=name, call_id=call_id, input=given),
            item("custom_tool_call_output", call_id=call_id, output="ok"),
        ]

    lines = [message("user", "go")]
    lines += custom("p1", "apply_patch", patch + "*** End Patch")
    lines += custom("p2", "apply_patch", patch + body + "*** End Patch")
    lines += custom("s1", "exec", f"const out = await tools.exec_command({{cmd: `{body}`}}); text('über')")
    lines += [call("f1", arguments=json.dumps({"cmd": body})), output("f1")]
    lines += [call("f2", name="apply_patch", arguments=body), output("f2")]
    for number in range(14):
        lines += [message("assistant", f"step {number}"), message("user", f"go on {number}")]
    raw = jsonl(META, *lines)
    options = PassOptions(provider="rules", rules_mode="auto", disk_check=False)

    compacted = compact(read_transcript(raw), options, Ports(stash_folder=tmp_path))

    notes = {record["id"] for record in compacted.report["decisions"] if record["inputs"]}
    assert notes == {"p1", "s1"}
    assert compacted.content is not None
    after = read_transcript(compacted.content)
    uses = [use for each in after.messages for use in each.tool_uses]
    assert {use.id for use in uses if "lcc recall" in str(use.input)} == notes
    inputs = restore_inputs(after, [compacted.report], Stash(tmp_path))
    assert render(after, Edits({}, inputs=inputs.strings)) == raw
