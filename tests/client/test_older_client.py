"""A client from before function hooks: it ignores the module and runs the command hooks, so the guide is what helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.messages_api import SUMMARY_REQUEST, Reply, Script, say, serve, words_of
from making import worked_on

pytestmark = pytest.mark.client


def test_the_guide_helps_the_summary(older_client: Path, lab: Lab, table: Table) -> None:
    """The summariser hears which outputs are on disk; the new context has the user's own words and the pointers."""
    lines = "".join(f"line {number}: something worth removing\n" for number in range(500))
    path = lab.write("src/one.py", lines)
    session = worked_on(lab.project, lab.home, [path])
    with serve(Script([Reply([say("Here.")])])) as (api, url):
        with Claude(older_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude:
            turn = claude.ask("/compact")
            answer = claude.ask("Are you there?")
        table.add("older client 2.1.197", "the summary, and what the guide gives back", turn, lab)
        (summary,) = api.of("summary")
        _, _, asked = words_of(summary.body["messages"]).partition(SUMMARY_REQUEST)
        seen = json.dumps(api.of("main")[-1].body["messages"])
        assert answer.result == "Here."
        assert str(path) in asked
        assert "THE BUILT-IN SUMMARY" in seen
        assert "Question 7?" in seen
        assert str(path) in seen
