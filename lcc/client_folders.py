"""Where the clients keep their sessions: one resolver for every command, `doctor` and the stash's collection.

A profile is a folder that ``CLAUDE_CONFIG_DIR`` or ``CODEX_HOME`` names, in this shell or in another one: those of the
usual names (``~/.claude``, ``~/.claude-work``) are found. Claude Code keeps a project's sessions in a folder that it
names by the path of where the session began. Only looks; nothing here is written.
"""

from __future__ import annotations

import json
import os
import re
import string
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lcc.folders import home_folder
from lcc.private_files import open_regular, read_or_none

_LONGEST_NAME = 200
_DIGITS = string.digits + string.ascii_lowercase
_HEAD_BYTES = 256 * 1024
_CWD = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')
_SMALL_BYTES = 64 * 1024


class Client(NamedTuple):
    """One of the clients, and where its sessions are."""

    variable: str
    """Names its folder."""
    usual: str
    """How its folders in the home begin."""
    holders: tuple[str, ...]
    """What in them holds sessions."""
    session: re.Pattern[str]
    """A session's path; the first group is the profile."""


CLAUDE = Client(
    "CLAUDE_CONFIG_DIR",
    ".claude",
    ("projects",),
    re.compile(r"(/.*)/projects/-[^/]*/.+\.jsonl", re.DOTALL),
)
CODEX = Client(
    "CODEX_HOME",
    ".codex",
    ("sessions", "archived_sessions"),
    re.compile(r"(/.*)/(?:sessions/\d+/\d+/\d+|archived_sessions)/rollout-[^/]*\.jsonl", re.DOTALL),
)
CLIENTS = (CLAUDE, CODEX)


def profiles(client: Client, env: Mapping[str, str]) -> list[Path]:
    """The folders of a client on this machine, the one of this shell first; links to one of them once."""
    named = env.get(client.variable)
    usual = sorted(path for path in home_folder(env).glob(f"{client.usual}*") if path.is_dir())
    found: dict[Path, Path] = {}
    for path in [*([Path(named)] if named else []), *usual]:
        found.setdefault(path.resolve(), path)
    return list(found.values())


def config_folder(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its files in this shell: ``$CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    named = env.get(CLAUDE.variable)
    return Path(named) if named else home_folder(env) / CLAUDE.usual


def session_holders(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders that hold all session files of every client and profile; not all of them need be there."""
    return tuple(profile / name for client in CLIENTS for profile in profiles(client, env) for name in client.holders)


def project_folders(env: Mapping[str, str]) -> list[Path]:
    """The folders of Claude Code's projects, of every profile."""
    found: list[Path] = []
    for profile in profiles(CLAUDE, env):
        found += _folders_in(profile / "projects")
    return found


def folders_of(project: Path, env: Mapping[str, str]) -> list[Path]:
    """The folders with the sessions of a project: begun in it, in its subfolders or in its git worktrees.

    Links are followed, as the client does. In a subfolder without sessions of its own those of the nearest folder
    above it that has some, below the home folder. Empty where there are none.
    """
    places = [Path(os.path.abspath(project)), project.resolve()]
    known = project_folders(env)
    found = _begun_in([*places, *worktrees(places[1])], known)
    if found:
        return found
    home = home_folder(env).resolve()
    for above in places[1].parents:
        if above == home or above in home.parents:
            break
        found = _begun_in([above], known)
        if found:
            break
    return found


def folder_name(path: str) -> str:
    """The client's name for a project's folder: its path, with ``-`` for each UTF-16 unit but ASCII letters and digits.

    A name of over 200 characters is cut there, and a hash of the whole path in base 36 stands behind it.
    """
    encoded = path.encode("utf-16-le", "surrogatepass")
    units = [unit for (unit,) in struct.iter_unpack("<H", encoded)]
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}-{_hash_of(units)}"


def _hash_of(units: Iterable[int]) -> str:
    """The client's hash of a string: 31 times what was before, as a 32-bit number, without its sign."""
    found = 0
    for unit in units:
        found = (found * 31 + unit) & 0xFFFFFFFF
    rest = abs(found - (1 << 32) if found >> 31 else found)
    digits = ""
    while rest or not digits:
        rest, digit = divmod(rest, 36)
        digits = _DIGITS[digit] + digits
    return digits


def _begun_in(places: Iterable[Path], known: Iterable[Path]) -> list[Path]:
    """Of the ``known`` folders those of sessions that began in one of ``places`` or below it."""
    texts = dict.fromkeys(unicodedata.normalize(form, str(place)) for place in places for form in ("NFC", "NFD"))
    names = {folder_name(text) for text in texts}
    found = []
    for folder in known:
        if folder.name in names:
            found.append(folder)
        elif any(_may_be_below(folder.name, text) for text in texts):
            cwd = began_in(folder)
            if cwd is not None and any(cwd.startswith(f"{text.rstrip('/')}/") for text in texts):
                found.append(folder)
    return found


def _may_be_below(name: str, text: str) -> bool:
    return name.startswith(folder_name(text)[:_LONGEST_NAME].rstrip("-") + "-")


def began_in(folder: Path) -> str | None:
    """Where the sessions in a project's folder began, as one of them says; None where none does."""
    for path in _files_in(folder):
        try:
            with open(open_regular(path), "rb") as file:
                found = _CWD.search(file.read(_HEAD_BYTES))
        except OSError:
            continue
        if found is not None:
            try:
                return str(json.loads(found[1]))
            except ValueError:
                continue
    return None


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.glob("*.jsonl"))
    except OSError:
        return []


def _folders_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def worktrees(project: Path) -> Iterator[Path]:
    """The git worktrees of a project that is the top of a repository, as the repository's files name them."""
    for folder in _folders_in(project / ".git" / "worktrees"):
        named = (read_or_none(folder / "gitdir", _SMALL_BYTES) or b"").strip()
        if named.startswith(b"/"):
            yield Path(os.fsdecode(named)).parent
