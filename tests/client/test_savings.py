"""What the client's own session file says of a compaction by lcc: the sums that users are shown are the bill's."""

from __future__ import annotations

from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN
from client.messages_api import Reply, Script, call, say, serve
from client.test_recall import session_with_a_build

from lcc.sessions.spent import read_savings

pytestmark = pytest.mark.client


def test_the_sums_are_those_that_the_api_billed(current_client: Path, lab: Lab) -> None:
    """Each request once, however many rows its answer has; one compaction, which is no summary, and what it freed."""
    session = session_with_a_build(lab)
    several = [say("I look."), call("toolu_one", "Bash", command="true"), call("toolu_two", "Bash", command="true")]
    script = Script([
        Reply(several, input_tokens=50_000),
        Reply([say("Seen.")], input_tokens=60_000),
        Reply([say("Well.")], input_tokens=20_000),
        Reply([say("Done.")], input_tokens=21_000),
    ])  # fmt: skip
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        before = read_savings(lab.transcript(session.id))
        claude.ask("Look.")
        claude.ask("/compact")
        claude.ask("Go on.")
        claude.ask("And on.")
        found = read_savings(lab.transcript(claude.session))

    assert api.kinds() == "main main main main"
    assert (found.new - before.new, found.cost - before.cost) == (151_000, 151_000)
    assert [each.requests for each in found.rounds] == [before.requests + 2, 2]
    (compaction,) = found.compactions
    assert (compaction.freed, compaction.first, compaction.last) == (40_000, 20_000, 21_000)
