"""The client's own tool `recall`, which the plugin's module registers: what a note names comes back to the agent."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Block, Body, Reply, Script, call, results_in, say, serve
from making import SessionFile

pytestmark = pytest.mark.client

RECALL = "mcp__lcc__recall"
NO_RECALL = "Bash,Read"
"""What is allowed without asking: the tool is not."""
NOTE = re.compile(r"\[removed: \d+ tokens · lcc recall ([0-9a-f]{12})\](?:\n\[it holds [^\]]*\])?")
OUTPUT = "".join(f"made part {number} of the whole → ok\n" for number in range(250))
STASHED = {"pluginConfigs": {"lcc@inline": {"options": {"rules_mode": "stashed"}}}}


def session_with_a_build(lab: Lab, output: str = OUTPUT, tool: str = "Bash") -> SessionFile:
    """A session in the lab's home with one old output of a command, which no file gives back."""
    session = SessionFile(lab.project)
    session.user("Build it.")
    session.assistant(call("toolu_make", tool, command="make all", description="a step of the test"))
    session.result("toolu_make", output)
    for number in range(12):
        session.assistant(say(f"Answer {number}."))
        session.user(f"Question {number}?")
    session.assistant(say("Last answer."))
    session.write(lab.home)
    return session


def note_in(body: Body) -> str:
    """The id in the note that stands where the old command's output was."""
    note = NOTE.fullmatch(results_in(body)["toolu_make"])
    assert note is not None
    return note[1]


def recall(body: Body) -> list[Block]:
    """A model that reads the note of the old command and asks for what it names, and for parts of it."""
    return [
        call("toolu_again", RECALL, id=note_in(body)),
        call("toolu_lines", RECALL, id=note_in(body), lines="3-4"),
        call("toolu_grep", RECALL, id=note_in(body), grep="part 24[89]"),
        call("toolu_none", RECALL, id="0123456789ab"),
        call("toolu_wrong", RECALL, id=note_in(body), lines="9-3"),
    ]


def blocks_of_result(body: Body, call_id: str) -> list[str]:
    """The texts of one result's blocks."""
    found = next(
        block
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("tool_use_id") == call_id
    )
    return [part["text"] for part in found["content"]]


@dataclass(frozen=True)
class Way:
    """How the tool is answered in a session."""

    name: str
    env: dict[str, str]


BY_DAEMON = Way("daemon", {})
BY_LIBRARY = Way("standard library", {"LCC_PYTHON": "", "LCC_NO_SETUP": "1"})


@pytest.mark.parametrize("way", [BY_DAEMON, BY_LIBRARY], ids=lambda way: way.name)
def test_the_tool_gives_the_bytes_without_a_permission(current_client: Path, lab: Lab, table: Table, way: Way) -> None:
    """In `-p`, and nobody allowed the tool: it is in the first request, and gives the whole, lines, a search, or why
    not. Where the daemon has gone and none can be started, the stash is read without one."""
    lab.env.update(way.env)
    session = session_with_a_build(lab)
    with serve(Script([Reply(recall), Reply([say("I have it again.")])])) as (api, url):
        with Claude(
            current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=STASHED, tools=NO_RECALL
        ) as claude:
            turn = claude.ask("/compact")
            if way is BY_LIBRARY:
                end_the_daemon(lab)
            answer = claude.ask("What did the build say?")
            session_id = claude.session
        table.add(f"the agent recalls, by the {way.name}", "a note with an id, then the removed bytes", turn, lab)
        sent = api.of("main")[-1].body
        assert answer.result == "I have it again."
        assert api.kinds() == "main main"
        assert [tool["name"] for tool in api.requests[0].body["tools"]].count(RECALL) == 1
        again = conversation(sent)
        assert [results(again)[key].flag for key in ("toolu_again", "toolu_none")] == [False, False]
        assert blocks_of_result(sent, "toolu_again") == [OUTPUT]
        assert blocks_of_result(sent, "toolu_lines") == ["made part 2 of the whole → ok\nmade part 3 of the whole → ok"]
        assert blocks_of_result(sent, "toolu_grep") == [
            "249:made part 248 of the whole → ok\n250:made part 249 of the whole → ok"
        ]
        assert results(again)["toolu_none"].text.startswith("lcc: the stash in ")
        assert results(again)["toolu_wrong"].text == "lcc: lines '9-3': the last line is before the first"
    kept = (lab.home / ".local/state/lcc/recalls.jsonl").read_text().splitlines()
    lines = [json.loads(line) for line in kept]
    assert [(line["session"], line["by"]) for line in lines] == [(session_id, "tool")] * 3
    assert max(line["given_bytes"] for line in lines) == lines[0]["of_bytes"] == len(OUTPUT.encode())


def test_a_session_that_has_no_shell_has_the_tool(current_client: Path, lab: Lab, table: Table) -> None:
    """An output of another tool, in a session that never used Bash: it may be stashed, since the tool recalls."""
    session = session_with_a_build(lab, tool="mcp__build__run")
    script = Script([
        Reply(lambda body: [call("toolu_again", RECALL, id=note_in(body))]),
        Reply([say("I have it again.")]),
    ])  # fmt: skip
    with serve(script) as (api, url):
        with Claude(
            current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=STASHED, tools="Read"
        ) as claude:
            turn = claude.ask("/compact")
            claude.ask("What did the build say?")
        table.add("stashed, no Bash in the session", "a note, then the bytes", turn, lab)
        assert blocks_of_result(api.of("main")[-1].body, "toolu_again") == [OUTPUT]


def end_the_daemon(lab: Lab) -> None:
    """Stop the lab's daemon, and let nobody start another: its lock is held by a folder in the socket's place."""
    for socket in lab.runtime.glob("lcc/*.sock"):
        subprocess.run(
            [sys.executable, "-I", "-m", "lcc_daemon", "stop"], env=lab.environment(), check=True, timeout=60
        )
        socket.unlink(missing_ok=True)
        socket.mkdir()


def test_the_tool_is_asked_for_where_the_user_wants_that(current_client: Path, lab: Lab) -> None:
    """allow_recall = false in the configuration: the client asks, which in -p is a refusal."""
    session = session_with_a_build(lab)
    lab.env["LCC_ALLOW_RECALL"] = "false"
    script = Script([Reply([call("toolu_again", RECALL, id="0123456789ab")]), Reply([say("Done.")])])
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, tools=NO_RECALL) as claude,
    ):
        claude.ask("Go on.")
        again = results(conversation(api.of("main")[-1].body))["toolu_again"]
        assert again.flag
        assert "lcc:" not in again.text


@pytest.mark.parametrize("rule", ["ask", "deny"])
def test_a_rule_of_the_users_stands(current_client: Path, lab: Lab, rule: str) -> None:
    """`ask`: in -p that is a refusal. `deny`: there is no tool, and without a shell nothing is put into the stash."""
    session = session_with_a_build(lab, tool="mcp__build__run")
    settings = {**STASHED, "permissions": {rule: [RECALL]}}
    script = Script([Reply([call("toolu_again", RECALL, id="0123456789ab")]), Reply([say("Done.")])])
    with (
        serve(script) as (api, url),
        Claude(
            current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=settings, tools="Read"
        ) as claude,
    ):
        claude.ask("/compact")
        claude.ask("Go on.")
    sent = results(conversation(api.of("main")[-1].body))
    assert sent["toolu_again"].flag
    assert "lcc:" not in sent["toolu_again"].text
    assert (sent["toolu_make"].text == OUTPUT) is (rule == "deny")
    assert api.kinds() == "main main"


def test_switched_off_there_is_no_tool(current_client: Path, lab: Lab) -> None:
    """`enabled` off: no request holds the tool."""
    settings = {"pluginConfigs": {"lcc@inline": {"options": {"enabled": False}}}}
    with (
        serve(Script([Reply([say("Hello.")])])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], settings=settings) as claude,
    ):
        claude.ask("Hello?")
        assert RECALL not in [tool["name"] for tool in api.requests[0].body["tools"]]
