"""What Claude Code tells a command hook on stdin."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from lcc_daemon.protocol import Request

HOOK_INPUT_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HookInput:
    """The fields that we use; empty where they are missing or no text."""

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    agent_id: str = ""
    """Set where the hook is a sub-agent's."""
    source: str = ""
    custom_instructions: str = ""
    command_name: str = ""
    """Of a slash command, with the plugin's name and a colon in front; and what was typed behind it."""
    command_args: str = ""


def read_hook_input(request: Request) -> HookInput:
    """The hook's fields from the request's JSON; all empty for what is no JSON object, or too large to be one."""
    if len(request.body) > HOOK_INPUT_LIMIT:
        return HookInput()
    try:
        value = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return HookInput()
    if not isinstance(value, dict):
        return HookInput()
    found = {key: value[key] for key in HookInput.__slots__ if isinstance(value.get(key), str)}
    return HookInput(**found)
