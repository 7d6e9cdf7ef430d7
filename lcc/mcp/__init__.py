"""`lcc mcp`: a server with which an agent can recall, compact and explain, on standard input and output.

The official SDK is an optional extra, so nothing of it is imported before the server is to run.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

from lcc.commands.files import InputError


def mcp() -> None:
    """Serve recall, compact_transcript and explain to an agent over MCP, on standard input and output.

    For other clients than the plugin, whose module has a tool `recall` of its own. In Claude Code beside the plugin it
    needs another name than lcc: claude mcp add lcc-tools -- lcc mcp
    """
    try:
        from lcc.mcp.server import build_server
    except ImportError as error:
        installer = "" if find_spec("pip") else f"{sys.executable} -m ensurepip && "  # the plugin's has none
        raise InputError(
            f"the MCP server needs the official SDK ({error}); install it into lcc's own environment with: "
            f"{installer}{sys.executable} -m pip install 'mcp>=2,<3'"
        ) from None
    build_server().run()
