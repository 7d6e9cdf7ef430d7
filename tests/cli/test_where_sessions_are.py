"""One resolver finds a project's sessions: profiles, links, subfolders, worktrees, odd names, other homes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cli.cli_world import World
from making import jsonl, user

from lcc.client_folders import CLAUDE, began_in, config_folder, folder_name, folders_of, profiles


def session_of(world: World, project: Path, name: str, profile: str = ".claude", began: Path | None = None) -> str:
    """A session of one prompt, where the client keeps it; it ``began`` in the folder that its client had then."""
    began = began or project.resolve()
    folder = world.folder / "home" / profile / "projects" / folder_name(str(began))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_bytes(jsonl(user("u", None, f"Words of {name}.", cwd=str(began), sessionId=name)))
    return name


def listed(world: World, place: Path | str, **env: str) -> list[str]:
    """The ids that `lcc sessions` lists of a folder."""
    ran = world.lcc("sessions", place, "--json", env=env)
    assert ran.code == 0, ran.err
    return sorted(each["id"] for each in json.loads(ran.out)["sessions"])


@pytest.fixture
def project(world: World) -> Path:
    folder = world.folder / "home" / "work" / "app"
    (folder / "src" / "deep").mkdir(parents=True)
    return folder


def test_every_profile_is_looked_at(world: World, project: Path) -> None:
    """The one that this shell names comes first; all of them hold sessions of the project."""
    named = session_of(world, project, "named", "elsewhere/config")
    usual, work = session_of(world, project, "usual"), session_of(world, project, "work", ".claude-work")
    elsewhere = str(world.folder / "home" / "elsewhere" / "config")

    assert listed(world, project) == sorted([usual, work])
    assert listed(world, project, CLAUDE_CONFIG_DIR=elsewhere) == sorted([named, usual, work])
    env = {"HOME": str(world.folder / "home"), "CLAUDE_CONFIG_DIR": elsewhere}
    assert profiles(CLAUDE, env)[0] == config_folder(env) == Path(elsewhere)


def test_a_profile_that_is_a_link_is_one_profile(world: World, project: Path) -> None:
    session_of(world, project, "one")
    (world.folder / "home" / ".claude-link").symlink_to(".claude")
    assert listed(world, project) == ["one"]


def test_a_link_to_the_project_leads_to_its_sessions(world: World, project: Path) -> None:
    """The client names the folder by where it really is; a client that was told the link's name is found too."""
    session_of(world, project, "real")
    link = world.folder / "link"
    link.symlink_to(project)
    session_of(world, project, "by-link", began=link)
    assert listed(world, link) == ["by-link", "real"]


def test_subfolders_belong_to_their_project(world: World, project: Path) -> None:
    """From the top all are seen; a neighbour whose name only begins alike is none of them."""
    neighbour = project.with_name("app-two")
    neighbour.mkdir()
    session_of(world, project, "top")
    session_of(world, project / "src", "inner")
    session_of(world, neighbour, "neighbour")
    assert listed(world, project) == ["inner", "top"]
    assert listed(world, project / "src") == ["inner"]
    assert listed(world, neighbour) == ["neighbour"]


def test_a_subfolder_without_sessions_shows_those_above(world: World, project: Path) -> None:
    """The nearest folder that has some, but never the home's own."""
    session_of(world, project, "top")
    session_of(world, world.folder / "home", "home")
    assert listed(world, project / "src" / "deep") == ["top"]
    alone = world.folder / "home" / "alone"
    alone.mkdir()
    ran = world.lcc("sessions", alone)
    assert ran.code == 2
    assert "has no sessions of this folder" in ran.err


def test_worktrees_belong_to_their_project(world: World, project: Path) -> None:
    """As git itself made one, beside the project and below it."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-C", str(project)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    for place in (project.with_name("feature"), project / ".claude" / "worktrees" / "fix"):
        subprocess.run([*git, "worktree", "add", "-q", str(place)], check=True, capture_output=True)
        session_of(world, place, place.name)
    session_of(world, project, "main")
    assert listed(world, project) == ["feature", "fix", "main"]
    assert listed(world, project.with_name("feature")) == ["feature"]


@pytest.mark.parametrize("name", ["my 😀 app", "Übersicht", "x" * 120 + "/" + "y" * 120, "日本" * 40])
def test_odd_names(world: World, project: Path, name: str) -> None:
    folder = project / name
    folder.mkdir(parents=True)
    session_of(world, folder, "odd")
    session_of(world, project, "top")
    assert listed(world, folder) == ["odd"]
    assert listed(world, project) == ["odd", "top"]


def test_an_id_is_found_in_every_profile(world: World, project: Path) -> None:
    """`lcc compact` takes a session by its id."""
    name = "11111111-2222-4333-8444-555555555555"
    session_of(world, project, name, ".claude-work")
    ran = world.lcc("compact", name, "-q", "x", "--provider", "rules", "--dry-run")
    assert ran.code == 0, ran.err


def test_a_copy_of_a_profile_doubles_nothing(world: World, project: Path) -> None:
    """A backup beside the profile holds the same sessions: each is listed once, and an id still names one file."""
    name = "11111111-2222-4333-8444-555555555555"
    session_of(world, project, name)
    home = world.folder / "home"
    shutil.copytree(home / ".claude", home / ".claude-backup")
    assert listed(world, project) == [name]
    ran = world.lcc("compact", name, "-q", "x", "--provider", "rules", "--dry-run")
    assert ran.code == 0, ran.err
    assert ".claude-backup" not in ran.err


def test_a_session_from_elsewhere_says_where_it_began(world: World, project: Path) -> None:
    session_of(world, project / "src", "inner")
    session_of(world, project, "top")
    shown = world.lcc("sessions", project, env={"COLUMNS": "200"}).text
    assert "in src: Words of inner." in shown
    assert ") Words of top." in shown


def test_folders_that_nobody_can_use_hold_nobody_up(world: World, project: Path) -> None:
    """A pipe that is called a session, a file that is no JSON, a folder without a file: passed over."""
    folder = world.folder / "home" / ".claude" / "projects" / folder_name(f"{project}/src")
    folder.mkdir(parents=True)
    os.mkfifo(folder / "a.jsonl")
    (folder / "b.jsonl").write_bytes(b'{"cwd":"\\ud800\\q"}\n')
    assert began_in(folder) is None
    assert folders_of(project, {"HOME": str(world.folder / "home")}) == []
