"""A note of the stash is followed by the agent's own shell, without a permission, in both clients."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Block, Body, Reply, Script, bash, results_in, say, serve
from client.test_recall import NOTE, OUTPUT, STASHED, session_with_a_build

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


def test_the_older_client_follows_a_note_too(older_client: Path, lab: Lab) -> None:
    """A session with a note, resumed there: the same command, without a permission."""
    code = (
        "import sys; from lcc.stash import *; s = Stash(stash_folder()); print(s.put(sys.stdin.buffer.read()).sha256)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=OUTPUT.encode(), env=lab.environment(), capture_output=True, check=True
    )
    session = session_with_a_build(lab, f"[removed: 812 tokens · lcc recall {done.stdout.decode()[:12]}]")
    with serve(Script([Reply(recall_in_bash), Reply([say("I have it again.")])])) as (api, url):
        with Claude(older_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, tools=NO_BASH) as claude:
            answer = claude.ask("What did the build say?")
        again = results(conversation(api.of("main")[-1].body))["toolu_again"]
        assert answer.result == "I have it again."
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
