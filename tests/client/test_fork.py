"""Forks through the real client: it resumes one, sees notes in place of outputs, and gets the outputs back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import programs
import pytest
from client.claude_process import TOOLS, Claude, Lab
from client.conversation import calls, conversation, results, texts
from client.messages_api import Block, Body, MessagesApi, Reply, Script, bash, call, results_in, say, serve

from lcc.contract.notes import Note, find_note

pytestmark = pytest.mark.client

OUTPUT = "".join(f"{number} squared is {number * number}\n" for number in range(1, 801)).rstrip("\n")
SQUARES = 'for i in $(seq 1 800); do echo "$i squared is $((i * i))"; done'
RECALL = "mcp__lcc__recall"
LCC = [sys.executable, "-c", "from lcc.cli import main; main()"]


def first_session() -> list[Reply]:
    """A large output, and enough small steps behind it that it is old."""
    steps = [Reply([say(f"Step {index}."), bash(f"toolu_step{index}", f"echo step {index}")]) for index in range(16)]
    parallel = [say("Two at once."), bash("toolu_p1", "echo one"), bash("toolu_p2", "echo two")]
    return [Reply([say("Squares."), bash("toolu_big", SQUARES)]), Reply(parallel), *steps, Reply([say("First done.")])]


def more_to_remove() -> list[Reply]:
    """A second large output that grows old, without which there is nothing to fork again for."""
    steps = [Reply([say(f"More {index}."), bash(f"toolu_more{index}", f"echo more {index}")]) for index in range(8)]
    return [Reply([say("Squares again."), bash("toolu_again", SQUARES)]), *steps]


def ask_for_note(call_id: str) -> Reply:
    """A model that reads the note in its context and calls the recall tool with the id that it names."""

    def act(body: Body) -> list[Block]:
        note = find_note(results_in(body)["toolu_big"])
        assert note is not None
        return [say("I need the squares."), call(call_id, RECALL, id=note.target, grep="^799 ")]

    return Reply(act)


def lcc(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    return programs.run_text("lcc", *arguments, env=lab.environment())


def fork(lab: Lab, session: Path) -> str:
    """Fork the session as it stands (the client has just left it); the new session's id."""
    asked = ["--provider", "rules", "--rules-mode", "stashed", "--fork", "--snapshot"]
    done = lcc(lab, "compact", str(session), *asked)
    assert done.returncode == 0, done.stderr
    return done.stderr.strip().rsplit("claude --resume ", 1)[1].split()[0]


def mcp_arguments(lab: Lab) -> Sequence[str]:
    servers = {"lcc": {"command": LCC[0], "args": [*LCC[1:], "mcp"]}}
    (lab.root / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return ["--mcp-config", str(lab.root / "mcp.json")]


def note_in(body: dict[str, Any]) -> Note | None:
    return find_note(results_in(body)["toolu_big"])


def run(client: Path, lab: Lab, url: str, prompts: Sequence[str], resume: str | None = None) -> str:
    """One client process through the prompts; the session's id."""
    with Claude(client, lab, url, resume=resume, tools=f"{TOOLS},{RECALL}", arguments=mcp_arguments(lab)) as claude:
        for prompt in prompts:
            assert claude.ask(prompt).subtype == "success"
        return claude.session


def test_a_fork_is_resumed_and_its_notes_are_followed(current_client: Path, lab: Lab) -> None:
    """The next request holds the notes and every text; recall gives the bytes; a fork of the fork works the same."""
    script = Script(
        [
            *first_session(),
            ask_for_note("toolu_recall1"),
            *more_to_remove(),
            Reply([say("Second done.")]),
            ask_for_note("toolu_recall2"),
            Reply([say("Third done.")]),
        ]
    )
    with serve(script) as (api, url):
        original = lab.transcript(run(current_client, lab, url, ["Make squares."]))
        before = conversation(api.of("main")[-1].body)
        assert results(before)["toolu_big"].text == OUTPUT
        bytes_before = original.read_bytes()

        first = fork(lab, original)
        assert original.read_bytes() == bytes_before
        forked = lab.transcript(first)
        assert forked.parent == original.parent
        assert forked.stat().st_mode & 0o777 == 0o600
        assert "799 squared" not in forked.read_text()

        assert run(current_client, lab, url, ["Go on."], resume=first) == first
        look(api, before)
        second = fork(lab, forked)
        assert len({original.stem, first, second}) == 3
        run(current_client, lab, url, ["And on."], resume=second)
        look(api, before)
        assert all(request.refusal is None for request in api.requests)
        assert texts(conversation(api.of("main")[-1].body), "user")[-3:] == ["Make squares.", "Go on.", "And on."]
        uuids = [set(_uuids(lab.transcript(session))) for session in (original.stem, first, second)]
        assert not uuids[0] & uuids[1] | uuids[1] & uuids[2] | uuids[0] & uuids[2]


def look(api: MessagesApi, before: list[Any]) -> None:
    """What the model was sent: the old conversation with a note, and what recall answered."""
    body = api.of("main")[-1].body
    after = conversation(body)
    assert note_in(body) is not None
    old_calls = [item for item in calls(after) if item.key in {item.key for item in calls(before)}]
    assert old_calls == calls(before)
    assert texts(after, "assistant")[: len(texts(before, "assistant"))] == texts(before, "assistant")
    small = {key: item for key, item in results(before).items() if key != "toolu_big"}
    assert {key: results(after)[key] for key in small} == small
    recalled = [item.text for key, item in results(after).items() if key.startswith("toolu_recall")]
    assert recalled
    assert set(recalled) == {f"799:799 squared is {799 * 799}"}


def _uuids(path: Path) -> list[str]:
    return [row["uuid"] for row in map(json.loads, path.read_text().splitlines()) if "uuid" in row]


def test_a_session_that_a_client_has_open_is_refused(current_client: Path, lab: Lab) -> None:
    """While the client runs, the fork is refused and says by whom; a snapshot is taken when asked for."""
    with serve(Script([*first_session()])) as (_, url), Claude(current_client, lab, url) as claude:
        claude.ask("Make squares.")
        session = lab.transcript(claude.session)
        os.utime(session, (1_700_000_000, 1_700_000_000))
        done = lcc(lab, "compact", str(session), "--provider", "rules", "--fork")
        assert done.returncode == 2
        assert f"process id {claude.pid}" in done.stderr
        assert "--snapshot" in done.stderr
        assert list(session.parent.glob("*.jsonl")) == [session]
        assert fork(lab, session) != session.stem
