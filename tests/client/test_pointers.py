"""An agent that needs what was removed gets it back by what the note says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Block, Body, Reply, Script, call, results_in, say, serve
from making import SessionFile

pytestmark = pytest.mark.client

NOTE = re.compile(r"\[removed: re-read (?P<path>\S+?)(?: \(lines (?P<first>\d+)-(?P<last>\d+)\))? to recover")


def follow(body: Body) -> list[Block]:
    """A model that reads every note in its context and calls Read as the note says."""
    wanted = []
    for call_id, text in results_in(body).items():
        note = NOTE.match(text)
        if note:
            span = {}
            if note["first"]:
                span = {"offset": int(note["first"]), "limit": int(note["last"]) - int(note["first"]) + 1}
            wanted.append(call(f"again_{call_id}", "Read", file_path=note["path"], **span))
    return wanted


def test_following_each_note_gives_the_removed_bytes(current_client: Path, lab: Lab, table: Table) -> None:
    """The client's own Read, called as each note says, returns exactly what the note replaced, whole file or range."""
    files = [
        lab.write("src/plain.py", "".join(f"line {number}\n" for number in range(300))),
        lab.write("src/no_end.txt", "".join(f"row {number}\n" for number in range(300)) + "no newline"),
        lab.write("src/wide.txt", "".join(f"\tåäö → {number} \U0001f980\n" for number in range(300))),
    ]
    session = SessionFile(lab.project)
    session.user("Read.")
    for number, path in enumerate(files):
        session.read(f"toolu_{number}", path)
    session.read("toolu_part", files[0], offset=101, limit=120)
    for number in range(8):
        session.assistant(say(f"Answer {number}."))
        session.user(f"Question {number}?")
    session.assistant(say("Last answer."))
    session.write(lab.home)
    with serve(Script([Reply(follow), Reply([say("I have it again.")])])) as (api, url):
        with Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude:
            turn = claude.ask("/compact")
            answer = claude.ask("Look at them again.")
        table.add("the agent follows each note", "the removed bytes", turn, lab)
        assert answer.result == "I have it again."
        after = results(conversation(api.of("main")[-1].body))
        removed = session.results()
        again = {key.removeprefix("again_") for key in after if key.startswith("again_")}
        assert again == removed.keys()
        for call_id in again:
            assert after[f"again_{call_id}"].text == removed[call_id]
        assert "lines 101-220" in after["toolu_part"].text
        assert json.dumps(after["toolu_0"].text).count("line 299") == 0
