"""Reads of files that are no plain UTF-8 text with LF: the stash takes them, live and by hand, and gives them back.

The client shows such a file in a form of its own (lines ended by LF, cells of a notebook), so the file's bytes prove
nothing: CRLF never matches LF (the seed's section 5).
"""

from __future__ import annotations

import json
import re
from itertools import takewhile
from pathlib import Path

import programs
import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Reply, Script, call, say, serve

pytestmark = pytest.mark.client

LINES = [f"line {number} of the file, something worth removing" for number in range(300)]
CELL = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
NOTEBOOK = {
    "cells": [{**CELL, "id": f"c{number}", "source": [f"value_{number} = {number}\n"] * 9} for number in range(60)],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FILES = {
    "crlf.txt": "".join(f"{line}\r\n" for line in LINES).encode(),
    "mixed.txt": "".join(line + "\r\n"[number % 2 :] for number, line in enumerate(LINES)).encode(),
    "mark.txt": b"\xef\xbb\xbf" + "\n".join(LINES).encode(),
    "utf16.txt": "\n".join(LINES).encode("utf-16"),
    "latin.txt": "\n".join(f"{line} \u00fc" for line in LINES).encode("latin-1"),
    "book.ipynb": json.dumps(NOTEBOOK).encode(),
}
NOTE = re.compile(r"\[removed: [0-9]+ tokens · lcc recall ([0-9a-f]{12})\]")
TALK = 8


def test_each_kind_is_stashed_and_had_back(current_client: Path, lab: Lab, table: Table) -> None:
    """Read by the real client, compacted by it and by `lcc compact`; every note gives what the Read had shown."""
    for name, data in FILES.items():
        (lab.project / name).write_bytes(data)
    ids = {name: f"toolu_{name.partition('.')[0]}" for name in FILES}
    reads = [Reply([call(ids[name], "Read", file_path=str(lab.project / name))]) for name in FILES]
    talk = [Reply([say(f"Reply {number}.")]) for number in range(TALK + 2)]
    with (
        serve(Script([*reads, *talk])) as (api, url),
        Claude(current_client, lab, url, plugin_dirs=[PLUGIN]) as claude,
    ):
        for number in range(TALK):
            claude.ask(f"Question {number}?")
        whole = results(conversation(api.of("main")[-1].body))
        turn = claude.ask("/compact")
        claude.ask("Are you there?")
        live = results(conversation(api.of("main")[-1].body))
        file = lab.transcript(claude.session)
    table.add("reads of CRLF, UTF-16, Latin-1, a notebook", "notes of the stash", turn, lab)
    for call_id in ids.values():
        note = NOTE.match(live[call_id].text)
        assert note is not None, live[call_id].text
        given = programs.run("lcc", "recall", note[1], "--raw", env=lab.environment())
        assert given.stdout.decode() == whole[call_id].text
    before = lab.root / "before.jsonl"
    before.write_bytes(b"".join(until_compaction(file.read_bytes())))
    by_hand(lab, before)


def until_compaction(raw: bytes) -> list[bytes]:
    """The lines of a session file before its first compaction."""
    return list(takewhile(lambda line: b'"compact_boundary"' not in line, raw.splitlines(keepends=True)))


def by_hand(lab: Lab, session: Path) -> None:
    """`lcc compact` takes the same, and `lcc restore` gives the session's own bytes."""
    out, report, back = (lab.root / name for name in ("out.jsonl", "report.json", "back.jsonl"))
    for mode in ("auto", "stashed"):
        words = ["--provider", "rules", "--rules-mode", mode, "-o", str(out), "-r", str(report)]
        done = programs.run_text("lcc", "compact", str(session), "-q", "x", *words, env=lab.environment())
        assert done.returncode == 0, done.stderr
        assert json.loads(report.read_text())["tool_calls_stashed"] == len(FILES)
        done = programs.run_text("lcc", "restore", str(out), "-r", str(report), "-o", str(back), env=lab.environment())
        assert done.returncode == 0, done.stderr
        assert back.read_bytes() == session.read_bytes()
