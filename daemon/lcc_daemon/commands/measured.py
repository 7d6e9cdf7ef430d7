"""`measured`: what a replacement did to the context, by the client's own figures, goes into its report.

The body: ``{"report": the path that the plan named, "tokens": …, "window": …}``. Nothing is answered.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import orjson

from lcc.config import reports_folder, state_folder
from lcc.contract.checked import Count, ShapeError, checked
from lcc.contract.report import measured
from lcc_daemon.commands.hook_input import HOOK_INPUT_LIMIT
from lcc_daemon.environment import environment_of
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services


class Measure(TypedDict):
    """The body."""

    report: str
    tokens: Count
    window: Count


def answer(request: Request, call: Call, services: Services) -> Answer:
    """Nothing; the report is written while nobody waits."""
    try:
        body = checked(orjson.loads(request.body) if len(request.body) <= HOOK_INPUT_LIMIT else None, Measure)
    except (orjson.JSONDecodeError, ShapeError):
        return Answer()
    if body["window"]:
        place = reports_folder(state_folder(environment_of(request))) / Path(body["report"]).name
        services.keepers.note_measure(place, measured(body["tokens"], body["window"]))
    return Answer()
