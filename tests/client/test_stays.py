"""A session that cannot be replaced well stays as it is while there is room; else, or for a word, it is summarised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import MessagesApi, Reply, Script, say, serve
from client.test_trouble import HANDED_OVER, NOT_COMPACTED, text_of
from making import SessionFile

pytestmark = pytest.mark.client

UNKNOWN: dict[str, dict[str, Any]] = {
    "a system row": {"kind": "system", "subtype": "tomorrow", "content": "?"},
    "an attachment": {"kind": "attachment", "attachment": {"type": "tomorrow", "content": "?"}},
    "a block": {
        "kind": "assistant",
        "message": {
            "id": "msg_t",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [{"type": "tomorrow", "content": "?"}, say("And so on.")],
            "usage": {},
        },
    },
}
FULL = {"input_tokens": 950_000}
"""What the API says of a window of a million tokens that is nearly full."""


def session_with(lab: Lab, row: dict[str, Any]) -> SessionFile:
    """A session with a large old read, and a row behind its result."""
    text = "".join(f"line {number}: something worth removing\n" for number in range(500))
    session = SessionFile(lab.project)
    session.user("Read it.")
    session.read("toolu_old", lab.write("src/one.py", text))
    session.row(**row)
    session.assistant(say("I have read it."))
    for number in range(8):
        session.user(f"Question {number}?")
        session.assistant(say(f"Answer {number}."))
    session.write(lab.home)
    return session


def is_whole(api: MessagesApi) -> bool:
    """Whether the newest request holds the old read as it was."""
    return results(conversation(api.of("main")[-1].body))["toolu_old"].text.startswith("1\tline 0")


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_an_unknown_kind_is_named_and_nothing_is_touched(
    current_client: Path, lab: Lab, table: Table, name: str
) -> None:
    """Asked twice, the session is the same; a word of instructions writes the summary."""
    session = session_with(lab, UNKNOWN[name])
    with (
        serve(Script([Reply([say("Here.")])] * 4)) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        for _ in range(2):
            turn = claude.ask("/compact")
            assert NOT_COMPACTED + "a replacement would lose a " in text_of(turn)
            assert "tomorrow" in text_of(turn)
            assert turn.said_to_user() == []
        claude.ask("Are you there?")
        assert (api.kinds(), is_whole(api)) == ("main", True)
        told = claude.ask("/compact shorter").said_to_user()
        claude.ask("And now?")
    table.add(f"{name} of an unknown kind", "everything, then the summary that was asked for", turn, lab)
    assert [line.startswith(HANDED_OVER) and "tomorrow" in line for line in told] == [True]
    assert api.kinds() == "main summary main"


@pytest.mark.parametrize("reason", ["unknown", "too little"])
def test_a_nearly_full_window_gets_the_summary(current_client: Path, lab: Lab, table: Table, reason: str) -> None:
    """Where there is no room to wait, /compact ends in the built-in summary, and the line says why."""
    row = UNKNOWN["a block"] if reason == "unknown" else {"kind": "progress", "content": "?"}
    session = session_with(lab, row)
    settings = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.999}}}}
    with (
        serve(Script([Reply([say("Here.")], **FULL), Reply([say("There.")], input_tokens=500)])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=settings) as claude,
    ):
        claude.ask("Fill it.")
        turn = claude.ask("/compact")
    table.add(f"{reason}, nearly full", "the built-in summary", turn, lab)
    assert [line.startswith(HANDED_OVER) for line in turn.said_to_user()] == [True]
    assert api.kinds() == "main summary"


def test_a_full_window_is_summarised_where_something_would_be_lost(
    current_client: Path, lab: Lab, table: Table
) -> None:
    """The client's own compaction cannot wait: the summary runs, and the turn is answered."""
    lab.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "100000"
    session = session_with(lab, UNKNOWN["a block"])
    script = Script([Reply([say("Here.")], input_tokens=90_000), Reply([say("There.")], input_tokens=500)])
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        claude.ask("Fill it.")
        turn = claude.ask("And now?")
    table.add("unknown, auto", "the built-in summary", turn, lab)
    assert (turn.result, api.kinds()) == ("There.", "main summary main")
    assert [line.startswith(HANDED_OVER) for line in turn.said_to_user()] == [True]
