"""The proxy for a disk that cannot be asked: could any later call have written this file?

The seed's section 5, form `transcript_proxy`: no later write, patch or delete naming it, no worktree-wide git
command, and no opaque call (script, build, test run, unknown tool) that may write under its directory.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Container, Iterable, Sequence

from lcc.relevance.reading.calls import command_of, cwd_of, effect_of, input_strings, kind_of, written_paths
from lcc.transcript import ToolUse

_NAME = re.compile(r"[^\s\"'`<>()\[\]{},;|*?!=/:]+")
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;|*?!=]+")
_AMPERSAND = re.compile(r"&(?<![&>|\\]&)(?![&>])")  # alone, it sends what stands before it to the background
_GOES_ON = ("nohup", "setsid", "disown")
_MOVES = re.compile(r"(?:\A|[\s;&|(`])(?:cd|pushd|popd)(?:[\s;&|)]|\Z)")
_EVERYWHERE = "/"
_MAY_LEAVE = ("$", "~", "`", "..", "%")


class LaterWrites:
    """For every file that is read: the last call that names it, and the last that may have written it unnamed."""

    def __init__(
        self,
        uses: Sequence[ToolUse],
        reads: Container[str],
        running: Container[str],
        read_paths: Iterable[str],
        session_cwd: str | None,
    ) -> None:
        """``uses`` are all calls in order, ``reads`` the ids of those that only read a file, ``running`` of those
        that started something which was still running when their result came.

        ``read_paths`` are the paths that will be asked about.
        """
        file_names = {os.path.basename(os.path.normpath(path)) for path in read_paths}
        self._named: dict[str, int] = {}
        self._written_under: dict[str, int] = {}
        moved = False
        for position, use in enumerate(uses):
            if use.id in reads:
                continue
            written = written_paths(use)
            # An edit names its file and writes no other; what it writes into it names nothing.
            is_edit = bool(written) and kind_of(use.tool) in ("edit", "write")
            strings = [] if is_edit else input_strings(use.input)
            # A shell stays where a command went: from then on only a directory of the call's own is known.
            moved = moved or (kind_of(use.tool) == "command" and any(map(_moves, strings)))
            for path in written:
                self._named[os.path.basename(path)] = position
            for text in strings:
                for name in file_names.intersection(_NAME.findall(text)):
                    self._named[name] = position
            if effect_of(use) != "read_only":
                last = len(uses) if use.id in running or _runs_on(use, strings) else position
                for folder in _may_write_under(use, strings, None if moved else session_cwd):
                    self._written_under[folder] = max(last, self._written_under.get(folder, -1))
        self._last_write = max(self._written_under.values(), default=-1)

    def may_have_written(self, path: str, position: int) -> bool:
        """Whether a call after the one at ``position`` names the file at ``path`` or may have written it."""
        folder = os.path.normpath(path)
        if self._named.get(os.path.basename(folder), -1) > position:
            return True
        if not os.path.isabs(folder):
            return self._last_write > position
        while True:
            if self._written_under.get(folder, -1) > position:
                return True
            parent = os.path.dirname(folder)
            if parent == folder:
                return False
            folder = parent


def _moves(command: str) -> bool:
    """Whether a command may leave its shell in another directory."""
    return any(word in command for word in ("cd", "pushd", "popd")) and _MOVES.search(command) is not None


def _runs_on(use: ToolUse, strings: Sequence[str]) -> bool:
    """Whether a call goes on in the background, and may write at any time after it was made."""
    if isinstance(use.input, dict) and use.input.get("run_in_background"):
        return True
    return kind_of(use.tool) == "command" and any(
        any(word in text for word in _GOES_ON) or _AMPERSAND.search(text) for text in strings
    )


def _may_write_under(use: ToolUse, strings: Sequence[str], session_cwd: str | None) -> list[str]:
    """The folders under which an opaque call may write: its own, those it names, or everywhere."""
    cwd = cwd_of(use) or session_cwd
    command = command_of(use)
    if cwd is None or not os.path.isabs(cwd) or command is None or any(sign in command for sign in _MAY_LEAVE):
        return [_EVERYWHERE]
    folders = [os.path.normpath(cwd)]
    for text in strings:
        for word in set(_WORD.findall(text)):
            if word.startswith("/"):
                path = os.path.normpath(word)
                folders += [path, os.path.dirname(path)]
    return folders
