"""Before the wall, in a terminal: a session that rests is compacted where that is free."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN
from client.conversation import conversation, results
from client.messages_api import MessagesApi, Reply, Script, call, say, serve
from client.terminal import Terminal
from client.test_second_plugin import ANSWERS, other_plugin
from making import SessionFile, worked_on

pytestmark = pytest.mark.client

READS = [f"toolu_old{number}" for number in range(4)]
BIG, SMALL = 60_000, 1_000
"""Tokens of the context, as the API says: enough for a compaction to be worth it, and too few."""

PAST_LIFE = 3.5
"""Seconds after which a session whose cache lives for one second has been looked at."""


def replies(*texts: str) -> Script:
    return Script([Reply([say(text)], input_tokens=BIG) for text in texts])


def session_in(lab: Lab, context: int) -> SessionFile:
    """A session with four large old reads, whose last request, long ago, held ``context`` tokens."""
    line = "line {} of file {}: worth removing\n".format
    files = [
        lab.write(f"src/f{number}.py", "".join(line(at, number) for at in range(1500))) for number in range(len(READS))
    ]
    session = worked_on(lab.project, lab.home, files)
    session.assistant(say("All is said."), usage={"input_tokens": context, "output_tokens": 10})
    session.write(lab.home)
    return session


@contextmanager
def resting(
    client: Path, lab: Lab, script: Script, context: int, plugins: Sequence[Path] = (PLUGIN,)
) -> Iterator[tuple[Terminal, MessagesApi, SessionFile]]:
    """The resumed session in a terminal."""
    session = session_in(lab, context)
    with (
        serve(script) as (api, url),
        Terminal(client, lab, url, plugin_dirs=plugins, resume=session.id) as terminal,
    ):
        terminal.wait_for("All is said.")
        yield terminal, api, session


def removed(api: MessagesApi) -> list[str]:
    """The reads that the newest request holds no more."""
    shown = results(conversation(api.of("main")[-1].body))
    return [call_id for call_id in READS if not shown[call_id].text.startswith("1\tline 0")]


COLD_WORDS = "the prompt cache had run out"


def test_a_cold_session_is_compacted_and_goes_on(current_client: Path, lab: Lab) -> None:
    """Its cache has run out when it is resumed: the next request holds the notes, and so does one after a resume."""
    with resting(current_client, lab, replies("First."), BIG) as (terminal, api, session):
        terminal.wait_for(COLD_WORDS)
        terminal.enter("And on.")
        terminal.wait_for("First.")
        assert removed(api) == READS
        assert not api.of("summary")
    with (
        serve(replies("Second.")) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        assert claude.ask("Once more.").result == "Second."
        assert removed(api) == READS
        assert not api.of("summary")


def test_it_is_compacted_when_the_cache_runs_out_after_a_turn(current_client: Path, lab: Lab) -> None:
    """The request of the turn holds all; the next one holds the notes."""
    lab.env["LCC_CACHE_LIFE_S"] = "1"
    with resting(current_client, lab, replies("First.", "Second."), SMALL) as (terminal, api, _):
        terminal.enter("Go on.")
        terminal.wait_for("First.")
        assert removed(api) == []
        terminal.wait_for(COLD_WORDS)
        terminal.enter("And on.")
        terminal.wait_for("Second.")
        assert removed(api) == READS
        assert not api.of("summary")


def test_early_does_not_wait_for_the_cache(current_client: Path, lab: Lab) -> None:
    """At the share of the window that the user set it is compacted, while the cache lives; `status` tells the share."""
    lab.env |= {"LCC_PROACTIVE": "early", "LCC_EARLY_SHARE": "0.05", "LCC_STATUS": "true"}
    with resting(current_client, lab, replies("First.", "Second."), SMALL) as (terminal, api, _):
        terminal.enter("Go on.")
        terminal.wait_for("lcc 6 % · 99 % can go")
        terminal.wait_for("tokens less in every request")
        terminal.enter("And on.")
        terminal.wait_for("Second.")
        assert removed(api) == READS
        assert not api.of("summary")


def test_early_without_a_share_is_where_it_pays(current_client: Path, lab: Lab) -> None:
    """After a turn, while the cache lives; the session is long enough to pay back what is written again."""
    lab.env |= {"LCC_PROACTIVE": "early", "LCC_CACHE_LIFE_S": "86400"}
    with resting(current_client, lab, replies("First.", "Second."), SMALL) as (terminal, api, _):
        terminal.enter("Go on.")
        terminal.wait_for("First.")
        terminal.wait_for("paid back after 0", seconds=30)
        terminal.enter("And on.")
        terminal.wait_for("Second.")
        assert removed(api) == READS
        assert not api.of("summary")


def test_what_is_typed_stays_and_is_waited_for(current_client: Path, lab: Lab) -> None:
    """While a text stands in the prompt nothing is compacted, and the text is sent as it was typed."""
    lab.env["LCC_CACHE_LIFE_S"] = "1"
    with resting(current_client, lab, replies("First.", "Second."), SMALL) as (terminal, api, _):
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


def test_background_work_is_waited_for(current_client: Path, lab: Lab) -> None:
    """While a shell works in the background nothing is compacted; once it has ended and was told of, it is."""
    lab.env["LCC_CACHE_LIFE_S"] = "1"
    waits = "while [ ! -e done ]; do sleep 0.1; done"
    shell = call("toolu_shell", "Bash", command=waits, description="wait", run_in_background=True)
    script = Script(
        [Reply([shell], input_tokens=BIG), *(Reply([say(f"Reply {n}.")], input_tokens=BIG) for n in (1, 2, 3))]
    )
    with resting(current_client, lab, script, SMALL) as (terminal, api, _):
        terminal.enter("Go on.")
        terminal.wait_for("Reply 1.")
        threading.Event().wait(PAST_LIFE)
        assert COLD_WORDS not in terminal.screen()
        lab.write("done", "")
        terminal.wait_for("Reply 2.")
        assert removed(api) == []
        terminal.wait_for(COLD_WORDS)
        terminal.enter("And on.")
        terminal.wait_for("Reply 3.")
        assert removed(api) == READS
        assert not api.of("summary")


def test_another_plugin_in_our_place_ends_it(current_client: Path, lab: Lab) -> None:
    """One that answers before us is met once; from there on nothing is compacted by itself, and that is said."""
    lab.env["LCC_CACHE_LIFE_S"] = "1"
    plugins = [other_plugin(lab, ANSWERS), PLUGIN]
    with resting(current_client, lab, replies("First.", "Second.", "Third."), SMALL, plugins) as (terminal, api, _):
        terminal.enter("Go on.")
        terminal.wait_for("another plugin answers in lcc's place")
        terminal.enter("And on.")
        terminal.wait_for("Second.")
        held = len(api.of("main")[-1].body["messages"])
        threading.Event().wait(PAST_LIFE)
        terminal.enter("And again.")
        terminal.wait_for("Third.")
        assert len(api.of("main")[-1].body["messages"]) == held + 2
        assert not api.of("summary")


def test_an_older_client_has_none_of_it(older_client: Path, lab: Lab) -> None:
    """In its terminal nothing is compacted by itself and nothing is said about it; `/lcc` answers without a model."""
    lab.env["LCC_CACHE_LIFE_S"] = "1"
    with resting(older_client, lab, replies("First.", "Second."), BIG) as (terminal, api, _):
        terminal.enter("Go on.")
        terminal.wait_for("First.")
        threading.Event().wait(PAST_LIFE)
        terminal.enter("And on.")
        terminal.wait_for("Second.")
        assert removed(api) == []
        terminal.type("/lcc")
        terminal.wait_for("/lcc:lcc")
        terminal.press("Enter")
        screen = terminal.wait_for("- can go now: ")
        assert "lcc: " not in screen.replace("/lcc:lcc", "")
        assert api.kinds() == "main main"
