"""The closed inventory: each kind of row and block has one fate, and what has none stops the replacement."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from client import kinds
from client.rows import NOTHING, Rows, image, reminder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from making import text

from lcc_hook import inventory
from lcc_hook.inventory import ASSISTANT, ATTACHMENTS, CARRIED, HANDED, NEVER, PARTS, SYSTEM, USER
from lcc_hook.unseen import Asked, find

CHECKOUT = Path(__file__).parents[2]
SCRIPT = CHECKOUT / "scripts" / "session_kinds.py"
MARK = re.compile(r"MARK-\w+-\w+")
OLDER = {**kinds.OLDER, **kinds.ELSEWHERE}


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    """A session with one call and its result, on which the next row hangs."""
    made = Rows(tmp_path / "session.jsonl")
    made.prompt()
    made.call("A")
    made.result("A")
    return made


def marks(value: object) -> set[str]:
    return set(MARK.findall(json.dumps(value)))


def with_fate(table: dict[str, tuple[str, str]], *fates: str) -> list[str]:
    return sorted(kind for kind, (fate, _) in table.items() if fate in fates)


def test_the_table_of_the_readme_is_that_of_the_code() -> None:
    """hook/README.md lists every kind as the code has it."""
    made = subprocess.run([sys.executable, SCRIPT, "--table"], capture_output=True, text=True, check=True).stdout
    readme = (CHECKOUT / "hook" / "README.md").read_text(encoding="utf-8")
    written = readme.partition("<!-- the table of kinds -->\n")[2].partition("\n<!-- end -->")[0]
    assert written == made.strip(), "write it again: python scripts/session_kinds.py --table"


def test_every_kind_of_an_older_client_has_an_example() -> None:
    """The examples leave out no kind that is put into words of ours."""
    assert set(OLDER) == set(inventory.OLDER)


@pytest.mark.parametrize("kind", sorted(OLDER))
def test_an_attachment_of_an_older_client_is_carried_with_every_field_that_is_sent(rows: Rows, kind: str) -> None:
    """Every mark comes back, nothing that is not sent comes with it, and none of it is a word of the user."""
    anchor = rows.others[-1]
    rows.attachment(kind, **OLDER[kind])
    found = rows.found()
    (added,) = found["texts"]
    assert added["after"] == anchor
    assert marks(added) == marks(OLDER[kind])
    assert "UNSENT" not in added["text"]
    assert added["text"].startswith("<system-reminder>\n")
    assert found["lost"] == []


@pytest.mark.parametrize("fields", [{}, {"content": None}, {"content": [5]}, {"content": "text", "files": {"a": [{}]}}])
def test_an_attachment_of_another_shape_is_no_crash(rows: Rows, fields: dict[str, Any]) -> None:
    """A damaged or foreign attachment is put into words as far as it goes."""
    for kind in OLDER:
        rows.attachment(kind, **fields)
    assert rows.found()["lost"] == []


def test_an_attachment_that_is_never_sent_is_not_carried(rows: Rows) -> None:
    """What the client keeps for itself does not become a message."""
    for kind in with_fate(ATTACHMENTS, NEVER):
        rows.attachment(kind, content="UNSENT", prompt="UNSENT")
    assert rows.found() == NOTHING


@pytest.mark.parametrize("event", ["PostToolUse", "Stop"])
def test_what_a_hook_of_another_event_printed_is_never_sent(rows: Rows, event: str) -> None:
    """The client sends what hooks print at a session's start and at prompts alone."""
    rows.attachment("hook_success", hookName=event, hookEvent=event, content="UNSENT")
    assert rows.found() == NOTHING


@pytest.mark.parametrize("kind", ["hook_additional_context", "hook_success", "async_hook_response", "diagnostics"])
def test_a_hook_that_said_nothing_adds_nothing(rows: Rows, kind: str) -> None:
    """The client sends no row for an empty context."""
    rows.attachment(kind, hookName="SessionStart", hookEvent="SessionStart", content="", response={}, files=[])
    assert rows.found() == NOTHING


def test_an_attachment_that_says_what_was_sent_is_carried_so(rows: Rows) -> None:
    """``rendered`` holds: each of its texts comes back, whatever else the row says."""
    for kind in (sent := with_fate(ATTACHMENTS, CARRIED)):
        row = {"type": kind, "prompt": "typed", "commandMode": "channel", "content": "UNSENT"}
        rows.add("attachment", attachment=row, rendered=[{"content": reminder(kind)}, {"content": [text(kind)]}])
    assert [each["text"] for each in rows.found()["texts"]] == [reminder(kind) for kind in sent for _ in range(2)]


def test_a_system_row_for_the_screen_is_never_sent(rows: Rows) -> None:
    """Durations, notices and the like do not become messages."""
    for kind in set(with_fate(SYSTEM, NEVER)) - {"compact_boundary"}:
        rows.add("system", **({"subtype": kind} if kind else {}), content="UNSENT")
    assert rows.found() == NOTHING


def test_what_a_command_printed_for_the_screen_alone_is_never_sent(rows: Rows) -> None:
    """A local command's output that the client marks for display stays out."""
    rows.add("system", subtype="local_command", content="UNSENT", isDisplayOnly=True)
    assert rows.found() == NOTHING


UNKNOWN: dict[str, Any] = {
    "a row": lambda rows: rows.add("tomorrow", content="?"),
    "a system row": lambda rows: rows.add("system", subtype="tomorrow", content="?"),
    "an attachment": lambda rows: rows.attachment("tomorrow", content="?"),
    "an attachment of no kind": lambda rows: rows.add("attachment", attachment=None),
    "a block of the assistant": lambda rows: rows.assistant({"type": "tomorrow", "content": "?"}),
    "a block of the assistant among others": lambda rows: rows.assistant(text("a"), {"type": "container_upload"}),
    "a block beside a result": lambda rows: rows.result("B", beside=({"type": "tomorrow"},)),
    "a block that is no object": lambda rows: rows.assistant(text("a"), "b"),
    "a part of a result": lambda rows: rows.result("B", text("a"), {"type": "tomorrow", "data": "?"}),
    "a block of a row of the client's": lambda rows: rows.add(
        "user", message={"role": "user", "content": [{"type": "tomorrow"}]}, isMeta=True
    ),
    "a block of the assistant without a type": lambda rows: rows.assistant({"text": "said?"}),
    "an object for the blocks of a row of the client's": lambda rows: rows.add(
        "user", message={"role": "user", "content": {"type": "text", "text": "?"}}, isMeta=True
    ),
    "an object for the parts of a result": lambda rows: rows.result_of("B", {"type": "text", "text": "?"}),
    "a field of a text": lambda rows: rows.assistant({**text("a"), "tomorrow": "?"}),
    "a field of a call": lambda rows: rows.assistant(
        {"type": "tool_use", "id": "C", "name": "Read", "input": {}, "tomorrow": "?"}
    ),
    "a field of a picture beside a result": lambda rows: rows.result("B", beside=({"type": "image", "tomorrow": "?"},)),
    "a field of a part of a result": lambda rows: rows.result("B", {**text("a"), "tomorrow": "?"}),
    "a block of words typed mid-turn": lambda rows: rows.attachment("queued_command", prompt=[{"type": "tomorrow"}]),
    "words that a row says are more than text": lambda rows: rows.add(
        "attachment", attachment={"type": "instructions"}, renderedRole="system"
    ),
}


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_an_unknown_kind_stops_the_replacement(rows: Rows, name: str) -> None:
    """What nobody has looked at is named, and nothing is replaced."""
    if "result" in name:
        rows.call("B")
    UNKNOWN[name](rows)
    assert len(rows.found()["lost"]) == 1


@pytest.mark.parametrize("name", ["a row", "a system row", "an attachment", "a block of a row of the client's"])
def test_an_unknown_kind_behind_a_prompt_comes_back_with_it(rows: Rows, name: str) -> None:
    """The prompt's handle brings whatever hangs on it, known or not."""
    rows.prompt("again")
    UNKNOWN[name](rows)
    assert rows.found() == NOTHING


@pytest.mark.parametrize("kind", with_fate(ATTACHMENTS, HANDED))
def test_what_no_text_can_show_is_handed_over(rows: Rows, kind: str) -> None:
    """Rows that the client sends as calls of its own making stop the replacement."""
    rows.attachment(kind, envelopes=[])
    assert kind in rows.found()["lost"][0]


@pytest.mark.parametrize("kind", sorted(set(ASSISTANT) - {"text", "tool_use", "thinking", "redacted_thinking"}))
@pytest.mark.parametrize("alone", [True, False], ids=["a row of its own", "one row"])
def test_a_block_of_a_tool_that_the_api_runs_is_carried(rows: Rows, kind: str, alone: bool) -> None:
    """Every text of it comes back behind the assistant's row, and as no word of the user."""
    block = {"type": kind, **kinds.SERVER_TOOLS[kind]}
    if alone:
        anchor = rows.assistant(block)
        rows.assistant(text("found"))
    else:
        anchor = rows.assistant(block, text("found"))
    found = rows.found()
    (added,) = found["texts"]
    assert (added["after"], marks(added)) == (anchor, marks(block))
    assert added["text"].startswith("<system-reminder>\n")
    assert found["lost"] == []


def test_what_the_api_alone_can_read_is_handed_over(rows: Rows) -> None:
    """A page's text that is encrypted was read by the model, and no text can show it to it again."""
    page = {"type": "web_search_result", "title": "a", "url": "b", "encrypted_content": "x" * 5000}
    rows.assistant({"type": "web_search_tool_result", "tool_use_id": "srv", "content": [page]})
    (lost,) = rows.found()["lost"]
    assert "web_search_tool_result" in lost
    assert "the API alone can read" in lost


def test_a_pdf_that_the_api_fetched_is_copied(rows: Rows) -> None:
    """Bytes within the answer of such a tool become a file."""
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    content = {"type": "web_fetch_result", "url": "u", "content": {"type": "document", "source": source}}
    rows.assistant({"type": "web_fetch_tool_result", "tool_use_id": "srv", "content": content})
    found = rows.found()
    (copy,) = rows.path.with_suffix("").glob("tool-results/*.pdf")
    assert copy.read_bytes() == b"%PDF-"
    assert str(copy) in found["texts"][0]["text"]
    assert "JVBERi0=" not in found["texts"][0]["text"]


def test_what_an_answer_rests_on_is_carried(rows: Rows) -> None:
    """Citations of a text come back behind it."""
    cited = {"type": "web_search_result_location", "url": "MARK-c-url", "title": "t", "cited_text": "MARK-c-text"}
    anchor = rows.assistant({**text("so it is"), "citations": [cited]})
    rows.assistant({**text("and so on"), "citations": []})
    (added,) = rows.found()["texts"]
    assert (added["after"], marks(added)) == (anchor, {"MARK-c-url", "MARK-c-text"})


@pytest.mark.parametrize("kind", sorted(set(PARTS) - {"text", "image"}))
def test_a_part_of_a_result_is_carried_below_its_text(rows: Rows, kind: str) -> None:
    """The line of the call holds every text of the part."""
    rows.call("B")
    rows.result("B", text("a"), kinds.PARTS[kind])
    found = rows.found()
    assert marks(found["lines"]["B"]) == marks(kinds.PARTS[kind])
    assert (found["texts"], found["lost"]) == ([], [])


@pytest.mark.parametrize("kind", sorted(set(USER) - {"text", "tool_result"}))
def test_what_stands_beside_a_result_is_carried_behind_it(rows: Rows, kind: str) -> None:
    """Pictures as a file's name, documents and search results with their texts; no word of the user."""
    block = {"image": kinds.PICTURE, "document": kinds.DOCUMENT, "search_result": kinds.SEARCH_RESULT}[kind]
    rows.call("B")
    anchor = rows.result("B", beside=(block,))
    found = rows.found()
    (added,) = found["texts"]
    assert (added["after"], marks(added)) == (anchor, marks(block))
    assert added["text"].startswith("<system-reminder>\n")
    assert found["lines"] == {}


@pytest.mark.parametrize(
    "source", [{"type": "url", "url": "http://localhost/a.pdf"}, {"type": "file", "file_id": "f"}, None, {}]
)
def test_a_document_that_stands_elsewhere_is_handed_over(rows: Rows, source: dict[str, str] | None) -> None:
    """What the session file does not hold cannot be shown."""
    rows.call("B")
    rows.result("B", {"type": "document", "source": source})
    assert len(rows.found()["lost"]) == 1


def test_a_document_of_blocks_of_text_is_carried(rows: Rows) -> None:
    """Its texts come back; with a picture among them it does not."""
    rows.call("B")
    rows.result("B", {"type": "document", "source": {"type": "content", "content": [text("MARK-a-b")]}})
    rows.call("C")
    rows.result("C", {"type": "document", "source": {"type": "content", "content": [image(b"x")]}})
    found = rows.found()
    assert marks(found["lines"]["B"]) == {"MARK-a-b"}
    assert len(found["lost"]) == 1


# ---------------------------------------------------------------- rows that were never sent


def api_error(rows: Rows) -> str:
    message = {"role": "assistant", "model": "<synthetic>", "content": [text("You have hit your limit")]}
    rows.others.append(rows.add("assistant", message=message, isApiErrorMessage=True, error="rate_limit"))
    rows.worded.append(rows.others[-1])
    return rows.others[-1]


def test_an_api_error_is_no_message(rows: Rows) -> None:
    """The client shows it in its event and never sends it; what hangs on it is sent all the same."""
    first = api_error(rows)
    rows.attachment("queued_command", prompt="words")
    second = api_error(rows)
    found = rows.found()
    assert found["unsent"] == [first, second]
    assert found["texts"] == [{"after": first, "text": "words"}]


def test_a_row_for_the_screen_is_no_message(rows: Rows) -> None:
    """Virtual rows are shown and never sent."""
    virtual = rows.assistant(text("shown"), isVirtual=True)
    rows.add("user", message={"role": "user", "content": "UNSENT"}, isVirtual=True)
    assert rows.found() == {**NOTHING, "unsent": [virtual]}


@pytest.mark.parametrize("mode", ["prompt", None])
def test_the_users_words_stay_the_users(rows: Rows, mode: str | None) -> None:
    """Words typed mid-turn are no reminder, and what the client sent with them stands behind."""
    row = {"type": "queued_command", "prompt": "MY <words>", **({"commandMode": mode} if mode else {})}
    sent = [{"content": reminder("so many calls")}, {"content": reminder("While you worked:\nMY <words>")}]
    rows.add("attachment", attachment=row, rendered=sent)
    assert [each["text"] for each in rows.found()["texts"]] == ["MY <words>", reminder("so many calls")]


@pytest.mark.parametrize("more", [{"isMeta": True}, {"origin": {"kind": "peer"}}, {"commandMode": "channel"}])
def test_what_others_sent_mid_turn_is_not_the_users(rows: Rows, more: dict[str, Any]) -> None:
    """What a program or another session sent is carried, and marked as nothing that the user typed."""
    rows.attachment("queued_command", prompt="from elsewhere", **more)
    assert [each["text"] for each in rows.found()["texts"]] == [reminder("from elsewhere")]


def test_a_report_comes_back_as_it_was(rows: Rows) -> None:
    """A background agent's report says itself what it is."""
    report = "<task-notification>\n<result>done</result>\n</task-notification>"
    rows.attachment("queued_command", reminder(f"SYSTEM\n{report}"), prompt=report, commandMode="task-notification")
    assert [each["text"] for each in rows.found()["texts"]] == [report]


def test_words_that_a_batch_shows_are_not_given_twice(rows: Rows) -> None:
    """A row whose words the batch's first row shows is not sent by itself."""
    rows.attachment("queued_command", prompt="one of two", renderedByBatchHead=True)
    assert rows.found() == NOTHING


# ---------------------------------------------------------------- the live branch


def test_a_message_that_the_file_does_not_hold_stops_the_replacement(rows: Rows) -> None:
    """Without its row nobody knows what a message holds."""
    rows.others.append("00000000-0000-4000-8000-000000000000")
    assert "does not hold" in rows.found()["lost"][0]


def test_a_message_on_the_way_that_was_not_shown_stops_the_replacement(rows: Rows) -> None:
    """A message that the conversation passes through did not arrive."""
    rows.add("user", message={"role": "user", "content": "unseen"})
    rows.assistant(text("answer"))
    assert "did not show" in rows.found()["lost"][0]


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "thinking", "thinking": "", "signature": "s"}],
        [{"type": "text", "text": " "}],
        [{"type": "tool_use", "id": "never answered", "name": "Bash", "input": {}}],
    ],
    ids=["thinking", "blank", "a call without a result"],
)
def test_a_message_that_nothing_is_sent_of_is_not_missed(rows: Rows, blocks: list[dict[str, Any]]) -> None:
    """On a resume the client drops calls that were never answered and messages of thinking alone."""
    rows.add("assistant", message={"role": "assistant", "content": blocks})
    rows.prompt("next")
    assert rows.found() == NOTHING


@pytest.mark.parametrize("shown", ["worded", "calls", "results"])
def test_a_block_that_was_not_shown_stops_the_replacement(rows: Rows, shown: str) -> None:
    """A text, a call or a result of a shown row that the event leaves out did not arrive."""
    rows.assistant(text("answer"))
    assert "did not show" in rows.found(**{shown: []})["lost"][0]


def test_rows_ahead_of_the_first_message_go_to_the_front(tmp_path: Path) -> None:
    """What leads to a first message that keeps no handle would go with it."""
    rows = Rows(tmp_path / "session.jsonl")
    rows.add("system", subtype="compact_boundary")
    rows.attachment("hook_additional_context", reminder("START"))
    rows.assistant(text("answer"))
    rows.prompt()
    assert rows.found(first=rows.others[0])["texts"] == [{"after": "", "text": reminder("START")}]


def test_rows_ahead_of_a_first_prompt_come_back_with_it(tmp_path: Path) -> None:
    """The client gives what stands ahead of the first message back with its handle."""
    rows = Rows(tmp_path / "session.jsonl")
    rows.attachment("hook_additional_context", reminder("START"))
    rows.prompt()
    rows.assistant(text("answer"))
    assert rows.found() == NOTHING


def test_messages_kept_from_before_a_boundary_are_found(rows: Rows) -> None:
    """After a summary the client may go on with newest messages whose rows stand before the boundary."""
    rows.attachment("queued_command", prompt="kept words")
    prompts, others = rows.prompts[:0], rows.others[-1:]
    rows.parent = None
    rows.add("system", subtype="compact_boundary")
    summary = rows.prompt("summary")
    rows.assistant(text("answer"))
    shown = {"prompts": [*prompts, summary], "others": [*others, rows.others[-1]], "first": summary}
    assert rows.found(**shown) == {**NOTHING, "texts": [{"after": others[0], "text": "kept words"}]}


DAMAGE = {
    "a torn attachment": b'{"parentUuid":"x","type":"attachment","attachment":{"type":"queued_command","promp\n',
    "NUL bytes": b"\0" * 300 + b"\n",
    "null": b"null\n",
    "a list": b"[1, 2]\n",
    "no UTF-8": b'{"type":"attachment","uuid":"\xff\xfe","attachment":{"type":"tomorrow"}}\n',
    "a lone surrogate": b'{"type":"progress","uuid":"u","data":"\\ud800"}\n',
    "an endless nest": b"[" * 100_000 + b"\n",
    "an empty line": b"\n",
}


@pytest.mark.parametrize("name", sorted(DAMAGE))
def test_a_damaged_line_hides_nothing(rows: Rows, name: str) -> None:
    """What the client cannot read was never sent: it is read around, and what stands behind it is found."""
    with rows.path.open("ab") as file:
        file.write(DAMAGE[name])
    anchor = rows.others[-1]
    rows.attachment("queued_command", prompt="words")
    assert rows.found() == {**NOTHING, "texts": [{"after": anchor, "text": "words"}]}


def test_two_records_on_one_line_are_both_read(rows: Rows) -> None:
    """A line break that was not written loses neither record."""
    rows.attachment("queued_command", prompt="one")
    rows.attachment("queued_command", prompt="two")
    lines = rows.path.read_bytes().split(b"\n")
    rows.path.write_bytes(b"\n".join([*lines[:-3], lines[-3] + lines[-2], b""]))
    assert [each["text"] for each in rows.found()["texts"]] == ["one", "two"]


@pytest.mark.parametrize("folder", ["", "workflows/wf_1", "a/b/c/d"])
def test_a_subagent_in_any_folder_is_found(tmp_path: Path, folder: str) -> None:
    """Agents of a workflow write into folders of their own below the session's."""
    own = tmp_path / "session" / "subagents" / folder / "agent-a1b2.jsonl"
    own.parent.mkdir(parents=True)
    rows = Rows(own)
    rows.prompt()
    rows.call("A")
    rows.result("A")
    rows.attachment("queued_command", prompt="to the agent")
    found = rows.found(transcript=str(tmp_path / "session.jsonl"), agent_id="a1b2")
    assert found["texts"][0]["text"] == "to the agent"


@pytest.mark.parametrize("agent", ["a1b2", "../../x", "", "a/b"])
def test_a_subagent_without_a_file_is_an_error(rows: Rows, agent: str) -> None:
    """A file that is nowhere, and an id that leads elsewhere, are said."""
    (rows.path.with_suffix("") / "subagents").mkdir(parents=True)
    done = rows.ask(agent_id=agent)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be found" in done.stderr


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_KEYS = st.sampled_from(
    ["type", "text", "content", "source", "data", "id", "tool_use_id", "prompt", "rendered", "citations", "encrypted"]
)
_KINDS = st.sampled_from(
    sorted({*ASSISTANT, *USER, *PARTS, *ATTACHMENTS, *SYSTEM, "base64", "url", "tomorrow", "local_command"})
)
_JSON = st.recursive(
    _LEAVES | _KINDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | _KINDS, inner, max_size=4)
)
_ROWS = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "attachment", "system", "tomorrow"])},
    optional={
        "message": st.fixed_dictionaries({"content": _JSON}) | _JSON,
        "attachment": st.fixed_dictionaries({"type": _KINDS}, optional={"content": _JSON, "prompt": _JSON}) | _JSON,
        "rendered": _JSON,
        "subtype": _JSON,
        "content": _JSON,
        "isMeta": st.booleans(),
    },
)


@given(st.lists(_ROWS, max_size=6), st.booleans())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_row_of_whatever_shape_is_a_fault(made: list[dict[str, Any]], shown: bool) -> None:
    """Any JSON in any field is carried, left out or lost; there is an answer, and it is JSON."""
    parent: str | None = None
    lines, uuids = [], []
    for number, fields in enumerate([{"type": "user", "message": {"content": "go"}}, *made]):
        uuids.append(f"00000000-0000-4000-8000-{number:012}")
        lines.append(json.dumps({**fields, "parentUuid": parent, "uuid": uuids[-1]}) + "\n")
        parent = uuids[-1]
    question = {"transcript": "/dev/null/s.jsonl", "agent_id": None, "last": parent, "reads": {}}
    others = uuids if shown else uuids[:1]
    found = find("".join(lines).encode(), Asked({**question, "prompts": [], "others": others, "first": uuids[0]}))
    json.dumps([found.texts, found.lines, found.unsent, found.lost])
    assert all(each["after"] in uuids for each in found.texts)


# ---------------------------------------------------------------- the script


def kinds_in(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=False)


def test_the_script_knows_every_example(rows: Rows, tmp_path: Path) -> None:
    """Over sessions of known kinds it finds nothing unknown; records beside the conversation do not count."""
    for kind, fields in OLDER.items():
        rows.attachment(kind, **fields)
    for kind, fields in kinds.SERVER_TOOLS.items():
        rows.assistant({"type": kind, **fields})
    rows.call("B")
    rows.result("B", *kinds.PARTS.values(), beside=(kinds.PICTURE,))
    with rows.path.open("a", encoding="utf-8") as file:
        file.write('{"type":"a-record-of-tomorrow","sessionId":"s"}\n{"type":"assi')
    done = kinds_in(tmp_path)
    assert (done.returncode, "unknown" in done.stdout) == (0, False)
    assert "part of a result: resource_link" in done.stdout


@pytest.mark.parametrize("name", ["a row", "a system row", "an attachment", "a block of the assistant"])
def test_the_script_names_what_is_unknown(rows: Rows, tmp_path: Path, name: str) -> None:
    """An unknown kind is counted and named, and the exit code says so."""
    UNKNOWN[name](rows)
    done = kinds_in(tmp_path)
    assert done.returncode == 1
    assert re.search(r"1 unknown +.*: tomorrow", done.stdout)
