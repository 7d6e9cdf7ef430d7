"""What the session.compact event does not show is found in the session file, or said to be lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from client.pictures import png
from client.rows import NOTHING, PROGRAM, Rows, image, reminder
from making import text

from lcc_hook.inventory import AGAIN, ATTACHMENTS


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows(tmp_path / "session.jsonl")


def test_words_typed_while_the_agent_worked_are_found_at_their_result(rows: Rows) -> None:
    """Words queued behind a result come back verbatim, each at the row that it hangs on, in order."""
    rows.prompt()
    rows.call("A")
    first = rows.result("A")
    rows.attachment("queued_command", "in a reminder", prompt='one: 5→6 "quoted"\nand\ttab')
    rows.attachment("queued_command", "in a reminder", prompt=[text("two"), text("parts")])
    assert rows.found()["texts"] == [
        {"after": first, "text": 'one: 5→6 "quoted"\nand\ttab'},
        {"after": first, "text": "two\nparts"},
    ]


def test_what_hangs_on_a_prompt_is_left_alone(rows: Rows) -> None:
    """A prompt's handle brings its attachments and companions back: they are not given twice."""
    rows.prompt()
    rows.attachment("file", "the file")
    rows.meta("the body of a command")
    assert rows.found() == NOTHING


def test_a_chain_of_rows_leads_to_what_is_shown(rows: Rows) -> None:
    """Rows that are not shown can stand between the words and the result that they hang on."""
    rows.prompt()
    rows.call("A")
    anchor = rows.result("A")
    rows.attachment("prompt_snapshot", systemPrompt=["x" * 5000])
    rows.attachment("total_tokens_reminder", "many left")
    rows.attachment("queued_command", prompt="words")
    assert rows.found()["texts"] == [{"after": anchor, "text": "words"}]


def test_rows_of_another_branch_are_not_given_back(rows: Rows) -> None:
    """What hangs on a row that the event no longer shows was rewound, and stays away."""
    rows.prompt()
    rows.call("A")
    rows.result("A")
    rows.attachment("queued_command", prompt="rewound")
    assert rows.found(others=rows.others[:1])["texts"] == []


def test_skill_texts_and_hook_contexts_are_found(rows: Rows) -> None:
    """What the client sent beside the messages comes back as it was sent, marked as nothing that the user typed."""
    rows.prompt()
    rows.call("A")
    anchor = rows.result("A")
    rows.meta("SKILL TEXT")
    rows.meta("<local-command-caveat>of a command</local-command-caveat>")
    rows.attachment("nested_memory", reminder("RULES"))
    rows.attachment("task_reminder", reminder("TASKS"))
    rows.attachment("a_kind_of_tomorrow", "NEW KIND")
    rows.add("system", subtype="local_command", content="<local-command-stdout>OUT</local-command-stdout>")
    assert rows.found()["texts"] == [
        {"after": anchor, "text": reminder("SKILL TEXT")},
        {"after": anchor, "text": "<local-command-caveat>of a command</local-command-caveat>"},
        {"after": anchor, "text": reminder("RULES")},
        {"after": anchor, "text": reminder("TASKS")},
        {"after": anchor, "text": reminder("NEW KIND")},
        {"after": anchor, "text": "<local-command-stdout>OUT</local-command-stdout>"},
    ]


@pytest.mark.parametrize("kind", sorted(kind for kind, (fate, _) in ATTACHMENTS.items() if fate == AGAIN))
def test_what_the_client_says_again_by_itself_is_left_out(rows: Rows, kind: str) -> None:
    """Listings that the client makes anew, and figures that a compaction makes false, are not kept for ever."""
    rows.prompt()
    rows.call("A")
    rows.result("A")
    rows.attachment(kind, "said again")
    assert rows.found() == NOTHING


def copies(rows: Rows) -> list[Path]:
    """The copies that were saved for this session."""
    return sorted(rows.path.with_suffix("").glob("tool-results/*"))


def test_a_picture_typed_while_the_agent_worked_is_copied(rows: Rows) -> None:
    """The words come back with a line that names a private file with the picture's bytes."""
    rows.prompt()
    rows.call("A")
    rows.result("A")
    rows.attachment("queued_command", prompt=[text("look"), image(png())])
    found = rows.found()
    (copy,) = copies(rows)
    words, line = found["texts"][0]["text"].split("\n")
    assert words == "look"
    assert str(copy) in line
    assert copy.read_bytes() == png()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert found["lost"] == []


@pytest.mark.parametrize("on_disk", [png(), png(16), None], ids=["the same", "changed", "gone"])
def test_a_picture_that_was_read_names_a_file_with_its_bytes(rows: Rows, tmp_path: Path, on_disk: bytes | None) -> None:
    """The file that was read, where it still is the same picture; else a copy out of the session file."""
    path = tmp_path / "a picture.png"
    if on_disk is not None:
        path.write_bytes(on_disk)
    rows.prompt()
    rows.call("A", path)
    rows.result("A", image(png()))
    found = rows.found()
    named = [path] if on_disk == png() else copies(rows)
    assert [each.read_bytes() for each in named] == [png()]
    assert str(named[0]) in found["lines"]["A"]
    assert found["lost"] == []
    assert (copies(rows) == []) is (on_disk == png())


def test_a_picture_read_from_a_pipe_is_copied_at_once(rows: Rows, tmp_path: Path) -> None:
    """A FIFO at the picture's path never blocks the search."""
    path = tmp_path / "pipe.png"
    os.mkfifo(path)
    rows.prompt()
    rows.call("A", path)
    rows.result("A", image(png()))
    found = rows.found()
    (copy,) = copies(rows)
    assert str(copy) in found["lines"]["A"]


def test_a_document_and_its_text_keep_both(rows: Rows, tmp_path: Path) -> None:
    """Several parts of one result are all named, and the copies are whole."""
    rows.prompt()
    rows.call("A", tmp_path / "a.pdf")
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
    rows.result("A", text("a PDF"), pdf, image(png()))
    found = rows.found()
    assert {copy.read_bytes() for copy in copies(rows)} == {b"%PDF-", png()}
    assert all(str(copy) in found["lines"]["A"] for copy in copies(rows))


@pytest.mark.parametrize("on_disk", [png(), png(16), None], ids=["there", "changed", "gone"])
def test_the_copy_that_the_client_saved_is_enough(rows: Rows, tmp_path: Path, on_disk: bytes | None) -> None:
    """An MCP picture's text names the client's own copy; ours is kept only where that one is not right."""
    path = tmp_path / "saved.png"
    if on_disk is not None:
        path.write_bytes(on_disk)
    rows.prompt()
    rows.call("A")
    rows.result("A", text("here"), image(png()), text(f"[Image: source: {path}]"))
    found = rows.found()
    assert (found["lines"] == {}) is (on_disk == png())
    assert (copies(rows) == []) is (on_disk == png())
    assert found["lost"] == []


@pytest.mark.parametrize(
    "source",
    [
        {"type": "url", "url": "http://localhost/a.png"},
        {"type": "base64", "media_type": "image/png", "data": "?"},
        {"type": "base64", "media_type": "image/tiff", "data": "AAAA"},
    ],
    ids=["an address", "no base64", "another format"],
)
def test_a_picture_that_cannot_be_kept_is_said_to_be_lost(rows: Rows, source: dict[str, str]) -> None:
    """Where no file can stand for it, the replacement must not happen."""
    rows.prompt()
    rows.call("A")
    rows.result("A", {"type": "image", "source": source})
    assert len(rows.found()["lost"]) == 1
    assert copies(rows) == []


def test_a_folder_that_takes_no_copy_means_lost(rows: Rows) -> None:
    """A copy that cannot be written is no copy."""
    rows.path.with_suffix("").write_text("in the way", encoding="utf-8")
    rows.prompt()
    rows.call("A")
    rows.result("A", image(png()))
    assert "no copy of it could be kept" in rows.found()["lost"][0]


def test_loaded_tools_are_named(rows: Rows) -> None:
    """The result of a tool search holds references, which a fresh message cannot hold."""
    rows.prompt()
    rows.call("A")
    rows.result("A", *({"type": "tool_reference", "tool_name": name} for name in ("One", "Two")))
    found = rows.found()
    assert "One, Two" in found["lines"]["A"]
    assert found["lost"] == []


def test_pictures_before_the_shown_rows_do_not_matter(rows: Rows) -> None:
    """What an earlier compaction left behind is no longer sent and cannot be lost."""
    rows.prompt()
    rows.call("A")
    rows.result("A", image(png()))
    rows.attachment("queued_command", prompt="old words")
    rows.prompts.clear()
    rows.others.clear()
    rows.parent = None
    rows.add("system", subtype="compact_boundary", content="Conversation compacted")
    rows.prompt("after the boundary")
    assert rows.found() == NOTHING


@pytest.mark.parametrize("missing", [1, 40, 120, 300])
def test_a_row_that_is_being_written_is_waited_for(rows: Rows, missing: int) -> None:
    """The client writes behind its own back: the end of the newest shown row may come a moment later, its id before."""
    rows.prompt()
    rows.call("A")
    with rows.path.open("rb+") as file:
        whole = file.read()
        file.truncate(len(whole) - missing)
    later = threading.Timer(0.2, lambda: rows.path.write_bytes(whole))
    later.start()
    assert rows.found() == NOTHING
    later.join()


def test_a_row_that_never_comes_is_an_error(rows: Rows) -> None:
    """Without the newest row the file does not tell what is hidden."""
    rows.prompt()
    done = rows.ask(last=str(uuid.uuid4()))
    assert (done.returncode, done.stdout) == (1, "")
    assert "newest message" in done.stderr


def test_a_torn_last_line_is_not_read(rows: Rows) -> None:
    """A line that the client has not finished is no row yet."""
    rows.prompt()
    last = rows.parent
    with rows.path.open("a", encoding="utf-8") as file:
        file.write('{"parentUuid":"x","isMeta":true,"type":"user","mess')
    assert rows.found(last=last)["texts"] == []


def test_a_subagents_words_are_in_its_own_file(rows: Rows) -> None:
    """A sub-agent's conversation has a file of its own beside the session's."""
    own = rows.path.with_suffix("") / "subagents" / "agent-a1b2.jsonl"
    own.parent.mkdir(parents=True)
    main, rows.path = rows.path, own
    rows.prompt()
    rows.call("A")
    rows.result("A")
    rows.attachment("queued_command", prompt="to the agent")
    assert rows.found(transcript=str(main), agent_id="a1b2")["texts"][0]["text"] == "to the agent"


@pytest.mark.parametrize("asked", ["", "[]", '{"transcript": 5}', "{}"])
def test_a_malformed_question_is_an_error(asked: str) -> None:
    """Whatever comes in, there is a reason on stderr and no traceback."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-E", PROGRAM],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
