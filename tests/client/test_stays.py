"""A session that cannot be replaced well stays as it is while there is room; else, or for a word, it is summarised."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, SETTLED, Table
from client.conversation import conversation, results
from client.messages_api import MessagesApi, Reply, Script, bash, say, serve, think
from client.test_trouble import HANDED_OVER, NOT_COMPACTED, text_of
from daemon.daemon_world import wait_until
from making import SessionFile

pytestmark = pytest.mark.client

UNKNOWN: dict[str, dict[str, Any]] = {
    "a system row": {"kind": "system", "subtype": "tomorrow", "content": "?"},
    "an attachment": {"kind": "attachment", "attachment": {"type": "tomorrow", "content": "?"}},
    "a block": {
        "kind": "assistant",
        "message": {
            "id": "msg_t",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [{"type": "tomorrow", "content": "?"}, say("And so on.")],
            "usage": {},
        },
    },
}
AFTER = "before the compaction it was at"
AT_THE_WALL = 970_000
"""Input tokens at which the client compacts by itself, with a window of a million."""
SMALLER = "claude-sonnet-4-5-20250929"
"""A model with a window of 200,000 tokens."""
FULL = {"input_tokens": 950_000}
"""What the API says of a window of a million tokens that is nearly full."""


def session_with(lab: Lab, row: dict[str, Any], lines: int = 500) -> SessionFile:
    """A session with a large old read, and a row behind its result."""
    text = "".join(f"line {number}: something worth removing\n" for number in range(lines))
    session = SessionFile(lab.project)
    session.user("Read it.")
    session.read("toolu_old", lab.write("src/one.py", text))
    session.row(**row)
    session.assistant(say("I have read it."))
    for number in range(8):
        session.user(f"Question {number}?")
        session.assistant(say(f"Answer {number}."))
    session.write(lab.home)
    return session


class Started:
    """The programs of the plugin that a lab's client starts from here on."""

    def __init__(self, lab: Lab) -> None:
        self.file = lab.root / "started"
        folder = lab.root / "counting"
        folder.mkdir()
        (folder / "python3").write_text(f'#!/bin/sh\necho "$*" >> {self.file}\nexec {sys.executable} "$@"\n')
        (folder / "python3").chmod(0o755)
        lab.path = f"{folder}:{lab.path}"

    def count(self, program: str) -> int:
        """How often one was started, by words of its command line."""
        return self.file.read_text().count(f"{program}")


def is_whole(api: MessagesApi) -> bool:
    """Whether the newest request holds the old read as it was."""
    return results(conversation(api.of("main")[-1].body))["toolu_old"].text.startswith("1\tline 0")


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_an_unknown_kind_is_named_and_nothing_is_touched(
    current_client: Path, lab: Lab, table: Table, name: str
) -> None:
    """Asked twice, the session is the same; a word of instructions writes the summary."""
    session = session_with(lab, UNKNOWN[name])
    with (
        serve(Script([Reply([say("Here.")])] * 4)) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        for _ in range(2):
            turn = claude.ask("/compact")
            assert NOT_COMPACTED + "a replacement would lose a " in text_of(turn)
            assert "tomorrow" in text_of(turn)
            assert turn.said_to_user() == []
        claude.ask("Are you there?")
        assert (api.kinds(), is_whole(api)) == ("main", True)
        told = claude.ask("/compact shorter").said_to_user()
        claude.ask("And now?")
    table.add(f"{name} of an unknown kind", "everything, then the summary that was asked for", turn, lab)
    assert [line.startswith(HANDED_OVER) and "tomorrow" in line for line in told] == [True]
    assert api.kinds() == "main summary main"


@pytest.mark.parametrize("reason", ["unknown", "too little"])
def test_a_nearly_full_window_gets_the_summary(current_client: Path, lab: Lab, table: Table, reason: str) -> None:
    """Where there is no room to wait, /compact ends in the built-in summary, and the line says why."""
    row = UNKNOWN["a block"] if reason == "unknown" else {"kind": "progress", "content": "?"}
    session = session_with(lab, row)
    settings = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.999}}}}
    with (
        serve(Script([Reply([say("Here.")], **FULL), Reply([say("There.")], input_tokens=500)])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=settings) as claude,
    ):
        claude.ask("Fill it.")
        turn = claude.ask("/compact")
    table.add(f"{reason}, nearly full", "the built-in summary", turn, lab)
    assert [line.startswith(HANDED_OVER) for line in turn.said_to_user()] == [True]
    assert api.kinds() == "main summary"


def test_a_full_window_is_summarised_where_something_would_be_lost(
    current_client: Path, lab: Lab, table: Table
) -> None:
    """The client's own compaction cannot wait: the summary runs, and the turn is answered."""
    session = session_with(lab, UNKNOWN["a block"])
    script = Script([Reply([say("Here.")], input_tokens=AT_THE_WALL), Reply([say("There.")], input_tokens=500)])
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        claude.ask("Fill it.")
        turn = claude.ask("And now?")
    table.add("unknown, auto at the wall", "the built-in summary", turn, lab)
    assert (turn.result, api.kinds()) == ("There.", "main summary main")
    (told,) = turn.said_to_user()
    assert told.startswith(HANDED_OVER)
    assert told.endswith("; 970k of 1000k tokens in use (97 %)")


@pytest.mark.parametrize("reason", ["unknown", "too little"])
def test_the_clients_own_question_is_skipped_while_there_is_room(
    current_client: Path, lab: Lab, table: Table, reason: str
) -> None:
    """`auto` far from the window's end: each request goes out as it was, one line says why, and no pass is run again
    until the context has grown."""
    lab.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "100000"
    row = UNKNOWN["a block"] if reason == "unknown" else {"kind": "progress", "content": "?"}
    session = session_with(lab, row)
    settings = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.999}}}}
    tokens = [90_000, 91_000, 92_000, 92_500]
    started = Started(lab)
    steps = [Reply([bash(f"toolu_{each}", "echo step")], input_tokens=each) for each in tokens[1:3]]
    script = Script([Reply([say("Here.")], input_tokens=tokens[0]), *steps, Reply([say("Done.")], input_tokens=92_500)])
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=settings) as claude,
    ):
        claude.ask("Fill it.")
        turn = claude.ask("Go on.")
    table.add(f"{reason}, auto with room", "everything as it was", turn, lab)
    assert (turn.result, api.kinds(), is_whole(api)) == ("Done.", "main main main main", True)
    (told,) = [line for line in turn.said_to_user() if "in use" in line]
    assert "; 90k of 1000k tokens in use (9 %); the session stays as it is; /compact with a word" in told
    assert len(SETTLED.findall(lab.debug_log.read_text())) == 3
    assert started.count("unseen.py") == 1
    assert started.count("client.py compact") == (0 if reason == "unknown" else 1)


def test_by_hand_asked_again_it_is_the_same_at_no_cost(current_client: Path, lab: Lab) -> None:
    """/compact three times: one pass, and the same words each time."""
    session = session_with(lab, {"kind": "progress", "content": "?"})
    settings = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.999}}}}
    started = Started(lab)
    with (
        serve(Script([])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=settings) as claude,
    ):
        told = [text_of(claude.ask("/compact")).partition(NOT_COMPACTED)[2].partition("<")[0] for _ in range(3)]
    assert told[0].startswith("only 9")
    assert told[1:] == told[:1] * 2
    assert api.kinds() == ""
    assert [started.count(program) for program in ("unseen.py", "client.py compact")] == [1, 1]


def test_the_figures_are_the_clients_own(current_client: Path, lab: Lab, table: Table) -> None:
    """Before, in the line of the compaction; after, in a line of the next turn; and both in the report."""
    session = session_with(lab, {"kind": "progress", "content": "?"})
    script = Script([Reply([say(text)], input_tokens=tokens) for text, tokens in (("A.", 62_000), ("B.", 31_000))])
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
    ):
        claude.ask("How full is it?")
        turn = claude.ask("/compact")
        claude.ask("And now?")
        claude.wait(lambda event: AFTER in str(event.get("text")), 0, 20)
    table.add("true figures", "a note", turn, lab)
    (told,) = turn.said_to_user()
    assert " less text, 62k (6 %) to ~" in told
    assert " tokens of 1000k in " in told
    assert api.kinds() == "main main"
    (path,) = (lab.home / ".local/state/lcc/reports").glob("*.json")
    wait_until(lambda: json.loads(path.read_bytes())["context"]["after"] is not None)
    assert json.loads(path.read_bytes())["context"] == {
        "before": {"tokens": 62_000, "window": 1_000_000, "share": 0.062},
        "after": {"tokens": 31_000, "window": 1_000_000, "share": 0.031},
    }


def test_where_the_last_one_left_too_little_room_the_summary_runs(current_client: Path, lab: Lab, table: Table) -> None:
    """At the wall, a replacement that the next request's true figure shows to have freed too little is the last one."""
    session = session_with(lab, {"kind": "progress", "content": "?"}, lines=3000)
    lab.env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] = "100000"
    script = Script([
        Reply([say("Here.")], input_tokens=170_000),
        Reply([think("more"), bash("toolu_more", "echo more")], input_tokens=165_000),
        Reply([say("There.")], input_tokens=500),
    ])  # fmt: skip
    with (
        serve(script) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, model=SMALLER) as claude,
    ):
        claude.ask("Fill it.")
        turn = claude.ask("And now?")
    table.add("auto, twice at the wall", "a note; then the built-in summary", turn, lab)
    assert (turn.result, api.kinds()) == ("There.", "main main summary main")
    replaced, figures, handed_over = turn.said_to_user()
    assert " less text, 170k (85 %) to ~" in replaced
    assert figures == f"lcc: the context is at 165k of 200k tokens (83 %); {AFTER} 170k (85 %)"
    assert handed_over.startswith(f"{HANDED_OVER}the last compaction left too little room: 165k of 200k tokens")


@pytest.mark.parametrize("trouble", ["too little", "no session file"])
def test_what_the_plugin_asks_for_by_itself_never_ends_in_a_summary(
    current_client: Path, lab: Lab, table: Table, trouble: str
) -> None:
    """Instructions with our own mark, nearly full: too little to gain, or something wrong. All stays as it is."""
    session = session_with(lab, {"kind": "progress", "content": "?"})
    settings = {"pluginConfigs": {"lcc@inline": {"options": {"min_reduction": 0.999}}}}
    with (
        serve(Script([Reply([say("Here.")], **FULL), Reply([say("There.")], **FULL)])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id, settings=settings) as claude,
    ):
        claude.ask("Fill it.")
        if trouble == "no session file":
            lab.transcript(session.id).rename(lab.root / "gone.jsonl")
        turn = claude.ask("/compact [lcc] before the wall")
        claude.ask("Are you there?")
    table.add(f"by the plugin's own will, nearly full, {trouble}", "everything as it was", turn, lab)
    told = text_of(turn).partition(NOT_COMPACTED)[2]
    assert told.startswith("only 9") is (trouble == "too little")
    assert "950k of 1000k tokens in use" in told
    assert (api.kinds(), is_whole(api)) == ("main main", True)
