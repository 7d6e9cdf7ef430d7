"""A pass's edits, made on the messages. The caller's own objects are never changed: copy on write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import orjson

from lcc.transcript.collector import without_collector
from lcc.transcript.model import Edits, Format, Message, ToolUse, Transcript, part_id
from lcc.transcript.splice import REMOVE
from lcc.transcript.values import Json, Path


def apply_edits(transcript: Transcript, edits: Edits) -> tuple[Message, ...]:
    """The compacted messages, in order.

    A message without an edit is the same object. One that loses all of its content is left out (thinking
    alone is no content: the API refuses a message that ends in it). Paths in the changed messages are
    still those of the transcript. Raises KeyError for the new text of a result that has none of that id.
    """
    if not edits:
        return transcript.messages
    with without_collector():
        changed = [
            apply_to_message(message, edits, transcript.format) if touches(message, edits) else message
            for message in transcript.messages
        ]
    return tuple([message for message in changed if message is not None])


def touches(message: Message, edits: Edits) -> bool:
    """Whether any edit changes this message."""
    for result in message.tool_results:
        if result.tool_use_id in edits.texts or result.tool_use_id in edits.dropped:
            return True
        if result.parts and any(part_id(result.tool_use_id, part.number) in edits.texts for part in result.parts):
            return True
    if not edits.dropped and not edits.inputs:
        return False
    return any(use.id in edits.dropped or use.id in edits.inputs for use in message.tool_uses)


def changed_calls(transcript: Transcript, edits: Edits) -> frozenset[str]:
    """The ids of the calls of which the edits change a result, or that they take away."""
    results = (result for message in transcript.messages if touches(message, edits) for result in message.tool_results)
    return edits.dropped.union(result.tool_use_id for result in results if result.new_texts(edits.texts))


def apply_to_message(message: Message, edits: Edits, form: Format) -> Message | None:
    """One message with the edits made; None when nothing of it is left."""
    uses = tuple(_with_input(use, edits) for use in message.tool_uses if use.id not in edits.dropped)
    results = tuple(
        result.with_texts(edits.texts) for result in message.tool_results if result.tool_use_id not in edits.dropped
    )
    if not (message.text or uses or results or message.more):
        return None
    return message._replace(tool_uses=uses, tool_results=results, source=form.edited_source(message, edits))


def removed_blocks(message: Message, edits: Edits) -> list[Path]:
    """The paths of the calls and results that the edits take away."""
    return [use.path for use in message.tool_uses if use.id in edits.dropped] + [
        result.path for result in message.tool_results if result.tool_use_id in edits.dropped
    ]


def block_edits(
    message: Message, edits: Edits, form: Format, ascii_only: bool
) -> Iterator[tuple[Path, bytes | object]]:
    """The splices of one message: paths with ``REMOVE``, or with a new text as a JSON string.

    Raises KeyError for the new text of a result that is not exactly one text, and for a string in an input that
    the format cannot replace.
    """
    for path in removed_blocks(message, edits):
        yield path, REMOVE
    for result in message.tool_results:
        if result.tool_use_id not in edits.dropped:
            for path, text in result.new_texts(edits.texts):
                yield path, encode_value(text, ascii_only)
    for use in message.tool_uses if edits.inputs else ():
        strings = edits.inputs.get(use.id)
        if strings is None or use.id in edits.dropped:
            continue
        above = form.input_path(use)
        if above is None:
            raise KeyError(f"the input of {use.id} cannot be changed in {form.what}")
        for path, text in strings.items():
            yield (*above, *path), encode_value(text, ascii_only)


def encode_value(value: Json, ascii_only: bool) -> bytes:
    """A value as JSON.stringify writes it, or with every non-ASCII character escaped."""
    if ascii_only:
        return json.dumps(value, separators=(",", ":")).encode()
    return b"%b" % orjson.dumps(value)  # a copy: what orjson returns keeps a buffer of some kilobytes alive


def input_with(value: Json, strings: Mapping[Path, str]) -> Json:
    """An input with the strings at the paths replaced, copied where it changes. Raises KeyError for a wrong path."""
    for path, text in strings.items():
        value = _with_string(value, path, text)
    return value


def _with_string(value: Json, path: Path, text: str) -> Json:
    if not path:
        if not isinstance(value, str):
            raise KeyError("there is no string at the path")
        return text
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str):
        return {**value, step: _with_string(value[step], rest, text)}
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], _with_string(value[step], rest, text), *value[step + 1 :]]
    raise KeyError("there is no string at the path")


def _with_input(use: ToolUse, edits: Edits) -> ToolUse:
    strings = edits.inputs.get(use.id) if edits.inputs else None
    return use if strings is None else use._replace(input=input_with(use.input, strings))


def messages_to_payload(messages: Sequence[Message]) -> list[dict[str, Json]]:
    """The seed's message list (its section 1).

    A message that came as an object is that object. Any other is written in camelCase: ``role``, ``text``,
    ``toolUses`` of ``tool_use_id``, ``tool``, ``input``; ``toolResults`` of ``tool_use_id``, ``text`` and, where
    the host said so, ``isError``.
    """
    return [message.source if message.source is not None else _canonical(message) for message in messages]


def _canonical(message: Message) -> dict[str, Json]:
    payload: dict[str, Json] = {"role": message.role, "text": message.text}
    if message.tool_uses:
        payload["toolUses"] = [
            {"tool_use_id": use.id, "tool": use.tool, "input": use.input} for use in message.tool_uses
        ]
    if message.tool_results:
        results: list[Json] = []
        for result in message.tool_results:
            item: dict[str, Json] = {"tool_use_id": result.tool_use_id, "text": result.text}
            if result.is_error is not None:
                item["isError"] = result.is_error
            results.append(item)
        payload["toolResults"] = results
    return payload
