"""A session far longer than any window: it is replaced as a small one is, and stays resumable."""

from __future__ import annotations

from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Reply, Script, say, serve
from making import SessionFile

pytestmark = pytest.mark.client

MEGABYTES = 40


def test_a_session_of_40_mb_is_replaced(current_client: Path, lab: Lab, table: Table) -> None:
    """Every one of 800 large reads becomes a note; the next request and a new process hold the notes."""
    session = SessionFile(lab.project)
    session.user("Read everything.")
    size, count = 0, 0
    while size < MEGABYTES * 1_000_000:
        path = lab.write(f"src/{count}.txt", "".join(f'{count}: line {n} "quoted" \\ back\n' for n in range(2000)))
        session.read(f"toolu_{count}", path)
        size, count = size + path.stat().st_size, count + 1
    for number in range(8):
        session.assistant(say(f"Answer {number}."))
        session.user(f"Question {number}?")
    session.assistant(say("Last answer."))
    assert session.write(lab.home).stat().st_size > MEGABYTES * 1_000_000
    with serve(Script([Reply([say("Here.")]), Reply([say("Here again.")])])) as (api, url):
        with Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude:
            turn = claude.ask("/compact")
            first = claude.ask("Are you there?")
        with Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude:
            second = claude.ask("And now?")
        table.add(f"session of {MEGABYTES} MB", "notes and every text, also resumed", turn, lab)
        assert (first.result, second.result) == ("Here.", "Here again.")
        for request in api.of("main"):
            after = results(conversation(request.body))
            assert len(after) == count
            assert all(item.text.startswith("[removed: re-read ") for item in after.values())
