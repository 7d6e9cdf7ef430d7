"""`recall`: what the client's own tool is answered: a part of an output from the stash.

The body: ``{"session_id": …, "asked": the tool's input}``. The answer: ``{"v": 1, "result": blocks of the Messages
API}``; what cannot be given is a text that says what to ask for instead.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import orjson

from lcc.log.lines import LogError
from lcc.log.recalls import Recall, note_recall, recalls_path
from lcc.recovery.asked import Asked, Given, give, read_asked, takes_long
from lcc.recovery.recall import GREP_SECONDS, RecallError
from lcc.stash import Stash, StashError, StashFolderError, stash_folder
from lcc.transcript import Json
from lcc_daemon.commands.hook_input import HOOK_INPUT_LIMIT
from lcc_daemon.environment import environment_of
from lcc_daemon.plan import VERSION
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services

EMPTY = "[the output is empty]"
SEARCH_MS = int(GREP_SECONDS * 1000) + 1000


def answer(request: Request, call: Call, services: Services) -> Answer:
    """The part that the tool asks for, and a line in the record of recalls."""
    return answer_alone(request, call.more_time)


def answer_alone(request: Request, more_time: Callable[[int], None] = lambda milliseconds: None) -> Answer:
    """The same without a daemon. ``more_time`` is asked where the answer takes seconds."""
    env = environment_of(request)
    try:
        session, asked = _read(request)
        if takes_long(asked):
            more_time(SEARCH_MS)
        given = give(Stash(stash_folder(env)), asked)
    except (RecallError, StashError, StashFolderError) as error:
        return _result(f"lcc: {error}")
    try:
        recall = Recall(session, given.sha256[:12], given.given_bytes, given.of_bytes, "tool")
        note_recall(recall, recalls_path(env))
    except LogError:
        pass  # a full disk must not keep the agent from what it asked for
    return _result(_blocks(given))


def _read(request: Request) -> tuple[str, Asked]:
    try:
        body: Json = orjson.loads(request.body) if len(request.body) <= HOOK_INPUT_LIMIT else None
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise RecallError("the request cannot be read")
    session = body.get("session_id")
    return session if isinstance(session, str) else "", read_asked(body.get("asked"))


def _blocks(given: Given) -> list[Json]:
    if given.image:
        source: Json = {
            "type": "base64",
            "media_type": f"image/{given.image_type}",
            "data": base64.b64encode(given.image).decode(),
        }
        return [{"type": "image", "source": source}]
    # A lone surrogate cannot be sent as JSON; lcc recall --raw gives it exactly.
    texts = [given.text.encode("utf-8", "replace").decode(), given.about]
    return [{"type": "text", "text": text} for text in texts if text] or [{"type": "text", "text": EMPTY}]


def _result(result: Json) -> Answer:
    return Answer(orjson.dumps({"v": VERSION, "result": result}))
