"""What a call is, from its tool's name and its input: a file read, a command, an edit, a plan, and so on.

The names are those of Claude Code and Codex and the common spellings of their kind; the comparison ignores
case. A tool that is not known here is ``other``: it may do anything.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from lcc.relevance.reading.commands import Effect, LineRange, command_effect, command_read
from lcc.relevance.reading.scripts import plain_call
from lcc.transcript import Json, Pair, ToolUse

Kind = Literal[
    "read",
    "search",
    "command",
    "poll",
    "edit",
    "write",
    "plan",
    "question",
    "web",
    "agent",
    "report",
    "harmless",
    "other",
]

_KINDS: dict[Kind, str] = {
    "read": "read read_file readfile view view_file open_file",
    "search": "grep glob ls list_dir list_directory list_files grep_files file_search search_files notebookread lsp",
    "command": "bash shell shell_command local_shell local_shell_call exec_command exec container.exec "
    "run_command run_terminal_cmd terminal powershell",
    "poll": "write_stdin wait bashoutput taskoutput monitor",
    "edit": "edit multiedit notebookedit str_replace str_replace_editor str_replace_based_edit_tool apply_patch",
    "write": "write write_file create_file",
    "plan": "todowrite todoread update_plan taskcreate taskupdate tasklist taskget exitplanmode enterplanmode",
    "question": "askuserquestion request_user_input ask_user",
    "web": "webfetch websearch web_fetch web_search web_search_call",
    "agent": "task agent spawn_agent resume_agent close_agent followup_task send_input send_message sendmessage "
    "teamcreate",
    "report": "wait_agent list_agents",
    "harmless": "toolsearch tool_search tool_search_call killbash killshell taskstop view_image",
}
_KIND_OF: dict[str, Kind] = {name: kind for kind, names in _KINDS.items() for name in names.split()}

# The tools of Codex whose outputs begin with the header that `headers.py` knows.
_CODEX_TOOLS = frozenset(
    "exec_command write_stdin shell shell_command local_shell exec container.exec apply_patch".split()
)

_PATH_KEYS = (
    "file_path",
    "path",
    "filePath",
    "filename",
    "file",
    "absolute_path",
    "target_file",
    "notebook_path",
)
_COMMAND_KEYS = ("command", "cmd")
_CWD_KEYS = ("workdir", "cwd", "working_directory")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)
_ALWAYS_ROWS = "Read"  # Claude Code's
_INTEGER = re.compile(r"[0-9]{1,12}", re.ASCII)


class FileRead(NamedTuple):
    """A call that reads one file. ``span`` None: the whole file; ``tail``: its last so many lines."""

    path: str
    cwd: str | None
    span: LineRange | None
    tail: int | None
    by_tool: bool
    """Whether a read tool read it (which numbers lines, and behind which a client puts reminders)."""
    numbered: bool
    """Whether its output may number the lines."""
    always_rows: bool = False
    """Whether all that it shows of a text file is numbered rows."""


@lru_cache(maxsize=1024)
def kind_of(tool: str) -> Kind:
    """The kind of a tool, by name. A namespace of Codex's own (``collaboration__wait_agent``) is no part of it."""
    if tool.lower().startswith("mcp__"):  # whatever its name says, its server may do anything
        return "other"
    name = tool.lower()
    return _KIND_OF.get(name) or _KIND_OF.get(name.rpartition("__")[2], "other")


@lru_cache(maxsize=1024)
def writes_codex_header(tool: str) -> bool:
    """Whether ``tool`` is one whose outputs begin with the Codex header."""
    return tool.lower() in _CODEX_TOOLS


def command_of(use: ToolUse) -> str | None:
    """The shell command of a command call; None when the call is no command or gives it in no known form."""
    given = _arguments(use)
    if kind_of(use.tool) != "command" or not isinstance(given, dict):
        return None
    for key in _COMMAND_KEYS:
        value = given.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and len(value) == 3 and value[1] in ("-c", "-lc") and isinstance(value[2], str):
            return value[2]
    return None


def cwd_of(use: ToolUse) -> str | None:
    """The directory that the call itself names (Codex ``workdir``), else the one the transcript records for it."""
    given = _arguments(use)
    if isinstance(given, dict) and not given.keys().isdisjoint(_CWD_KEYS):
        for key in _CWD_KEYS:
            value = given.get(key)
            if isinstance(value, str) and value:
                if given is not use.input:  # a script's own words, which the transcript knows nothing of
                    return os.path.join(use.cwd or "", value)
                # A relative one is already in what a Codex transcript records for the call.
                return value if os.path.isabs(value) or not use.cwd else use.cwd
    return use.cwd


def _arguments(use: ToolUse) -> Json:
    """What a call was given; where that is a script that is one plain call, what that call was given."""
    if isinstance(use.input, str) and kind_of(use.tool) == "command":
        return plain_call(use.input) or use.input
    return use.input


def full_path(path: str, cwd: str | None, session_cwd: str | None, root: str | None) -> str:
    """``path`` against the call's directory, else the session's, else the workspace; relative when none is known."""
    return os.path.join(root or "", session_cwd or "", cwd or "", path)


def named_path(use: ToolUse) -> str | None:
    """The path that the input names under one of the usual keys, as written."""
    if not isinstance(use.input, dict):
        return None
    for key in _PATH_KEYS:
        value = use.input.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def file_read_of(use: ToolUse) -> FileRead | None:
    """The single file that a call reads, with the lines it asks for; None when it is no such call."""
    kind = kind_of(use.tool)
    if kind == "read":
        path = named_path(use)
        span = _asked_span(use.input)
        return (
            None
            if path is None or span is _NO_SPAN
            else FileRead(path, cwd_of(use), span, None, True, True, use.tool == _ALWAYS_ROWS)
        )
    if kind == "command" and not runs_in_background(use):
        command = command_of(use)
        found = command_read(command) if command else None
        if found:
            return FileRead(found.path, cwd_of(use), found.span, found.tail, False, found.numbered)
    return None


def runs_in_background(use: ToolUse) -> bool:
    """Whether the call was told not to wait: its result is a task's id, and no output."""
    return isinstance(use.input, dict) and bool(use.input.get("run_in_background"))


def file_reads(pairs: Iterable[Pair]) -> dict[str, FileRead]:
    """The calls among ``pairs`` that read a single file, by call id."""
    found = ((pair.use.id, file_read_of(pair.use)) for pair in pairs)
    return {call_id: read for call_id, read in found if read is not None}


def written_paths(use: ToolUse) -> list[str]:
    """The paths that an edit, a write or a patch names (a patch may be sent through any tool)."""
    paths = []
    if kind_of(use.tool) in ("edit", "write"):
        path = named_path(use)
        if path:
            paths.append(path)
    for text in input_strings(use.input):
        if "*** " in text:
            paths += [first or second for first, second in _PATCHED.findall(text)]
    return paths


def effect_of(use: ToolUse) -> Effect:
    """What a call can do to files that it does not name."""
    kind = kind_of(use.tool)
    if kind == "command":
        command = command_of(use)
        return command_effect(command) if command is not None else "opaque"
    return "opaque" if kind in ("poll", "agent", "report", "other") else "read_only"


def input_strings(value: Json) -> list[str]:
    """Every string of an input, at any depth, in order."""
    found: list[str] = []
    waiting: list[Json] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            waiting.extend(reversed(item.values()))
        elif isinstance(item, list):
            waiting.extend(reversed(item))
    return found


_NO_SPAN = LineRange(0, 0)  # asked in a form that is not a range of lines


def _asked_span(value: Json) -> LineRange | None:
    """The lines that a read tool's input asks for; None for the whole file."""
    if not isinstance(value, dict):
        return _NO_SPAN
    if len(value) == 1:  # only the path
        return None
    for key in ("pages", "view_range", "page"):
        if value.get(key) not in (None, ""):
            return _NO_SPAN
    first = _first_given(value, ("offset", "start_line", "startLine"))
    count = _first_given(value, ("limit",))
    last = _first_given(value, ("end_line", "endLine"))
    if first is None and count is None and last is None:
        return None
    if -1 in (first, count, last):
        return _NO_SPAN
    start = max(first or 1, 1)  # offset 0 is the first line, numbered 0
    if last is None and count is not None:
        last = start + count - 1
    if last is not None and last < start:
        return _NO_SPAN
    return LineRange(start, last)


def _first_given(value: dict[str, Json], keys: tuple[str, ...]) -> int | None:
    """The number under the first of ``keys`` that is given; -1 when it is not a whole number."""
    for key in keys:
        given = value.get(key)
        if given is None:
            continue
        if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
            return given
        if isinstance(given, str) and _INTEGER.fullmatch(given):
            return int(given)
        return -1
    return None
