"""Reading a report that may come from anywhere: the one way from its bytes to the typed value."""

from __future__ import annotations

import orjson

from lcc.contract.checked import ShapeError, checked, kind_of
from lcc.contract.report import SCHEMA_VERSION, Report


class ReportError(ValueError):
    """What is not a report of a pass. ``place`` is the JSON path, or line and column; "" for all of it."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place


def read_report(raw: bytes) -> Report:
    """The report that ``raw`` (JSON) holds. Raises ``ReportError`` with the place for anything else."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ReportError(f"not JSON: {error.msg}", f"line {error.lineno}, column {error.colno}") from None
    if not isinstance(value, dict):
        raise ReportError(f"a report is a JSON object, and this is {kind_of(value)}")
    version = value.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ReportError(f"expected {SCHEMA_VERSION}, found {_shown(version)}", "schema_version")
    try:
        return checked(value, Report)
    except ShapeError as error:
        raise ReportError(error.problem, error.place) from None


def _shown(version: object) -> str:
    if not isinstance(version, str):
        return kind_of(version)
    return repr(version[:80]) if not version.isprintable() or len(version) > 80 else version
