"""The environment that one request is served in: the asking session's alone, since a daemon is not of one session."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lcc.folders import home_folder
from lcc_daemon.protocol import Request
from lcc_daemon.server import Call

PLACES = ("LCC_CONFIG", "LCC_STATE_DIR", "LCC_STASH_DIR", "TYPESAFE_API_KEY_FILE")
"""Variables with paths, which are meant from the session's own working folder: the daemon's is /."""
OPTION = "CLAUDE_PLUGIN_OPTION_"
KEYS = {"jev": ("TYPESAFE_API_KEY",), "laya": ("LAYA_API_KEY",), "auto": ("TYPESAFE_API_KEY", "LAYA_API_KEY")}
"""Which secrets each provider may need; the proxies, whose addresses may hold a password, are asked for as well."""


def environment_of(request: Request) -> dict[str, str]:
    """The asking session's variables, with absolute places; nothing of the daemon's own."""
    env = dict(request.env)
    env["HOME"] = str(home_folder(env))
    for name in PLACES:
        place = env.get(name, "")
        if place and not place.startswith(("/", "~")):
            if request.cwd.startswith("/"):
                env[name] = os.path.normpath(os.path.join(request.cwd, place))
            else:
                del env[name]
    return env


def with_judge_secrets(env: Mapping[str, str], provider: str, request: Request, call: Call) -> dict[str, str]:
    """``env`` with what ``provider`` needs of the secrets that the client lends; rules need none."""
    wanted = KEYS.get(provider)
    if wanted is None:
        return dict(env)
    names = {name for name in request.lends if name in wanted or name.upper().endswith("_PROXY")}
    return {**env, **call.borrow(names)}


def plugin_options(env: Mapping[str, str]) -> dict[str, str]:
    """The plugin's options as Claude Code gives them to a command hook: variables, all text."""
    return {key.removeprefix(OPTION).lower(): value for key, value in env.items() if key.startswith(OPTION)}
