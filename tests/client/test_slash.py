"""`/lcc`: the hook answers it without a model, in both clients; what it is told holds for this session alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab, Turn
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import MessagesApi, Reply, Script, say, serve
from client.terminal import Terminal
from client.test_before_the_wall import BIG, READS, removed, replies, session_in
from client.test_trouble import HANDED_OVER, text_of

pytestmark = pytest.mark.client

BLOCKED = "UserPromptExpansion operation blocked by hook:\n"
RESTING = {"pluginConfigs": {"lcc@inline": {"options": {"proactive": "off"}}}}


def ask(claude: Claude, words: str) -> str:
    """What /lcc answers to words."""
    turn = claude.ask(f"/lcc:lcc {words}".strip())
    assert turn.result.startswith(BLOCKED), turn.result
    return turn.result.removeprefix(BLOCKED).partition("\n\nOriginal prompt: ")[0]


@pytest.mark.parametrize("version", ["current", "older"])
def test_it_answers_without_a_model(version: str, request: pytest.FixtureRequest, lab: Lab) -> None:
    """Each word; what the model is sent next has nothing of it, nor of the command itself."""
    client: Path = request.getfixturevalue(f"{version}_client")
    session = session_in(lab, BIG)
    with (
        serve(replies("Here.")) as (api, url),
        Claude(client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        shown = ask(claude, "")
        assert "- context: 60k tokens" in shown
        assert "- can go now: " in shown
        assert "4 results" in shown
        assert "- removed so far: nothing\n- had back: nothing" in shown
        assert "is not known" in ask(claude, "frobnicate")
        assert "nothing was done" in ask(claude, "off on")
        assert "No compaction of this session" in ask(claude, "explain")
        assert "src/f0.py" in ask(claude, 'keep "src/f0.py"')
        assert ask(claude, "keep") == "- src/f0.py"
        assert "no longer kept" in ask(claude, "unkeep src/f0.py")
        assert "is not kept" in ask(claude, "unkeep src/f0.py")
        assert "built-in summary" in ask(claude, "off")
        assert "lcc is off for this session" in ask(claude, "")
        assert ask(claude, "on") == "lcc compacts this session."
        assert api.kinds() == ""
        claude.ask("Are you there?")
    (sent,) = api.of("main")
    assert removed(api) == []
    words = json.dumps(sent.body)
    assert "lcc:lcc" not in words
    assert "can go now" not in words


def compacted(claude: Claude, api: MessagesApi) -> tuple[Turn, list[str]]:
    """A compaction, and the reads that the next request holds no more."""
    turn = claude.ask("/compact")
    claude.ask("Are you there?")
    return turn, removed(api)


def test_its_wishes_hold_for_this_session(current_client: Path, lab: Lab, table: Table) -> None:
    """What is kept stays whole; switched off, the built-in summary runs; afterwards the newest report is explained."""
    session = session_in(lab, BIG)
    with (
        serve(Script([Reply([say("Here.")], input_tokens=BIG)] * 3)) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        ask(claude, "keep src/f1.py")
        turn, gone = compacted(claude, api)
        assert gone == [name for name in READS if name != "toolu_old1"]
        assert "Removed, and why:" in ask(claude, "explain")
        assert "in 1 compaction" in ask(claude, "")
        ask(claude, "off")
        off = claude.ask("/compact")
    table.add("/lcc keep PATH", "the kept file's read, notes for the others", turn, lab)
    table.add("/lcc off", "the built-in summary", off, lab)
    assert [line.startswith(f"{HANDED_OVER}lcc is switched off") for line in off.said_to_user()] == [True]
    assert api.kinds() == "main summary"
    other = Lab(lab.root / "other", lab.path, {**lab.env, "LCC_STATE_DIR": str(lab.home / ".local/state/lcc")})
    another = session_in(other, BIG)
    with (
        serve(replies("Here.")) as (api, url),
        Claude(current_client, other, url, plugin_dirs=[PLUGIN], resume=another.id) as claude,
    ):
        assert compacted(claude, api)[1] == READS


def test_now_compacts_in_a_terminal(current_client: Path, lab: Lab) -> None:
    """`/lcc` is completed to its whole name; `now` is as if /compact was typed. No summary, no turn of the model."""
    session = session_in(lab, BIG)
    (lab.root / "settings.json").write_text(json.dumps(RESTING))
    with (
        serve(replies("Here.")) as (api, url),
        Terminal(
            current_client,
            lab,
            url,
            plugin_dirs=[PLUGIN],
            resume=session.id,
            arguments=["--settings", str(lab.root / "settings.json")],
        ) as terminal,
    ):
        terminal.wait_for("All is said.")
        terminal.type("/lcc")
        terminal.wait_for("/lcc:lcc")
        terminal.press("Enter")
        terminal.wait_for("- can go now: ")
        terminal.enter("/lcc:lcc now")
        terminal.wait_for("kept every message")
        assert api.kinds() == ""
        terminal.enter("Are you there?")
        terminal.wait_for("Here.")
        assert (api.kinds(), removed(api)) == ("main", READS)


def test_a_daemon_that_cannot_be_had_is_said_without_a_model(current_client: Path, lab: Lab) -> None:
    """The line says why; the command never becomes a prompt."""
    lab.env["LCC_PYTHON"] = "/nowhere/python3"
    session = session_in(lab, BIG)
    with (
        serve(replies("Here.")) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        turn = claude.ask("/lcc:lcc")
        assert "/nowhere/python3" in text_of(turn)
        assert api.kinds() == ""
        assert results(conversation(claude.ask("Yes?") and api.of("main")[-1].body))["toolu_old0"].text
