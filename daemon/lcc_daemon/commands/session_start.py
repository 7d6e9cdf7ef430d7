"""`session-start`: follow the session's file; after a built-in summary, give back what the guide kept.

After a replacement that left notes of the stash it says how such a note is followed.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from lcc.config import state_folder
from lcc.private_files import read_or_none, write_private
from lcc_daemon.commands.hook_input import read_hook_input
from lcc_daemon.environment import environment_of
from lcc_daemon.protocol import Answer, Request, failure
from lcc_daemon.server import Call
from lcc_daemon.services import Services
from lcc_daemon.sources import are_others
from lcc_hook.client import SET_UP
from lcc_hook.places import is_ready

PLUGIN_DATA_BYTES = 4096
HOW_TO_RECALL = (
    "[lcc] A result that reads [removed: … · lcc recall ID] comes back with the tool mcp__lcc__recall, where you have "
    "it, else with the Bash command `lcc recall ID`; a part of it with lines or grep (--lines A-B, --grep REGEX)."
)


def answer(request: Request, call: Call, services: Services) -> Answer:
    hook = read_hook_input(request)
    _remember_plugin_data(services.folder, request.env.get("CLAUDE_PLUGIN_DATA", ""), services.log)
    if request.can_recall:
        services.keepers.note_recall(services.folder, hook.session_id)
    if hook.source == "compact" and services.noted.take((hook.session_id, hook.agent_id)):
        return Answer(HOW_TO_RECALL.encode())
    if hook.agent_id:
        return Answer()
    if hook.session_id and hook.transcript_path.startswith("/"):
        services.sessions.follow(hook.session_id, Path(hook.transcript_path))
    if hook.source != "compact":
        services.background.submit(_look_at_sources, request.env.get("CLAUDE_PLUGIN_ROOT", ""), services)
        return failure(SET_UP, "") if _must_be_set_up(request) else Answer()
    state = state_folder(environment_of(request))
    return Answer(services.keepers.take_back(services.keepers.guide_folder(state, hook.session_id)))


def _look_at_sources(plugin: str, services: Services) -> None:
    """A new session gets its own plugin's code: a daemon of other sources goes once it has nothing to serve."""
    if are_others(plugin):
        services.outdated.set()


def _must_be_set_up(request: Request) -> bool:
    """Whether the session's plugin has an environment to make, which its own hook begins: it has PATH and proxies."""
    data = request.env.get("CLAUDE_PLUGIN_DATA", "")
    forbidden = request.env.get("LCC_PYTHON") or request.env.get("LCC_NO_SETUP", "0") != "0"
    return data.startswith("/") and not forbidden and not is_ready(os.fsencode(data))


def _remember_plugin_data(folder: bytes, data: str, log: logging.Logger) -> None:
    """Leave the plugin's data folder for the processes that Claude Code does not tell it."""
    kept, line = folder + b"/plugin-data", os.fsencode(data) + b"\n"
    if data.startswith("/") and read_or_none(kept, PLUGIN_DATA_BYTES) != line:
        try:
            write_private(kept, line, durable=False)
        except OSError as error:
            log.warning("plugin-data: %s", error.strerror)
