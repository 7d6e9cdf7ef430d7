"""A disk without a free byte: /compact replaces, or the session stays as it is. Nothing is summarised for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import PLUGIN, Table
from client.conversation import conversation, results
from client.messages_api import Reply, Script, say, serve
from client.test_recall import session_with_a_build
from client.test_trouble import NOT_COMPACTED, running_daemon, text_of
from making import SessionFile, worked_on
from odd_files import small_disk

pytestmark = pytest.mark.client


def with_a_read(lab: Lab) -> SessionFile:
    """A session whose old result the project's files give back."""
    lines = "".join(f"line {number}: something worth removing\n" for number in range(500))
    return worked_on(lab.project, lab.home, [lab.write("src/one.py", lines)])


@dataclass(frozen=True)
class FullDisk:
    """Which folder's disk is full, in what session, and how its /compact ends."""

    name: str
    place: str
    session: Callable[[Lab], SessionFile]
    is_replaced: bool
    warm: bool = False
    """A daemon has started while there was room."""


DISKS = [
    FullDisk("the runtime folder's, no daemon runs", "run", with_a_read, False),
    FullDisk("the runtime folder's, a daemon runs", "run", with_a_read, True, warm=True),
    FullDisk("the stash's, a file proves the result", "home/.local", with_a_read, True),
    FullDisk("the stash's, only the stash could hold it", "home/.local", session_with_a_build, False),
]


@pytest.mark.parametrize("disk", DISKS, ids=lambda disk: disk.name)
def test_a_full_disk_costs_no_conversation(current_client: Path, lab: Lab, table: Table, disk: FullDisk) -> None:
    """Replaced, or left as it is with the reason; the session goes on."""
    with small_disk(lab.root / disk.place) as fill:
        if disk.warm:
            running_daemon(lab)
        fill()
        session = disk.session(lab)
        with (
            serve(Script([Reply([say("Here.")])])) as (api, url),
            Claude(current_client, lab, url, plugin_dirs=[PLUGIN], resume=session.id) as claude,
        ):
            turn = claude.ask("/compact")
            answer = claude.ask("Are you there?")
        before = session.results()
        after = {name: result.text for name, result in results(conversation(api.of("main")[-1].body)).items()}
    table.add(f"a full disk: {disk.name}", "notes" if disk.is_replaced else "everything", turn, lab)
    assert answer.result == "Here."
    assert api.kinds() == "main"
    assert (after != before) is disk.is_replaced
    assert (NOT_COMPACTED in text_of(turn)) is not disk.is_replaced
    if not disk.is_replaced:
        assert re.search("No space left on device|the stash could not be written .ENOSPC", text_of(turn))
