"""`allow-recall`: a recall by the agent needs no permission, where it is one plain recall and nothing else.

The client asks before a Bash command that holds `lcc recall`, and the module before its own tool. Anything
but one plain command is answered with nothing, and the client's own rules decide. The command writes nothing and
reads the stash.
"""

from __future__ import annotations

import re
from typing import TypeGuard

import orjson

from lcc.config import ConfigError, load_config
from lcc.transcript import Json
from lcc_daemon.commands.hook_input import HOOK_INPUT_LIMIT
from lcc_daemon.environment import environment_of, plugin_options
from lcc_daemon.keepers import Keepers
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services

TOOL = "mcp__lcc__recall"
"""The tool that the plugin's module registers."""
_PLAIN = r"(?!-)[A-Za-z0-9_.:/-]+"
_IN_QUOTES = r"'(?!-)[^'\x00-\x1f\x7f]+'"
_ONE_RECALL = re.compile(
    r"lcc recall(?: (?:[0-9a-f]{12,64}|--raw"
    r"|--lines[ =][0-9]{1,12}(?:-[0-9]{0,12})?|--(?:offset|limit)[ =][0-9]{1,12}"
    rf"|--grep[ =](?:{_PLAIN}|{_IN_QUOTES})))+"
)
"""No operator, redirection, substitution or second line; no -o, which writes a file."""
_HARMLESS = frozenset(("command", "description", "timeout", "run_in_background"))
_ALLOW = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": "lcc recall only reads what lcc removed from this session",
    }
}


def answer(request: Request, call: Call, services: Services) -> Answer:
    """The permission, or nothing."""
    return answer_alone(request, services.folder)


def answer_alone(request: Request, folder: bytes) -> Answer:
    """The same without a daemon. ``folder`` is the runtime folder."""
    env = environment_of(request)
    try:
        asked: Json = orjson.loads(request.body) if len(request.body) <= HOOK_INPUT_LIMIT else None
        if not isinstance(asked, dict):
            return Answer()
        options = asked.get("options")
        config = load_config(env, {**plugin_options(env), **(options if isinstance(options, dict) else {})})
    except (ConfigError, orjson.JSONDecodeError):
        return Answer()
    if not config.enabled or not config.allow_recall:
        return Answer()
    if is_recall_tool(asked) or (is_recall_command(asked) and Keepers.can_recall(folder, asked.get("session_id"))):
        return Answer(orjson.dumps(_ALLOW))
    return Answer()


def is_recall_tool(asked: dict[str, Json]) -> bool:
    """Whether the tool is our own `recall`."""
    return asked.get("tool_name") == TOOL


def is_recall_command(asked: dict[str, Json]) -> bool:
    """Whether it is Bash, with one plain recall and no switch that changes what a command may do."""
    given = asked.get("tool_input")
    return asked.get("tool_name") == "Bash" and _is_plain(given) and is_one_recall(given.get("command"))


def _is_plain(given: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(given, dict) and given.keys() <= _HARMLESS


def is_one_recall(command: Json) -> bool:
    """Whether a shell does nothing for ``command`` but run one `lcc recall` that writes no file."""
    return isinstance(command, str) and _ONE_RECALL.fullmatch(command) is not None
