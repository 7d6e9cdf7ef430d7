"""`session-end`: the session is not followed any more."""

from __future__ import annotations

from lcc_daemon.commands.hook_input import read_hook_input
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services


def answer(request: Request, call: Call, services: Services) -> Answer:
    hook = read_hook_input(request)
    services.sessions.unfollow(hook.session_id)
    services.log.info("a session ended")
    return Answer()
