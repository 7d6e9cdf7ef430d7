"""What a session file says is what the real client sends on resume: as recorded, and after edits and drops."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conversation import COMMAND_ROWS, Item, conversation
from client.messages_api import MessagesApi, Reply, Script, bash, call, say, serve, think

from lcc.transcript import Edits, Message, SessionReader, apply_edits, read_transcript, render

pytestmark = pytest.mark.client

NOTE = "[removed: re-run `seq 300` to recover]"


def script(lab: Lab) -> Script:
    """Single and parallel calls that end out of order, thinking, errors, a compaction in the middle."""
    slow = [bash("toolu_slow", "sleep 1; seq 300"), bash("toolu_quick", "echo quick"), bash("toolu_bad", "exit 3")]
    read = call("toolu_read", "Read", file_path=str(lab.write("a.txt", "one\ntwo\n")))
    return Script(
        [
            Reply([think("first"), say("Three at once."), *slow]),
            Reply([say("One more."), read]),
            Reply([bash("toolu_x1", "seq 200"), bash("toolu_x2", "seq 201")]),
            Reply([say("First done.")]),
            Reply([say("After it."), *(bash(f"toolu_y{n}", f"seq {n}00") for n in range(1, 4))]),
            Reply([think("alone"), bash("toolu_z", "echo z")]),
            Reply([say("Second done.")]),
            Reply([say("Third done.")]),
        ]
    )


def items(messages: tuple[Message, ...]) -> list[Item]:
    """Our messages as the harness lists a request's blocks."""
    found: list[Item] = []
    for message in messages:
        if message.text and not message.text.startswith(COMMAND_ROWS):
            found.append(Item(message.role, "", message.text.strip()))
        found += [Item("call", u.id, json.dumps([u.tool, u.input], sort_keys=True)) for u in message.tool_uses]
        found += [Item("result", r.tool_use_id, r.text, r.is_error is True) for r in message.tool_results]
    return found


def sent(api: MessagesApi) -> list[Item]:
    """The last request's blocks, without thinking and what the client adds of itself."""
    request = api.of("main")[-1]
    assert request.refusal is None
    return [item for item in conversation(request.body) if item.kind in ("user", "assistant", "call", "result")]


def resumed(client: Path, lab: Lab, url: str, session: str) -> None:
    with Claude(client, lab, url, resume=session) as claude:
        assert claude.ask("And then?").subtype == "success"


@pytest.mark.parametrize("compact", [False, True], ids=["whole", "after the built-in compaction"])
def test_the_live_branch_is_what_the_client_sends(client: Path, lab: Lab, compact: bool) -> None:
    with serve(script(lab)) as (api, url):
        with Claude(client, lab, url) as claude:
            claude.ask("Start.")
            if compact:
                claude.ask("/compact")
            claude.ask("Go on.")
            session = claude.session
        path = lab.transcript(session)
        messages = read_transcript(path.read_bytes()).messages
        resumed(client, lab, url, session)

        assert sent(api)[:-1] == items(messages)
        reader = SessionReader()
        reader.feed(path.read_bytes())
        assert items(reader.transcript().messages)[:-1] == sent(api)


@pytest.mark.parametrize(
    ("texts", "dropped"),
    [
        (["toolu_slow", "toolu_x2", "toolu_y2"], []),
        ([], ["toolu_quick", "toolu_read", "toolu_x1", "toolu_x2", "toolu_y3", "toolu_z"]),
        (["toolu_slow"], ["toolu_bad", "toolu_x2", "toolu_y1", "toolu_y2"]),
        ([], ["toolu_slow", "toolu_quick", "toolu_bad", "toolu_read", "toolu_x1", "toolu_y1"]),
    ],
    ids=["texts", "drops", "both", "whole steps"],
)
def test_a_rendered_session_is_resumed_as_its_edits_say(
    client: Path, lab: Lab, texts: list[str], dropped: list[str]
) -> None:
    with serve(script(lab)) as (api, url):
        with Claude(client, lab, url) as claude:
            claude.ask("Start.")
            claude.ask("Go on.")
            session = claude.session
        path = lab.transcript(session)
        transcript = read_transcript(path.read_bytes())
        edits = Edits(dict.fromkeys(texts, NOTE), frozenset(dropped))
        path.write_bytes(render(transcript, edits))
        resumed(client, lab, url, session)

        assert sent(api)[:-1] == items(apply_edits(transcript, edits))
