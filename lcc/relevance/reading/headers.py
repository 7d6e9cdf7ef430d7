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
_EXIT_CODE = re.compile(r"^(?:Process exited with code |Exit code: )(-?[0-9]{1,10})$", re.MULTILINE)


def header_length(tool: str, text: str) -> int:
    """How many characters of ``text`` are the Codex header; 0 for tools that write none."""
    if not writes_codex_header(tool):
        return 0
    match = _HEADER.match(text)
    return match.end() if match else 0


def comparable(tool: str, text: str) -> str:
    """``text`` without the header lines that two equal outputs may differ in."""
    length = header_length(tool, text)
    return _IGNORED.sub("", text[:length]) + text[length:] if length else text


def exit_code(tool: str, text: str) -> int | None:
    """The exit code that the Codex header names, or None."""
    length = header_length(tool, text)
    match = _EXIT_CODE.search(text, 0, length) if length else None
    return int(match[1]) if match else None
