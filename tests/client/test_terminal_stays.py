"""In the terminal: a session that stays as it is, the client's own figures, and the tool that recalls."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from client.claude_process import Lab
from client.conftest import PLUGIN
from client.conversation import conversation, results
from client.messages_api import Reply, Script, call, say, serve
from client.terminal import Terminal
from client.test_recall import OUTPUT, RECALL, STASHED, blocks_of_result, note_in, session_with_a_build
from client.test_stays import AFTER, is_whole, session_with

pytestmark = pytest.mark.client

TOO_MUCH = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.999}}}}
WAY_OUT = "the session stays as it is; /compact with a word of instructions writes a summary"


def one_line(screen: str) -> str:
    """The screen with its line breaks and frames taken out: what is said there, however it is broken."""
    return re.sub(r"[\s│]+", " ", screen)


def test_it_stays_and_says_why(current_client: Path, lab: Lab) -> None:
    """/compact with too little to gain, and the client's own question far from the window's end: the requests go out
    as they were, the reason and the way out stand on the screen, and no summary is asked for."""
    lab.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "100000"
    session = session_with(lab, {"kind": "progress", "content": "?"})
    settings = ["--settings", json.dumps(TOO_MUCH)]
    script = Script([Reply([say("Here.")], input_tokens=90_000), Reply([say("There.")], input_tokens=91_000)])
    with (
        serve(script) as (api, url),
        Terminal(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, arguments=settings) as terminal,
    ):
        terminal.wait_for("Answer 7.")
        terminal.enter("/compact")
        shown = one_line(terminal.wait_for(lambda screen: WAY_OUT in one_line(screen)))
        assert re.search(r"Not compacted · only \d+ % can be removed, and 99.9 % is asked for \(min_reduction\)", shown)
        terminal.enter("Fill it.")
        terminal.wait_for("Here.")
        terminal.enter("And now?")
        shown = one_line(terminal.wait_for("There."))
        assert f"; 90k of 1000k tokens in use (9 %); {WAY_OUT}" in shown
    assert (api.kinds(), is_whole(api)) == ("main main", True)


def test_the_figures_and_the_tool(current_client: Path, lab: Lab) -> None:
    """A compaction, a recall that asks nobody, and what the compaction did by the client's own figures."""
    session = session_with_a_build(lab)
    script = Script([
        Reply([say("First.")], input_tokens=62_000),
        Reply(lambda body: [call("toolu_again", RECALL, id=note_in(body))]),
        Reply([say("I have it again.")], input_tokens=31_000),
    ])  # fmt: skip
    settings = ["--settings", json.dumps(STASHED)]
    with (
        serve(script) as (api, url),
        Terminal(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, arguments=settings) as terminal,
    ):
        terminal.wait_for("Last answer.")
        terminal.enter("How full is it?")
        terminal.wait_for("First.")
        terminal.enter("/compact")
        shown = one_line(terminal.wait_for("kept every message"))
        assert re.search(r"% less text, 62k \(6 ?%\) to ~\d+k \(\d ?%\) tokens of 1000k in \d+ ms", shown)
        terminal.wait_for("Compacted")
        terminal.enter("What did the build say?")
        terminal.wait_for("I have it again.")
        shown = terminal.wait_for(lambda screen: AFTER in one_line(screen))
        assert f"the context is at 31k of 1000k tokens (3 %); {AFTER} 62k (6 %)" in one_line(shown)
        assert "made part 0 of the whole" in shown
    sent = api.of("main")[-1].body
    assert api.kinds() == "main main main"
    assert results(conversation(sent))["toolu_make"].text.startswith("[removed: ")
    assert blocks_of_result(sent, "toolu_again") == [OUTPUT]
