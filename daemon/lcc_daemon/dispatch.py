"""Which function serves which command, and what is around each call. Runs in worker threads; knows no sockets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from lcc.config import ConfigError, load_config, state_folder
from lcc_daemon.commands import (
    allow_recall,
    between_turns,
    compact,
    measured,
    ping,
    pre_compact,
    recall,
    session_end,
    session_start,
    slash,
)
from lcc_daemon.environment import environment_of
from lcc_daemon.logs import failure_of
from lcc_daemon.plan import remove_old_parts
from lcc_daemon.protocol import HOOKS, Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services

CLOSE_SECONDS = 4.0

COMMANDS: Mapping[str, Callable[[Request, Call, Services], Answer]] = {
    "compact": compact.answer,
    "session-start": session_start.answer,
    "pre-compact": pre_compact.answer,
    "session-end": session_end.answer,
    "allow-recall": allow_recall.answer,
    "measured": measured.answer,
    "recall": recall.answer,
    "between-turns": between_turns.answer,
    "slash": slash.answer,
    "ping": ping.answer,
}


def answer_alone(command: str, folder: bytes, body: bytes) -> bytes:
    """What a daemon would answer to ``recall`` or ``allow-recall``, in this process: neither may fail for want of one.

    ``folder`` is the runtime folder.
    """
    request = Request(command, dict(os.environ), body, cwd=os.getcwd())
    if command == "recall":
        return recall.answer_alone(request).body
    return allow_recall.answer_alone(request, folder).body


class Dispatcher:
    """Serves the commands with ``services``."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.is_warm = False

    def handle(self, request: Request, call: Call) -> Answer:
        """One request's answer; the protocol lets only known commands through."""
        services = self._services
        if request.command in HOOKS:
            services.keepers.note_hook(state_folder(environment_of(request)), request.command)
        with services.priority.serving():
            return COMMANDS[request.command](request, call, services)

    def warm_up(self) -> None:
        """Load what the first request would otherwise wait for."""
        try:
            from lcc.tokens import counter

            counter(load_config(self._services.env).model).count("warm")
        except (ConfigError, OSError) as error:
            self._services.log.warning("warming up: %s", failure_of(error))
        self.is_warm = True

    def tidy(self) -> None:
        """What is done now and then: parts of plans that were read long ago."""
        remove_old_parts(self._services.parts_folder)

    def close(self) -> None:
        """Finish what is written in the background, within a limit; drop connections."""
        self._services.background.submit(self._settle)
        if not self._services.background.close(CLOSE_SECONDS):
            self._services.log.warning("left undone: what was to be written in the background")
        self._services.judges.close()

    def _settle(self) -> None:
        left = self._services.saved.settle()
        if left:
            self._services.log.warning("%d bytes saved could not be counted", left)
