"""Before the wall, in a terminal: a session that rests is compacted where that is free."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN
from client.conversation import conversation, results
from client.messages_api import MessagesApi, Reply, Script, say, serve
from client.terminal import Terminal
from making import SessionFile

pytestmark = pytest.mark.client

READS = [f"toolu_{number}" for number in range(4)]
BIG = 60_000
"""Tokens of the context, as the API says: enough for a compaction to be worth it."""

PAST_LIFE = 3.5
"""Seconds after which a session whose cache lives for one second has been looked at."""


def replies(*texts: str) -> Script:
    return Script([Reply([say(text)], input_tokens=BIG) for text in texts])


def session_in(lab: Lab) -> SessionFile:
    """A session with four large old reads, and enough behind them."""
    session = SessionFile(lab.project)
    session.user("Read them.")
    for number, call_id in enumerate(READS):
        text = "".join(f"line {line} of file {number}: worth removing\n" for line in range(1500))
        session.read(call_id, lab.write(f"src/f{number}.py", text))
    session.assistant(say("I have read them."))
    for number in range(8):
        session.user(f"Question {number}?")
        session.assistant(say(f"Answer {number}."))
    session.write(lab.home)
    return session


@contextmanager
def resting(client: Path, lab: Lab, script: Script, life: str) -> Iterator[tuple[Terminal, MessagesApi, SessionFile]]:
    """The resumed session in a terminal, where the prompt cache lives for ``life`` seconds."""
    lab.env["LCC_CACHE_LIFE_S"] = life
    session = session_in(lab)
    with (
        serve(script) as (api, url),
        Terminal(client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as terminal,
    ):
        terminal.wait_for("Answer 7.")
        yield terminal, api, session


def removed(api: MessagesApi) -> list[str]:
    """The reads that the newest request holds no more."""
    shown = results(conversation(api.of("main")[-1].body))
    return [call_id for call_id in READS if not shown[call_id].text.startswith("1\tline 0")]


def test_a_cold_session_is_compacted_and_goes_on(current_client: Path, lab: Lab) -> None:
    """The next request holds the notes, and so does one after a resume; nobody is asked for a summary."""
    with resting(current_client, lab, replies("First.", "Second."), "1") as (terminal, api, session):
        terminal.enter("Go on.")
        terminal.wait_for("First.")
        assert removed(api) == []
        terminal.wait_for("the prompt cache had run out")
        terminal.enter("And on.")
        terminal.wait_for("Second.")
        assert removed(api) == READS
        assert not api.of("summary")
    with (
        serve(replies("Third.")) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        assert claude.ask("Once more.").result == "Third."
        assert removed(api) == READS
        assert not api.of("summary")


def test_what_is_typed_stays_and_is_waited_for(current_client: Path, lab: Lab) -> None:
    """While a text stands in the prompt nothing is compacted, and the text is sent as it was typed."""
    with resting(current_client, lab, replies("First.", "Second."), "1") as (terminal, api, _):
        terminal.enter("Go on.")
        terminal.wait_for("First.")
        terminal.type("half a sen")
        threading.Event().wait(PAST_LIFE)
        terminal.type("tence")
        terminal.press("Enter")
        terminal.wait_for("Second.")
        assert removed(api) == []
        assert "half a sentence" in str(api.of("main")[-1].body)
        assert not api.of("summary")
