"""Values that a transcript may hold but that cannot be written as JSON again: refused with their place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import orjson

from lcc.transcript.document import json_path, refuse
from lcc.transcript.model import Message, Transcript
from lcc.transcript.values import Json, Path, TranscriptError

MAX_DEPTH = 250
"""How deep a call's input may be nested."""
_TOO_DEEP = f"nested deeper than {MAX_DEPTH}"


def checked(transcript: Transcript, *, strict: bool = False) -> Transcript:
    """The transcript, where no call's input is nested too deep to be handled.

    One that is counts as null in a session file, with a warning; with ``strict``, and in one document, it is a
    TranscriptError.
    """
    uses = [use for message in (*transcript.messages, *transcript.aside) for use in message.tool_uses]
    if _writable([use.input for use in uses]):
        return transcript
    warnings: list[str] = []
    deep: set[Path] = set()
    for use in uses:
        if not _writable([use.input]):
            path = (*use.path, "input")
            if not transcript.documents:
                refuse(_TOO_DEEP, path)
            start = transcript.documents[int(path[0])][0]
            line = (transcript.raw or b"").count(b"\n", 0, start) + 1
            error = TranscriptError(_TOO_DEEP, f"line {line}, {json_path(path[1:])}")
            if strict:
                raise error
            warnings.append(f"{error}; this input is not read")
            deep.add(use.path)

    def shallow(messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple(
            m._replace(tool_uses=tuple(u._replace(input=None) if u.path in deep else u for u in m.tool_uses))
            for m in messages
        )

    return replace(
        transcript,
        messages=shallow(transcript.messages),
        aside=shallow(transcript.aside),
        warnings=(*transcript.warnings, *warnings),
        damaged=transcript.damaged + len(warnings),
    )


def check_objects(messages: Sequence[Message], above: Path) -> None:
    """The same for messages that came as Python objects, which can also hold NaN, integers beyond 64 bits,
    lone surrogates and values that are not JSON. ``above`` is the path of their array."""
    for index, message in enumerate(messages):
        for use in message.tool_uses:
            problem = _problem(use.input)
            if problem:
                refuse(problem, (*use.path, "input"))
            if not _writable([use.id, use.tool]):
                refuse("a lone surrogate, which UTF-8 cannot hold", use.path)
        for result in message.tool_results:
            if not _writable([result.tool_use_id, result.text]):
                refuse("a lone surrogate, which UTF-8 cannot hold", result.text_path or result.path)
        if not _writable(message.text):
            refuse("a lone surrogate, which UTF-8 cannot hold", (*above, index, "text"))


def _writable(value: object) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def _problem(value: Json) -> str:
    """Why a Python value is no JSON value; empty when it is one."""
    try:
        orjson.dumps([value])
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return _TOO_DEEP if "ecursion" in str(error) else f"no JSON value: {error}"
    return ""
