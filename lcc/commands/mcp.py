"""`lcc mcp`: the MCP server on standard input and output."""

from __future__ import annotations

from lcc.commands.files import InputError


def mcp() -> None:
    """Serve recall, compact_transcript and explain to an agent over MCP, on standard input and output.

    The plugin starts it by itself. By hand: claude mcp add lcc -- lcc mcp
    """
    try:
        from lcc.mcp import build_server
    except ImportError as error:
        raise InputError(
            f"the MCP server needs an optional part ({error}); install it with: pip install 'lcc-claude-code[mcp]'"
        ) from None
    build_server().run()
