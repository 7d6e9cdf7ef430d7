"""The header that Codex writes before a command's output, and which of its lines carry no content.

Four forms occur (`exec_command`, a still running session, `shell_command`/`apply_patch`, and `exec`); the
seed's section 5 says which lines do not count: the chunk id, the wall time and the original token count.
"""

from __future__ import annotations

import re

from lcc.relevance.reading.calls import writes_codex_header

_HEADER = re.compile(
    r"(?:(?:Chunk ID|Exit code|Original token count|Total output lines): [^\n]*+\n"
    r"|Wall time:? [^\n]*+\n"
    r"|Process (?:exited with code|running with session ID) [^\n]*+\n"
    r"|Script (?:completed|running|failed)[^\n]*+\n)++(?:\n?Output:\n)"
)
_IGNORED = re.compile(r"^(?:Chunk ID: |Wall time:? |Original token count: )[^\n]*+\n", re.MULTILINE)
_STILL_RUNNING = ("Process running with session ID ", "Script running with ")
_FAILED_SCRIPT = "Script failed"
_JSON_START = re.compile(r'\{\s*"output"\s*:\s*"')
_JSON_END = re.compile(r'"metadata"\s*:\s*\{\s*"exit_code"\s*:\s*(-?[0-9]{1,10})\s*[,}][^{}]*+\}?\s*\}\s*\Z')
_JSON_END_CHARS = 300
_EXIT_CODE = re.compile(r"^(?:Process exited with code |Exit code: )(-?[0-9]{1,10})$", re.MULTILINE)


def header_length(tool: str, text: str) -> int:
    """How many characters of ``text`` are the Codex header; 0 for tools that write none."""
    if not writes_codex_header(tool):
        return 0
    match = _HEADER.match(text)
    return match.end() if match else 0


def is_only_header(tool: str, text: str) -> bool:
    """Whether there is nothing behind the Codex header, which is there."""
    return bool(text) and header_length(tool, text) == len(text)


def comparable(tool: str, text: str) -> str:
    """``text`` without the header lines that two equal outputs may differ in."""
    length = header_length(tool, text)
    return _IGNORED.sub("", text[:length]) + text[length:] if length else text


def exit_code(tool: str, text: str) -> int | None:
    """The exit code that the Codex header names, or the JSON form of older versions; 1 for a script that failed."""
    length = header_length(tool, text)
    if not length:
        found = _JSON_END.search(text, max(0, len(text) - _JSON_END_CHARS)) if is_json_output(tool, text) else None
        return int(found[1]) if found else None
    if text.startswith(_FAILED_SCRIPT):
        return 1
    match = _EXIT_CODE.search(text, 0, length)
    return int(match[1]) if match else None


def is_json_output(tool: str, text: str) -> bool:
    """Whether the text is an output in the JSON form of older Codex versions: escaped, with its exit code behind it."""
    return writes_codex_header(tool) and _JSON_START.match(text) is not None


def still_runs(tool: str, text: str) -> bool:
    """Whether the Codex header says that what the call started was still running."""
    length = header_length(tool, text)
    return bool(length) and any(sign in text[:length] for sign in _STILL_RUNNING)
