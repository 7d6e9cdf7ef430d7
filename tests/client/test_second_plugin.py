"""A second plugin with a `session.compact` hook of its own: whichever is loaded first is asked first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import MessagesApi, Reply, Script, say, serve
from client.test_recall import session_with_a_build
from client.test_trouble import HANDED_OVER

pytestmark = pytest.mark.client

WATCHES = """
    const got = await next(event);
    await $.ui.log(`saw ${got.messages?.length} messages`);
    return got;
"""
THROWS_AWAY = """
    await next(event);
    return { messages: event.messages };
"""
ANSWERS = """
    return { messages: [{ role: "user", text: "The other plugin's own words.", toolUses: [] }] };
"""


def other_plugin(lab: Lab, body: str) -> Path:
    """A plugin whose hook does what ``body`` says; ``throws away`` only the first time."""
    folder = lab.root / "other"
    (folder / ".claude-plugin").mkdir(parents=True)
    about = {"name": "other", "version": "0.0.1", "description": "d", "author": {"name": "x"}, "hooks": "./hooks.json"}
    (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps(about))
    (folder / "hooks.json").write_text(json.dumps({"modules": ["./main.mjs"]}))
    (folder / "main.mjs").write_text(
        "let asked = 0;\n"
        "export const register = (on) => {\n"
        '  on("session.compact", async ($, event, next) => {\n'
        f"    asked += 1;{body}"
        "  }).catch(($, event, next) => next(event));\n};\n"
    )
    return folder


def old_output(api: MessagesApi) -> str:
    return results(conversation(api.of("main")[-1].body))["toolu_make"].text


@pytest.mark.parametrize("ours_first", [True, False])
def test_another_that_lets_us_do_it(current_client: Path, lab: Lab, table: Table, ours_first: bool) -> None:
    """Our replacement stands; the other sees it where it was asked first."""
    session = session_with_a_build(lab)
    plugins = [PLUGIN, other_plugin(lab, WATCHES)][:: 1 if ours_first else -1]
    with (
        serve(Script([Reply([say("Here.")])])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=plugins, resume=session.id) as claude,
    ):
        turn = claude.ask("/compact")
        claude.ask("Are you there?")
    table.add(f"a second plugin watches, ours first: {ours_first}", "a note", turn, lab)
    assert any(line.startswith("other: saw ") for line in turn.said_to_user()) is not ours_first
    assert old_output(api).startswith("[removed: ")
    assert api.kinds() == "main"


def test_another_that_answers_where_we_hand_over(current_client: Path, lab: Lab, table: Table) -> None:
    """What we leave to the client goes on to the next hook, and that one's session stands: no summary."""
    session = session_with_a_build(lab)
    settings = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.999}}}}
    plugins = [PLUGIN, other_plugin(lab, ANSWERS)]
    with (
        serve(Script([Reply([say("Here.")])])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=plugins, resume=session.id, settings=settings) as claude,
    ):
        turn = claude.ask("/compact with a word")
        claude.ask("Are you there?")
    table.add("a second plugin answers where ours hands over", "the other's session", turn, lab)
    assert turn.said_to_user()[0].startswith(HANDED_OVER)
    assert "The other plugin's own words." in str(api.of("main")[-1].body["messages"])
    assert api.kinds() == "main"


def test_another_that_throws_our_answer_away(current_client: Path, lab: Lab, table: Table) -> None:
    """The session stays as it was, and is not taken for compacted when we are asked again."""
    session = session_with_a_build(lab)
    throws_away_once = f"if (asked > 1) return next(event);{THROWS_AWAY}"
    plugins = [other_plugin(lab, throws_away_once), PLUGIN]
    with (
        serve(Script([Reply([say("Here.")])] * 2)) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=plugins, resume=session.id) as claude,
    ):
        claude.ask("/compact")
        claude.ask("Are you there?")
        assert old_output(api).startswith("made part 0")
        turn = claude.ask("/compact")
        claude.ask("Are you there?")
    table.add("a second plugin throws ours away once", "all of it; then a note", turn, lab)
    assert old_output(api).startswith("[removed: ")
    assert api.kinds() == "main main"
