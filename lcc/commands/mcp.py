"""`lcc mcp`: the MCP server on standard input and output."""

from __future__ import annotations

import sys

from lcc.commands.files import InputError


def mcp() -> None:
    """Serve recall, compact_transcript and explain to an agent over MCP, on standard input and output.

    The plugin starts it by itself. By hand: claude mcp add lcc -- lcc mcp
    """
    try:
        from lcc.mcp import build_server
    except ImportError as error:
        raise InputError(
            f"the MCP server needs the official SDK ({error}); install it into lcc's own environment with: "
            f"{sys.executable} -m pip install 'mcp>=2,<3'"
        ) from None
    build_server().run()
