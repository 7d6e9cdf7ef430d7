"""The proxy for a disk that cannot be asked: could any later call have written this file?

The seed's section 5, form `transcript_proxy`: no later write, patch or delete naming it, no worktree-wide git
command, and no opaque call (script, build, test run, unknown tool) that may write under its directory.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from lcc.relevance.evidence.places import folded, place_of
from lcc.relevance.evidence.timeline import Moment
from lcc.relevance.reading.calls import (
    command_of,
    cwd_of,
    effect_of,
    file_read_of,
    input_strings,
    kind_of,
    runs_in_background,
    written_paths,
)
from lcc.transcript import ToolUse

_NAME = re.compile(r"[^\s\"'`<>()\[\]{},;|*?!=/:]+")
_ADDRESS = re.compile(r"\b(?!file:)[a-z][a-z0-9+.-]*://\S*")
# A whole path: a word, behind a sign that ends one (``-v /a:/b``, ``--out=/a``), or glued to its option (``-C/a``).
_WHOLE_PATH = re.compile(
    r"(?:(?<![^\s\"'`=:,;(<>|@&\[{])|(?<![^\s\"'])-[\w-]*?)((?:[a-z]:)?/[^\s\"'`<>()\[\]{},;|*?!=&:]*)"
)
_AMPERSAND = re.compile(r"&(?<![&>|\\]&)(?![&>])")  # alone, it sends what stands before it to the background
_GOES_ON = re.compile(
    r"\b(?:nohup|setsid|disown|daemonize|start-stop-daemon|pm2|supervisorctl|crontab|launchctl|watch|watchexec|entr)\b"
    r"|--(?:detach|daemon|background|watch)\b|\b(?:docker|podman|nerdctl)\b[^\n;|&]*\s-[a-z]*d[a-z]*\b"
)
_ELSEWHERE = re.compile(
    r"\b(?:tmux|screen|zellij|systemd-run|ssh)\b|(?:\A|[;&|(]\s*)(?:at|batch)\b"
)  # it runs where another shell stands
_MOVES = re.compile(r"(?:\A|[\s;&|(`])(?:cd|pushd|popd)(?:[\s;&|)]|\Z)")
_EVERYWHERE = "/"
_MAY_LEAVE = ("$", "~", "`", "..", "%")
_NEVER = -1


class _Last(NamedTuple):
    """The latest of some calls, by when they were made and by when they were answered."""

    asked: int = _NEVER
    answered: int = _NEVER

    def is_after(self, read: Moment) -> bool:
        """Whether one of the calls may have done its work after the read. Of parallel calls none is the first."""
        return self.asked > read.asked or self.answered > (read.asked if read.answered is None else read.answered)


class LaterWrites:
    """For every file that is read: the last call that names it, and the last that may have written it unnamed."""

    def __init__(
        self,
        moments: Mapping[str, Moment],
        reads: Container[str],
        running: Container[str],
        read_paths: Iterable[str],
        session_cwd: str | None,
    ) -> None:
        """``moments`` are all calls in order, ``reads`` the ids of those that only read a file, ``running`` of those
        that started something which was still running when their result came.

        ``read_paths`` are the paths that will be asked about.
        """
        file_names = {posixpath.basename(place_of(path)) for path in read_paths}
        self._named: dict[str, _Last] = {}
        self._written_under: dict[str, _Last] = {}
        self._moments = moments
        self._end = 2 * len(moments) + 1  # behind every call and every answer
        moved = False
        for call_id, moment in moments.items():
            use = moment.use
            if call_id in reads or file_read_of(use) is not None:
                continue
            written = written_paths(use)
            # An edit names its file and writes no other; what it writes into it names nothing.
            is_edit = bool(written) and kind_of(use.tool) in ("edit", "write")
            strings = [] if is_edit else [folded(text) for text in input_strings(use.input)]
            # A shell stays where a command went: from then on only a directory of the call's own is known.
            moved = moved or (kind_of(use.tool) == "command" and any(map(_moves, strings)))
            for path in written:
                self._add(self._named, posixpath.basename(place_of(path)), moment)
            for text in strings:
                for name in file_names.intersection(_NAME.findall(text)):
                    self._add(self._named, name, moment)
            if effect_of(use) != "read_only":
                runs_on = call_id in running or _runs_on(use, strings)
                last = moment._replace(answered=None) if runs_on else moment
                for folder in _may_write_under(use, strings, None if moved else session_cwd):
                    self._add(self._written_under, folder, last)
        lasts = self._written_under.values()
        self._last_write = _Last(
            max((last.asked for last in lasts), default=_NEVER), max((last.answered for last in lasts), default=_NEVER)
        )

    def _add(self, lasts: dict[str, _Last], key: str, moment: Moment) -> None:
        last = lasts.get(key, _Last())
        answered = self._end if moment.answered is None else moment.answered
        lasts[key] = _Last(max(last.asked, moment.asked), max(last.answered, answered))

    def may_have_written(self, path: str, call_id: str) -> bool:
        """Whether a call after the read ``call_id`` names the file at ``path`` or may have written it."""
        read = self._moments[call_id]
        place = place_of(path)
        if self._named.get(posixpath.basename(place), _Last()).is_after(read):
            return True
        if not place.startswith("/"):
            return self._last_write.is_after(read)
        while True:
            if self._written_under.get(place, _Last()).is_after(read):
                return True
            parent = posixpath.dirname(place)
            if parent == place:
                return False
            place = parent


def _moves(command: str) -> bool:
    """Whether a command may leave its shell in another directory."""
    return any(word in command for word in ("cd", "pushd", "popd")) and _MOVES.search(command) is not None


def _runs_on(use: ToolUse, strings: Sequence[str]) -> bool:
    """Whether a call goes on in the background, and may write at any time after it was made."""
    if runs_in_background(use):
        return True
    command = command_of(use)
    strings = strings if command is None else [folded(command)]
    return kind_of(use.tool) == "command" and any(
        _GOES_ON.search(text) or _ELSEWHERE.search(text) or _AMPERSAND.search(text) for text in strings
    )


def _may_write_under(use: ToolUse, strings: Sequence[str], session_cwd: str | None) -> list[str]:
    """The folders under which an opaque call may write: its own, those it names, or everywhere."""
    cwd = place_of(cwd_of(use) or session_cwd or "")
    command = command_of(use)
    if not cwd.startswith("/") or command is None or any(sign in command for sign in _MAY_LEAVE):
        return [_EVERYWHERE]
    if _ELSEWHERE.search(folded(command)):
        return [_EVERYWHERE]
    folders = [cwd]
    for text in strings:
        if place_of(text) == cwd:
            continue  # where it runs, and no file beside it
        for word in set(_WHOLE_PATH.findall(_ADDRESS.sub(" ", text).replace("file://", ""))):
            path = place_of(word)
            folders += [path, posixpath.dirname(path)]
    if effect_of(use) == "git_worktree":  # the worktree begins at a folder above, and it is not known at which
        folders += ["/" + folder.split("/")[1] for folder in folders]
    return folders
