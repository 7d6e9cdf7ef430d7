"""A session of the older client, which does not write down what it sends, compacted under the current one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from client.claude_process import Claude
from client.conftest import PLUGIN, Table, lab_folder
from client.conversation import Item, conversation, results, texts
from client.messages_api import MessagesApi, Reply, Script, bash, call, say, serve

pytestmark = pytest.mark.client

MARK = re.compile(r"MARK-[\w-]+")
QUEUED = "MARK-typed while you work."
RULES = "# Rules\n\n- MARK-rule: never edit what is generated.\n"
HOOK = json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "MARK-hook-context"}})


@dataclass
class Course:
    """What the model was sent under each client."""

    api: MessagesApi
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def note(self, stage: str) -> None:
        self.bodies[stage] = self.api.of("main")[-1].body

    def marks(self, stage: str) -> set[str]:
        return set(MARK.findall(json.dumps(self.bodies[stage]["messages"])))

    def items(self, stage: str) -> list[Item]:
        return conversation(self.bodies[stage])


def long_text(name: str) -> str:
    return "".join(f"{name} line {number}: something worth removing\n" for number in range(500))


@pytest.fixture(scope="module")
def course(older_client: Path, current_client: Path, table: Table) -> Iterator[Course]:
    gate = Event()
    with lab_folder() as lab:
        old = lab.write("src/old.py", long_text("old"))
        lab.write("sub/CLAUDE.md", RULES)
        near = lab.write("sub/near.py", "x = 1\n")
        changed = lab.write("changed.py", "MARK-before = 1\n")
        hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": f"echo '{HOOK}'"}]}
        script = Script([
            Reply([call("toolu_old", "Read", file_path=str(old))]),
            Reply([call("toolu_changed", "Read", file_path=str(changed))]),
            Reply([call("toolu_near", "Read", file_path=str(near))]),
            Reply([bash("toolu_hooked", "echo MARK-bash")], hold=gate),
            Reply([bash("toolu_write", f"echo 'MARK-changed = 2' > {changed}")]),
            Reply([bash("toolu_more", "echo more")]),
            *[Reply([say(f"Answer {number}.")]) for number in range(12)],
        ])  # fmt: skip
        with serve(script) as (api, url):
            recorded = Course(api)
            how: dict[str, Any] = {"plugin_dirs": [PLUGIN], "settings": {"hooks": {"PostToolUse": [hook]}}}
            with Claude(older_client, lab, url, **how) as claude:
                begin(claude, api, gate)
                session = claude.session
            recorded.rows = [json.loads(line) for line in lab.transcript(session).read_bytes().splitlines()]
            with Claude(current_client, lab, url, resume=session, **how) as claude:
                claude.ask("Before.")
                recorded.note("before")
                turn = claude.ask("/compact")
                recorded.said = turn.said_to_user()
                claude.ask("After.")
                recorded.note("compacted")
            with Claude(current_client, lab, url, resume=session, **how) as claude:
                claude.ask("In a new process.")
                recorded.note("resumed")
            table.add("begun under 2.1.197", "everything, a note for the old read", turn, lab)
            yield recorded


def begin(claude: Claude, api: MessagesApi, gate: Event) -> None:
    """Work under the older client, with words typed while a call runs, and some talk."""
    since = len(claude.events)
    claude.send("Look at it all.")
    api.wait_for("main", 4)
    claude.send(QUEUED)
    claude.wait_for_queue(QUEUED)
    gate.set()
    claude.finish(since, 0.0)
    for number in range(6):
        claude.ask(f"Question {number}?")


def test_the_older_client_wrote_what_it_did_not_word(course: Course) -> None:
    """The session holds rows whose words only the client knows: that is what this is about."""
    kinds = {row["attachment"]["type"] for row in course.rows if row["type"] == "attachment" and "rendered" not in row}
    assert {"nested_memory", "hook_additional_context", "queued_command"} <= kinds
    assert {"MARK-rule", "MARK-hook-context", "MARK-typed"} <= course.marks("before")


@pytest.mark.parametrize("stage", ["compacted", "resumed"])
def test_the_session_keeps_everything(course: Course, stage: str) -> None:
    """Under the current client nothing is lost or added, and the read that went is a note."""
    assert course.marks(stage) == course.marks("before")
    was, now = course.items("before"), course.items(stage)
    assert texts(now, "assistant")[: len(texts(was, "assistant"))] == texts(was, "assistant")
    changed = {key for key, item in results(was).items() if results(now)[key] != item}
    assert changed == {"toolu_old"}
    assert results(now)["toolu_old"].text.startswith("[removed: re-read ")
    assert texts(now, "user").count(QUEUED) == 1


def test_it_was_replaced(course: Course) -> None:
    """One line, no summary, nothing that the API refuses."""
    assert [line.startswith("lcc: kept ") for line in course.said] == [True]
    assert "summary" not in course.api.kinds()
    assert [request.refusal for request in course.api.requests if request.refusal] == []
