"""A session with every known kind of row and block, compacted by the real client and resumed.

It shows both that the client sends each kind as the inventory says, and that a replacement loses and adds nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from client import kinds
from client.claude_process import Claude, Lab, Turn
from client.conftest import PLUGIN, Table, lab_folder
from client.conversation import Item, calls, conversation, results, texts
from client.messages_api import MessagesApi, Reply, Script, call, say, serve
from making import SessionFile

from lcc_hook.inventory import ATTACHMENTS, NEVER, SYSTEM

pytestmark = pytest.mark.client

MARK = re.compile(r"(?:MARK|UNSENT)-\w+-\w+")
ACTED_ON = {"hook_deferred_tool"}
"""Never sent, and a client that resumes the session acts on it first."""
ADVISOR = "advisor_tool_result"
"""Sent where an advisor is set up."""
STAGES = ("compacted", "resumed", "compacted again", "resumed again")
SKILL = "Base directory for this skill: /s\n\nMARK-meta-skill"
TYPED = "MARK-queued_command-typed"
REPORT = "<task-notification>\n<result>MARK-queued_command-report</result>\n</task-notification>"
ERROR = "You have hit your limit: UNSENT-api-error"


@dataclass
class Course:
    """What the model was sent at each stage, and what the compactions said."""

    lab: Lab
    api: MessagesApi
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)

    def note(self, stage: str) -> None:
        self.bodies[stage] = self.api.of("main")[-1].body

    def marks(self, stage: str) -> Counter[str]:
        """How often each mark stands in what the model was sent."""
        return Counter(MARK.findall(json.dumps(self.bodies[stage]["messages"])))

    def items(self, stage: str) -> list[Item]:
        return conversation(self.bodies[stage])


def session_of_every_kind(lab: Lab) -> SessionFile:
    """Old reads that can go, then everything else, each kind behind a result, and some talk."""
    session = SessionFile(lab.project)
    big = "".join(f"line {number}: something worth removing\n" for number in range(3000))
    session.user("Read what is there.")
    session.read("toolu_old", lab.write("src/one.py", big))
    session.assistant(say("I have read it."))
    session.user("Now the rest.")
    for number, (kind, fields) in enumerate(kinds.OLDER.items()):
        bash(session, f"toolu_{kind}", str(number))
        session.row("attachment", attachment={"type": kind, **fields}, version="2.1.150")
    bash(session, "toolu_rest", "rest")
    for kind in sorted({kind for kind, (fate, _) in ATTACHMENTS.items() if fate == NEVER} - ACTED_ON):
        session.row("attachment", attachment={"type": kind, "content": f"UNSENT-{kind}-text"})
    for kind in sorted(kind for kind, (fate, _) in SYSTEM.items() if fate == NEVER and kind != "compact_boundary"):
        session.row("system", subtype=kind, content=f"UNSENT-{kind}-text", level="info")
    session.row("attachment", attachment={"type": "queued_command", "prompt": TYPED, "commandMode": "prompt"})
    session.row(
        "attachment", attachment={"type": "queued_command", "prompt": REPORT, "commandMode": "task-notification"}
    )
    session.row("user", message={"role": "user", "content": [say(SKILL)]}, isMeta=True)
    for kind, part in kinds.PARTS.items():
        if kind == "tool_reference":  # sent for tools that are there: test_workday.py loads one
            continue
        session.assistant({"type": "tool_use", "id": f"toolu_p_{kind}", "name": "Bash", "input": {"command": kind}})
        session.result(f"toolu_p_{kind}", [say(f"MARK-{kind}-beside"), part])
    for kind, block in {"image": kinds.PICTURE, "text": say("MARK-beside-text"), "document": kinds.DOCUMENT}.items():
        session.assistant({"type": "tool_use", "id": f"toolu_b_{kind}", "name": "Bash", "input": {"command": kind}})
        session.result(f"toolu_b_{kind}", [say("x")], block)
    for block in [*server_tools(), say("Found it all.")]:
        block_of(session, "msg_server", block)
    streamed(session)
    printed = "<local-command-stdout>MARK-local_command-printed</local-command-stdout>"
    session.row("system", subtype="local_command", content=printed, level="info")
    session.user("Question?")
    session.row(
        "assistant",
        message={"id": "msg_error", "role": "assistant", "model": "<synthetic>", "content": [say(ERROR)], "usage": {}},
        isApiErrorMessage=True,
        error="rate_limit",
    )
    for number in range(6):
        session.user(f"Question {number}?")
        session.assistant(say(f"Answer {number}."))
    session.write(lab.home)
    return session


def block_of(session: SessionFile, message_id: str, block: dict[str, Any]) -> None:
    """A row with one block of a message that has several rows."""
    message = {"id": message_id, "role": "assistant", "model": "claude-opus-5-5", "content": [block], "usage": {}}
    session.row("assistant", message=message)


def streamed(session: SessionFile) -> None:
    """Calls of one answer that run while it still comes in: results stand ahead of its last call."""
    calls = {name: {"type": "tool_use", "id": f"toolu_s_{name}", "name": "Bash", "input": {}} for name in "abc"}
    for name in ("a", "b", "A", "c", "B", "C"):
        if name in calls:
            block_of(session, "msg_streamed", calls[name])
        else:
            session.result(f"toolu_s_{name.lower()}", f"MARK-streamed-{name.lower()}")
    session.assistant(say("All three came."))


def server_tools() -> Iterator[dict[str, Any]]:
    """Each answer of a tool that the API runs behind its call: one without the other is not sent."""
    for kind, fields in kinds.SERVER_TOOLS.items():
        if kind == ADVISOR:
            continue
        if kind.endswith("_result") and fields["tool_use_id"] not in ("srv_1", "mcp_1"):
            yield {"type": "server_tool_use", "id": fields["tool_use_id"], "name": kind, "input": {}}
        yield {"type": kind, **fields}


def bash(session: SessionFile, call_id: str, output: str) -> None:
    session.assistant({"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": output}})
    session.result(call_id, output)


@pytest.fixture(scope="module")
def course(current_client: Path, table: Table) -> Iterator[Course]:
    with lab_folder() as lab:
        session = session_of_every_kind(lab)
        options = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.0}}}}
        more = lab.write("src/two.py", "".join(f"more {number}: something worth removing\n" for number in range(3000)))
        again = Reply([call("toolu_more", "Read", file_path=str(more))])
        talk = [Reply([say(f"Here, {number}.")]) for number in range(12)]
        with serve(Script([*talk[:3], again, *talk[3:]])) as (api, url):
            recorded = Course(lab, api)
            how: dict[str, Any] = {"plugin_dirs": [PLUGIN], "resume": session.id, "settings": options}
            with Claude(current_client, lab, url, **how) as claude:
                claude.ask("Before.")
                recorded.note("before")
                recorded.turns.append(claude.ask("/compact"))
                claude.ask("After.")
                recorded.note("compacted")
            with Claude(current_client, lab, url, **how) as claude:
                claude.ask("In a new process.")
                recorded.note("resumed")
                for prompt in ("Read on.", *(f"Talk, {number}." for number in range(5))):
                    claude.ask(prompt)
                recorded.note("before the second")
                recorded.turns.append(claude.ask("/compact"))
                claude.ask("After the second.")
                recorded.note("compacted again")
            with Claude(current_client, lab, url, **how) as claude:
                claude.ask("In a third process.")
                recorded.note("resumed again")
            table.add("every kind of row and block", "everything, a note for the old read", recorded.turns[0], lab)
            yield recorded


def before(stage: str) -> str:
    return "before" if stage in STAGES[:2] else "before the second"


@pytest.mark.parametrize("stage", ["before", "before the second", *STAGES])
def test_nothing_is_sent_that_is_never_sent(course: Course, stage: str) -> None:
    """What the client keeps for itself is in no request, with us or without us."""
    assert [mark for mark in course.marks(stage) if mark.startswith("UNSENT")] == []


def test_every_kind_that_is_carried_is_sent(course: Course) -> None:
    """The inventory is right about the client: it sends every field of every example."""
    assert expected_marks() - set(course.marks("before")) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_lost_or_added(course: Course, stage: str) -> None:
    """The model reads every mark that it read before the compaction, once, and no other."""
    assert set(course.marks(stage)) == set(course.marks(before(stage)))
    assert [mark for mark, times in course.marks(stage).items() if times > course.marks(before(stage))[mark]] == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_conversation_differs_in_what_the_plan_names_alone(course: Course, stage: str) -> None:
    """Calls and the assistant's texts are the same in order, and so is every result but the reads that went."""
    was, now = course.items(before(stage)), course.items(stage)
    assert calls(now)[: len(calls(was))] == calls(was)
    assert texts(now, "assistant")[: len(texts(was, "assistant"))] == texts(was, "assistant")
    gone = {"toolu_old"} if stage in STAGES[:2] else {"toolu_old", "toolu_more"}
    old, new = results(was), results(now)
    assert {key for key in old if not new[key].text.startswith(text_parts(old[key]))} == gone - notes(old)
    assert all(new[key].text.startswith("[removed: re-read ") for key in gone)


def notes(items: dict[str, Item]) -> set[str]:
    return {key for key, item in items.items() if item.text.startswith("[removed: ")}


def text_parts(item: Item) -> str:
    """A result's text as far as it is text: parts of other kinds become lines below it."""
    return item.text.partition("\n[")[0]


@pytest.mark.parametrize("stage", STAGES)
def test_the_users_words_are_the_users_alone(course: Course, stage: str) -> None:
    """Prompts and words typed mid-turn stand plain and in order; nothing else does."""
    was, now = (texts(course.items(at), "user") for at in (before(stage), stage))
    prompts = [text for text in was if "MARK" not in text]
    assert [text for text in now if "MARK" not in text][: len(prompts)] == prompts
    assert [text for text in now if "MARK" in text] == [TYPED, REPORT, "MARK-beside-text"]


@pytest.mark.parametrize("stage", STAGES)
def test_an_api_error_is_no_speech(course: Course, stage: str) -> None:
    """What the API said of a limit is no text of the assistant."""
    assert ERROR not in json.dumps(course.bodies[stage])


def test_each_compaction_replaced(course: Course) -> None:
    """Two lines, no summary, and nothing that the API refuses."""
    assert [line.startswith("lcc: kept ") for turn in course.turns for line in turn.said_to_user()] == [True, True]
    assert "summary" not in course.api.kinds()
    assert [request.refusal for request in course.api.requests if request.refusal] == []


def expected_marks() -> set[str]:
    """The marks of all examples in the session."""
    every = [kinds.OLDER, kinds.SERVER_TOOLS, kinds.PARTS, SKILL, TYPED, REPORT]
    marks = {mark for mark in MARK.findall(json.dumps(every)) if mark.startswith("MARK")}
    return marks - {"MARK-tool_reference-text", f"MARK-{ADVISOR}-text"}
