"""Session files of Claude Code."""

from __future__ import annotations

from typing import Final

from lcc.transcript.formats.claude.format import ClaudeCode

CLAUDE_CODE: Final = ClaudeCode()
FORMAT: Final = CLAUDE_CODE
