"""A note of the stash is followed by the agent's own shell, without a permission, in both clients."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Block, Body, Reply, Script, bash, call, results_in, say, serve
from client.terminal import Terminal
from client.test_recall import NOTE, OUTPUT, STASHED, session_with_a_build
from daemon.daemon_world import wait_until

pytestmark = pytest.mark.client

NO_BASH = "Read"
"""What is allowed without asking: Bash is not."""


def recall_in_bash(body: Body) -> list[Block]:
    """A model that reads the note and runs what it says."""
    note = NOTE.fullmatch(results_in(body)["toolu_make"])
    assert note is not None
    return [bash("toolu_again", f"lcc recall {note[1]}")]


@pytest.mark.parametrize("has_environment", [True, False])
def test_the_agents_shell_gives_the_bytes(current_client: Path, lab: Lab, table: Table, has_environment: bool) -> None:
    """/compact leaves a note, the context says how it is followed, and the agent gets every byte by Bash."""
    if not has_environment:
        del lab.env["LCC_PYTHON"]
        lab.env["LCC_NO_SETUP"] = "1"
    session = session_with_a_build(lab)
    with serve(Script([Reply(recall_in_bash), Reply([say("I have it again.")])])) as (api, url):
        with Claude(
            current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=STASHED, tools=NO_BASH
        ) as claude:
            turn = claude.ask("/compact")
            answer = claude.ask("What did the build say?")
        table.add(f"stashed, by Bash, environment: {has_environment}", "a note, then the bytes", turn, lab)
        sent = api.of("main")[-1].body
        again = results(conversation(sent))["toolu_again"]
        assert answer.result == "I have it again."
        assert again.text.rstrip("\n") == OUTPUT.rstrip("\n")
        assert not again.flag
        (noted,) = (lab.home / ".local/state/lcc/recalls.jsonl").read_text().splitlines()
        assert (json.loads(noted)["session"], json.loads(noted)["by"]) == (claude.session, "shell")
        assert json.dumps(sent["messages"]).count("else with the Bash command `lcc recall ID`") == 1


MCP_RECALL = "mcp__stash__recall"


def recall_by_mcp(body: Body) -> list[Block]:
    """The same with the tool of a server that the user has added."""
    note = NOTE.fullmatch(results_in(body)["toolu_make"])
    assert note is not None
    return [call("toolu_again", MCP_RECALL, id=note[1])]


CONNECTED = re.compile(r'MCP server "stash": Successfully connected')
"""In the client's debug log."""
WAYS = {"Bash": recall_in_bash, "MCP": recall_by_mcp}


def put_into_stash(lab: Lab) -> str:
    """The note of an output in the lab's stash, as an earlier compaction left it."""
    code = (
        "import sys; from lcc.stash import *; s = Stash(stash_folder()); print(s.put(sys.stdin.buffer.read()).sha256)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=OUTPUT.encode(), env=lab.environment(), capture_output=True, check=True
    )
    return f"[removed: 812 tokens · lcc recall {done.stdout.decode()[:12]}]"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ["-p", "terminal"])
@pytest.mark.parametrize("age", ["current", "older"])
def test_a_resumed_note_is_followed(request: pytest.FixtureRequest, lab: Lab, age: str, place: str, way: str) -> None:
    """In both clients, headless and in a terminal, by the shell without a permission and by a server that was added."""
    client: Path = request.getfixturevalue(f"{age}_client")
    session = session_with_a_build(lab, put_into_stash(lab))
    arguments: list[str] = []
    if way == "MCP":
        server = {"command": sys.executable, "args": ["-c", "from lcc.cli import main; main(['mcp'])"]}
        (lab.root / "mcp.json").write_text(json.dumps({"mcpServers": {"stash": server}}))
        arguments = ["--mcp-config", str(lab.root / "mcp.json")]
    tools = f"{NO_BASH},{MCP_RECALL}"
    with serve(Script([Reply(WAYS[way]), Reply([say("I have it again.")])])) as (api, url):
        if place == "terminal":
            with Terminal(
                client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, arguments=arguments, tools=tools
            ) as terminal:
                terminal.wait_for("Last answer.")
                if way == "MCP":
                    assert wait_until(lambda: CONNECTED.search(lab.debug_log.read_text()) is not None)
                terminal.enter("What did the build say?")
                terminal.wait_for("I have it again.")
        else:
            with Claude(
                client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, tools=tools, arguments=arguments
            ) as claude:
                assert claude.ask("What did the build say?").result == "I have it again."
        again = results(conversation(api.of("main")[-1].body))["toolu_again"]
        assert not again.flag
        assert again.text.rstrip("\n") == OUTPUT.rstrip("\n")


@pytest.mark.parametrize("age", ["current", "older"])
@pytest.mark.parametrize("more", ["; touch evil", " > evil", " $(touch evil)", "\ntouch evil", " -o evil"])
def test_nothing_more_than_a_recall_is_let_through(
    request: pytest.FixtureRequest, lab: Lab, age: str, more: str
) -> None:
    """What the user has not allowed stays refused, however it begins."""
    client: Path = request.getfixturevalue(f"{age}_client")
    session = session_with_a_build(lab)
    script = Script([Reply([bash("toolu_evil", f"lcc recall 0123456789ab{more}")]), Reply([say("Done.")])])
    with (
        serve(script) as (api, url),
        Claude(client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, tools=NO_BASH) as claude,
    ):
        claude.ask("Go on.")
        assert results(conversation(api.of("main")[-1].body))["toolu_evil"].flag
    assert not (lab.project / "evil").exists()


def test_it_can_be_switched_off(current_client: Path, lab: Lab) -> None:
    """allow_recall = false: the client asks, which in -p is a refusal."""
    session = session_with_a_build(lab)
    lab.env["LCC_ALLOW_RECALL"] = "false"
    script = Script([Reply([bash("toolu_again", "lcc recall 0123456789ab")]), Reply([say("Done.")])])
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, tools=NO_BASH) as claude,
    ):
        claude.ask("Go on.")
        again = results(conversation(api.of("main")[-1].body))["toolu_again"]
        assert again.flag
        assert "lcc:" not in again.text
