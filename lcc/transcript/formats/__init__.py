"""The formats of transcripts, a module or a folder each: what ``lcc.transcript.model.Format`` asks of them.

This is the one place that lists them. Everything else asks a transcript's own ``format``, or this table.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from lcc.transcript.model import Format

# The module that holds each one as FORMAT, in the order of being asked: the first that recognises an input reads it.
_MODULES: Final = (
    "messages_api",
    "payload",
    "codex",
    "claude",
)


def _format(module: str) -> Format:
    found: Format = import_module(f"{__name__}.{module}").FORMAT
    return found


FORMATS: Final[dict[str, Format]] = {form.name: form for form in map(_format, _MODULES)}
"""By name."""
