"""The environment that one request is served in: the asking session's, since a daemon is not of one session."""

from __future__ import annotations

from collections.abc import Mapping

from lcc_daemon.protocol import Request

PLACES = frozenset(("LCC_CONFIG", "LCC_STATE_DIR", "LCC_STASH_DIR"))
"""LCC_* variables of the daemon's own environment that hold for sessions that do not set them."""
OPTION = "CLAUDE_PLUGIN_OPTION_"


def environment_of(request: Request, own: Mapping[str, str]) -> dict[str, str]:
    """The asking session's variables over the daemon's ``own``."""
    kept = {key: value for key, value in own.items() if not key.startswith("LCC_") or key in PLACES}
    # The daemon's own folder is /, so a relative place of the session's is no place here.
    return {**kept, **{k: v for k, v in request.env.items() if k != "LCC_STATE_DIR" or v.startswith(("/", "~"))}}


def plugin_options(env: Mapping[str, str]) -> dict[str, str]:
    """The plugin's options as Claude Code gives them to a command hook: variables, all text."""
    return {key.removeprefix(OPTION).lower(): value for key, value in env.items() if key.startswith(OPTION)}
