"""The stash through the plugin's own MCP server: what a note names comes back to the agent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Block, Body, Reply, Script, bash, call, results_in, say, serve
from making import SessionFile

pytestmark = pytest.mark.client

RECALL = "mcp__plugin_lcc_lcc__recall"
NOTE = re.compile(r"\[removed: \d+ tokens · lcc recall ([0-9a-f]{12})\]")
OUTPUT = "".join(f"made part {number} of the whole → ok\n" for number in range(250))
STASHED = {"pluginConfigs": {"lcc@inline": {"options": {"rules_mode": "stashed"}}}}


def session_with_a_build(lab: Lab, output: str = OUTPUT) -> SessionFile:
    """A session in the lab's home with one old output of a command, which no file gives back."""
    session = SessionFile(lab.project)
    session.user("Build it.")
    session.assistant(bash("toolu_make", "make all"))
    session.result("toolu_make", output)
    for number in range(12):
        session.assistant(say(f"Answer {number}."))
        session.user(f"Question {number}?")
    session.assistant(say("Last answer."))
    session.write(lab.home)
    return session


def recall(body: Body) -> list[Block]:
    """A model that reads the note of the old command and asks for what it names."""
    note = NOTE.fullmatch(results_in(body)["toolu_make"])
    assert note is not None
    return [call("toolu_again", RECALL, id=note[1])]


def test_the_agent_recalls_what_was_stashed(current_client: Path, lab: Lab, table: Table) -> None:
    """A command's output that no file gives back is a note with an id; recall with that id returns the output."""
    session = session_with_a_build(lab)
    with serve(Script([Reply(recall), Reply([say("I have it again.")])])) as (api, url):
        with Claude(
            current_client,
            lab,
            url,
            plugin_dirs=[PLUGIN],
            plugin_mcp=True,
            resume=session.id,
            settings=STASHED,
            tools=f"Bash,{RECALL}",
        ) as claude:
            turn = claude.ask("/compact")
            answer = claude.ask("What did the build say?")
        table.add("stashed, the agent recalls", "a note with an id, then the removed bytes", turn, lab)
        after = results(conversation(api.of("main")[-1].body))
        assert answer.result == "I have it again."
        assert OUTPUT in after["toolu_again"].text
        assert not after["toolu_again"].flag
