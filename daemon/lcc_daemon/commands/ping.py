"""`ping`: whether the daemon's workers answer."""

from __future__ import annotations

from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services


def answer(request: Request, call: Call, services: Services) -> Answer:
    return Answer(b"pong")
