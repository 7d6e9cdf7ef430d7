"""A pass's edits, made on the messages. The caller's own objects are never changed: copy on write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import orjson

from lcc.transcript.collector import without_collector
from lcc.transcript.formats.messages_api import THINKING
from lcc.transcript.model import Edits, Format, Json, Message, Path, ToolResult, Transcript
from lcc.transcript.splice import REMOVE


def apply_edits(transcript: Transcript, edits: Edits) -> tuple[Message, ...]:
    """The compacted messages, in order.

    A message without an edit is the same object. One that loses all of its content is left out (thinking
    alone is no content: the API refuses a message that ends in it). Paths in the changed messages are
    still those of the transcript. Raises KeyError for the new text of a result that is not exactly one text.
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
    return bool(edits.dropped) and any(use.id in edits.dropped for use in message.tool_uses)


def apply_to_message(message: Message, edits: Edits, form: Format) -> Message | None:
    """One message with the edits made; None when nothing of it is left."""
    uses = tuple(use for use in message.tool_uses if use.id not in edits.dropped)
    results = tuple(
        _with_text(result, edits) for result in message.tool_results if result.tool_use_id not in edits.dropped
    )
    if not (message.text or uses or results or message.more):
        return None
    source = message.source
    if source is not None:
        source = _payload_source(message, edits) if form == "payload" else _api_source(message, edits)
    return message._replace(tool_uses=uses, tool_results=results, source=source)


def removed_blocks(message: Message, edits: Edits) -> list[Path]:
    """The paths of the calls and results that the edits take away."""
    return [use.path for use in message.tool_uses if use.id in edits.dropped] + [
        result.path for result in message.tool_results if result.tool_use_id in edits.dropped
    ]


def block_edits(message: Message, edits: Edits, ascii_only: bool) -> Iterator[tuple[Path, bytes | object]]:
    """The splices of one message: paths with ``REMOVE``, or with a new text as a JSON string."""
    for path in removed_blocks(message, edits):
        yield path, REMOVE
    for result in message.tool_results:
        text = edits.texts.get(result.tool_use_id)
        if text is not None and result.tool_use_id not in edits.dropped:
            yield _text_path(result), encode_string(text, ascii_only)


def encode_string(text: str, ascii_only: bool) -> bytes:
    """A JSON string: as JSON.stringify writes it, or with every non-ASCII character escaped."""
    if ascii_only:
        return json.dumps(text).encode()
    return b"%b" % orjson.dumps(text)  # a copy: what orjson returns keeps a buffer of some kilobytes alive


def _text_path(result: ToolResult) -> Path:
    if result.text_path is None:
        raise KeyError(f"the result of {result.tool_use_id} is not one text and cannot be replaced")
    return result.text_path


def _with_text(result: ToolResult, edits: Edits) -> ToolResult:
    text = edits.texts.get(result.tool_use_id)
    if text is None:
        return result
    _text_path(result)
    return result._replace(text=text)


def _payload_source(message: Message, edits: Edits) -> dict[str, Json]:
    """The payload's own message object, its spelling and unknown fields kept."""
    source = dict(message.source or {})
    if message.tool_uses and edits.dropped:
        key = message.tool_uses[0].path[-2]
        source[str(key)] = _without(source[str(key)], {u.path[-1] for u in message.tool_uses if u.id in edits.dropped})
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


def _without(items: Json, indexes: set[str | int]) -> Json:
    return [item for i, item in enumerate(items) if i not in indexes] if isinstance(items, list) else items


def _api_source(message: Message, edits: Edits) -> dict[str, Json]:
    """The Messages API's own message object with the blocks changed or left out."""
    source = dict(message.source or {})
    content = source.get("content")
    if not isinstance(content, list):
        return source
    blocks: list[Json] = list(content)
    for result in message.tool_results:
        text = edits.texts.get(result.tool_use_id)
        if text is not None:
            index = result.path[-1]
            block = blocks[index] if isinstance(index, int) else None
            if isinstance(block, dict):
                blocks[int(index)] = {**block, "content": _new_content(block.get("content"), text)}
    gone = [int(path[-1]) for path in removed_blocks(message, edits)]
    gone += ending_thinking(content, gone)
    source["content"] = [block for i, block in enumerate(blocks) if i not in gone]
    return source


def ending_thinking(content: Sequence[Json], gone: Sequence[int]) -> list[int]:
    """The thinking blocks that a message would end in, once the blocks ``gone`` are taken away.

    The API refuses such a message, so they go with the call that they led to.
    """
    ending: list[int] = []
    if gone:
        for index in range(len(content) - 1, -1, -1):
            block = content[index]
            if isinstance(block, dict) and block.get("type") in THINKING:
                ending.append(index)
            elif index not in gone:
                break
    return ending


def _new_content(content: Json, text: str) -> Json:
    if isinstance(content, list) and isinstance(content[0], dict):
        return [{**content[0], "text": text}]
    return text


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
