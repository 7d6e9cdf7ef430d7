"""Where the real client keeps the sessions of projects with odd names, and that lcc looks there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.messages_api import Reply, Script, say, serve

from lcc.client_folders import folder_name, folders_of
from lcc.sessions.listing import session_files

pytestmark = pytest.mark.client


@dataclass
class NamedLab(Lab):
    """A lab whose project has a name of its own."""

    name: str = "project"

    @property
    def project(self) -> Path:
        return self.root / self.name


@pytest.mark.parametrize(
    "name",
    ["my 😀 app", "Übersicht_v1.2 (neu)", "日本語", "x" * 120 + "/" + "y" * 120, "z" * 100 + "/" + "😀" * 60],
    ids=["emoji", "umlaut", "japanese", "long", "long emoji"],
)
def test_the_folder_is_the_clients(current_client: Path, lab: Lab, name: str) -> None:
    named = NamedLab(lab.root / "odd", lab.path, dict(lab.env), name)
    with serve(Script([Reply([say("Hello.")])])) as (_, url), Claude(current_client, named, url) as claude:
        claude.ask("Hello?")
        session = claude.session

    (made,) = (named.home / ".claude" / "projects").iterdir()

    assert made.name == folder_name(str(named.project))
    found = session_files(folders_of(named.project, {"HOME": str(named.home)}))
    assert [path.stem for path in found] == [session]
