"""The seed's payload (its section 1): a messages array, or an object that holds one, in both spellings.

Strict: a decision over a half-read transcript is not auditable, so what cannot be read for certain is
refused with its JSON path.
"""

from __future__ import annotations

from typing import Final

from lcc.transcript.document import kind, refuse
from lcc.transcript.edit import input_with
from lcc.transcript.formats.one_document import OneDocument
from lcc.transcript.model import Edits, Message, Role, ToolResult, ToolUse
from lcc.transcript.values import Json, Path

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
}
USE_KEYS = ("toolUses", "tool_calls", "tool_uses", "toolCalls")
RESULT_KEYS = ("toolResults", "tool_results")
_PARTS = {"text": "text", **dict.fromkeys(USE_KEYS, "uses"), **dict.fromkeys(RESULT_KEYS, "results")}
MESSAGE_KEYS = frozenset(_PARTS)
_ID_KEYS = ("tool_use_id", "id", "toolUseId")


class CallIds:
    """What the one-document formats demand of ids: each call once, each result once and after its call."""

    __slots__ = ("answered", "called")

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.answered: set[str] = set()

    def call(self, use_id: str, path: Path) -> None:
        """Note a call. Raises TranscriptError when the id was called before."""
        if use_id in self.called:
            refuse(f"duplicate call id {use_id!r}", path)
        self.called.add(use_id)

    def answer(self, use_id: str, path: Path) -> None:
        """Note a result. Raises TranscriptError when its call has not come, or has its result already."""
        if use_id not in self.called:
            refuse(f"a result without an earlier call of id {use_id!r}", path)
        if use_id in self.answered:
            refuse(f"duplicate result for call id {use_id!r}", path)
        self.answered.add(use_id)


class Payload(OneDocument):
    """The seed's payload, which every document is that shows no other format's shape."""

    name = "payload"
    what = "a messages array or an object with messages"

    def has_shape(self, messages: list[Json]) -> bool:
        return True

    def parse_messages(self, messages: list[Json], above: Path) -> tuple[Message, ...]:
        ids = CallIds()
        parsed: list[Message] = []
        for index, message in enumerate(messages):
            if not isinstance(message, dict):
                refuse(f"a message must be an object, not {kind(message)}", (*above, index))
            parsed.append(_message(message, (*above, index), index, ids))
        return tuple(parsed)

    def edited_source(self, message: Message, edits: Edits) -> dict[str, Json]:
        """With its spelling and its unknown fields."""
        source = dict(message.source or {})
        if message.tool_uses and (edits.dropped or edits.inputs):
            key = str(message.tool_uses[0].path[-2])
            uses = source[key]
            if isinstance(uses, list):
                source[key] = [
                    {**item, "input": input_with(use.input, edits.inputs[use.id])}
                    if use.id in edits.inputs and isinstance(item, dict)
                    else item
                    for item, use in zip(uses, message.tool_uses, strict=True)
                    if use.id not in edits.dropped
                ]
        if message.tool_results:
            key = str(message.tool_results[0].path[-2])
            items = source[key]
            if isinstance(items, list):
                source[key] = [
                    {**item, "text": edits.texts[r.tool_use_id]}
                    if r.tool_use_id in edits.texts and isinstance(item, dict)
                    else item
                    for item, r in zip(items, message.tool_results, strict=True)
                    if r.tool_use_id not in edits.dropped
                ]
        return source


PAYLOAD: Final = Payload()
FORMAT: Final = PAYLOAD


def _message(message: dict[str, Json], path: Path, index: int, ids: CallIds) -> Message:
    role = message_role(message, path)
    text = ""
    uses: tuple[ToolUse, ...] = ()
    results: tuple[ToolResult, ...] = ()
    found: dict[str, str] = {}
    items: list[Json] = []
    for key in message:
        part = _PARTS.get(key)
        if part is None:
            continue
        if part in found:
            refuse(f"the message has both {found[part]} and {key}", (*path, key))
        found[part] = key
        value = message[key]
        if part == "text":
            if not isinstance(value, str):
                refuse(f"must be a string, not {kind(value)}", (*path, "text"))
            text = value
            continue
        if not isinstance(value, list):
            refuse(f"must be an array, not {kind(value)}", (*path, key))
        if part == "uses":
            uses = tuple([_use(item, (*path, key, i), ids) for i, item in enumerate(value)])
        else:
            items = value
    if items:
        key = found["results"]
        results = tuple([_result(item, (*path, key, i), ids) for i, item in enumerate(items)])
    if not found:
        refuse("a message needs text, toolUses or toolResults", path)
    return Message(role, text, uses, results, message, (index,))


def message_role(message: dict[str, Json], path: Path) -> Role:
    """The message's role. Raises TranscriptError for one that is not known."""
    written = message.get("role")
    role = ROLES.get(written) if isinstance(written, str) else None
    if role is None:
        found = repr(written) if isinstance(written, str) else kind(written) if "role" in message else "absent"
        refuse(f"must be one of {', '.join(ROLES)}, is {found}", (*path, "role"))
    return role


def _call_id(item: dict[str, Json], path: Path) -> str:
    key = next((key for key in _ID_KEYS if key in item), None)
    if key is None:
        refuse("no call id (tool_use_id or id)", path)
    found = item[key]
    if not isinstance(found, str) or not found:
        refuse(f"must be a call id (a string, not empty), is {kind(found)}", (*path, key))
    return found


def _use(item: Json, path: Path, ids: CallIds) -> ToolUse:
    if not isinstance(item, dict):
        refuse(f"a call must be an object, not {kind(item)}", path)
    use_id = _call_id(item, path)
    ids.call(use_id, path)
    key = "tool" if "tool" in item else "name"
    tool = item.get(key)
    if not isinstance(tool, str) or not tool:
        found = kind(tool) if key in item else "absent"
        refuse(f"must be the tool's name (a string, not empty), is {found}", (*path, "tool"))
    arguments = item.get("input", {})
    if not isinstance(arguments, dict | str) and arguments is not None:
        refuse(f"must be an object or free text, not {kind(arguments)}", (*path, "input"))
    cwd = item.get("cwd")
    return ToolUse(use_id, tool, arguments, cwd if isinstance(cwd, str) else None, path)


def _result(item: Json, path: Path, ids: CallIds) -> ToolResult:
    if not isinstance(item, dict):
        refuse(f"a result must be an object, not {kind(item)}", path)
    use_id = _call_id(item, path)
    ids.answer(use_id, path)
    text = item.get("text")
    text_path = (*path, "text")
    if not isinstance(text, str):
        refuse(f"must be a string, is {kind(text) if 'text' in item else 'absent'}", text_path)
    return ToolResult(use_id, text, error_flag(item, path), path, text_path)


def error_flag(item: dict[str, Json], path: Path) -> bool | None:
    """``is_error`` or ``isError``; None where the host did not say. Raises TranscriptError for no boolean."""
    said: bool | None = None
    for key in ("is_error", "isError"):
        flag = item.get(key)
        if flag is None:
            continue
        if not isinstance(flag, bool):
            refuse(f"must be a boolean, not {kind(flag)}", (*path, key))
        if said is not None and said is not flag:
            refuse("is_error and isError contradict each other", (*path, key))
        said = flag
    return said
