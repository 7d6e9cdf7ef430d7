"""Messages API requests: messages whose content is a string or a list of blocks.

As strict as the payload. Blocks that are neither text, thinking, a client's tool call nor its result
(images, documents, server tools) are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lcc.transcript.document import kind, refuse
from lcc.transcript.edit import input_with, removed_blocks
from lcc.transcript.formats.one_document import OneDocument, message_path
from lcc.transcript.formats.payload import MESSAGE_KEYS, CallIds, error_flag, message_role
from lcc.transcript.model import Edits, Message, TextPart, ToolResult, ToolUse, Transcript
from lcc.transcript.splice import REMOVE
from lcc.transcript.values import Json, Path

THINKING: Final = ("thinking", "redacted_thinking")


class Content(NamedTuple):
    """What one message's content holds. ``more`` as in ``Message``."""

    text: str
    uses: list[ToolUse]
    results: list[ToolResult]
    more: bool


class MessagesApi(OneDocument):
    """A request to the Messages API, or its messages alone."""

    name = "messages-api"
    what = "a Messages API request"

    def has_shape(self, messages: list[Json]) -> bool:
        """Whether the first message that shows its shape has ``content``."""
        for message in messages:
            if isinstance(message, dict):
                if not MESSAGE_KEYS.isdisjoint(message):
                    return False
                if "content" in message:
                    return True
        return False

    def parse_messages(self, messages: list[Json], above: Path) -> tuple[Message, ...]:
        ids = CallIds()
        return tuple([_message(message, (*above, index), index, ids) for index, message in enumerate(messages)])

    def edited_source(self, message: Message, edits: Edits) -> dict[str, Json]:
        """With its blocks changed or left out."""
        source = dict(message.source or {})
        content = source.get("content")
        if not isinstance(content, list):
            return source
        blocks: list[Json] = list(content)
        for result in message.tool_results:
            index = int(result.path[-1])
            block = blocks[index]
            for path, text in result.new_texts(edits.texts):
                if isinstance(block, dict):
                    inner = path[len(result.path) :]
                    block = {**block, "content": _new_content(block.get("content"), inner, text)}
            blocks[index] = block
        for use in message.tool_uses if edits.inputs else ():
            index = int(use.path[-1])
            block = blocks[index]
            if isinstance(block, dict) and use.id in edits.inputs:
                blocks[index] = {**block, "input": input_with(use.input, edits.inputs[use.id])}
        gone = [int(path[-1]) for path in removed_blocks(message, edits)]
        gone += ending_thinking(content, gone)
        source["content"] = [block for i, block in enumerate(blocks) if i not in gone]
        return source

    def more_edits(self, message: Message, edits: Edits) -> Iterator[tuple[Path, object]]:
        content = message.source.get("content") if message.source is not None else None
        if edits.dropped and isinstance(content, list):
            gone = [int(path[-1]) for path in removed_blocks(message, edits)]
            for index in ending_thinking(content, gone):
                yield (*message_path(message), "content", index), REMOVE

    def parts(
        self, transcript: Transcript, message: Message, result: ToolResult
    ) -> Iterator[tuple[Path, dict[str, Json]]]:
        blocks = (message.source or {}).get("content")
        index = result.path[-1]
        block = blocks[index] if isinstance(blocks, list) and isinstance(index, int) else None
        content = block.get("content") if isinstance(block, dict) else None
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict):
                yield (*result.path, "content", number), part

    def image_data(self, part: Mapping[str, Json]) -> str | None:
        return image_data(part)

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        return image_part(media_type, data)

    def text_part(self, text: str) -> dict[str, Json]:
        return text_part(text)


MESSAGES_API: Final = MessagesApi()
FORMAT: Final = MESSAGES_API


def _message(message: Json, path: Path, index: int, ids: CallIds) -> Message:
    if not isinstance(message, dict):
        refuse(f"a message must be an object, not {kind(message)}", path)
    role = message_role(message, path)
    if message.get("content") is None:
        refuse(f"must be a string or an array, is {'null' if 'content' in message else 'absent'}", (*path, "content"))
    content = read_content(message["content"], (*path, "content"), None)
    for use in content.uses:
        ids.call(use.id, use.path)
    for result in content.results:
        ids.answer(result.tool_use_id, result.path)
    return Message(role, content.text, tuple(content.uses), tuple(content.results), message, (index,), content.more)


def image_data(part: Mapping[str, Json]) -> str | None:
    """The base64 text of an image or document block; None for any other block."""
    source = part.get("source")
    data = source.get("data") if isinstance(source, dict) and part.get("type") in ("image", "document") else None
    return data if isinstance(data, str) else None


def image_part(media_type: str, data: str) -> dict[str, Json]:
    """An image block, or for a PDF a document block, its members in the order in which clients write them."""
    kind = "document" if media_type == "application/pdf" else "image"
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def text_part(text: str) -> dict[str, Json]:
    """A text block."""
    return {"type": "text", "text": text}


def read_content(content: Json, path: Path, cwd: str | None) -> Content:
    """A message's content: a string, a list of blocks, or null (nothing). Raises TranscriptError."""
    if isinstance(content, str):
        return Content(content, [], [], False)
    if content is None:
        return Content("", [], [], False)
    if not isinstance(content, list):
        refuse(f"must be a string or an array, not {kind(content)}", path)
    texts: list[str] = []
    uses: list[ToolUse] = []
    results: list[ToolResult] = []
    more = False
    for index, block in enumerate(content):
        if not isinstance(block, dict):
            refuse(f"a content block must be an object, not {kind(block)}", (*path, index))
        block_type = block.get("type")
        if block_type == "text":
            text = block.get("text")
            if not isinstance(text, str):
                refuse(f"must be a string, is {kind(text)}", (*path, index, "text"))
            texts.append(text)
        elif block_type == "tool_use":
            uses.append(_use(block, (*path, index), cwd))
        elif block_type == "tool_result":
            results.append(_result(block, (*path, index)))
        elif not isinstance(block_type, str):
            refuse(f"must be a string, is {kind(block_type)}", (*path, index, "type"))
        elif block_type not in THINKING:
            more = True
    return Content("\n".join(texts), uses, results, more)


def _use(block: dict[str, Json], path: Path, cwd: str | None) -> ToolUse:
    use_id, name = block.get("id"), block.get("name")
    if not isinstance(use_id, str) or not use_id:
        refuse(f"must be a call id (a string, not empty), is {kind(use_id)}", (*path, "id"))
    if not isinstance(name, str) or not name:
        refuse(f"must be the tool's name (a string, not empty), is {kind(name)}", (*path, "name"))
    arguments = block.get("input", {})
    if not isinstance(arguments, dict | str) and arguments is not None:
        refuse(f"must be an object, not {kind(arguments)}", (*path, "input"))
    return ToolUse(use_id, name, arguments, cwd, path)


def _result(block: dict[str, Json], path: Path) -> ToolResult:
    use_id = block.get("tool_use_id")
    if not isinstance(use_id, str) or not use_id:
        refuse(f"must be a call id (a string, not empty), is {kind(use_id)}", (*path, "tool_use_id"))
    text, text_path, parts = result_text(block.get("content"), (*path, "content"), "text")
    return ToolResult(use_id, text, error_flag(block, path), path, text_path, parts)


def result_text(content: Json, path: Path, text_type: str) -> tuple[str, Path | None, tuple[TextPart, ...]]:
    """A result's text, where it stands if it is exactly one, else its text parts (of type ``text_type``)."""
    if isinstance(content, str):
        return content, path, ()
    if content is None:
        return "", None, ()
    if not isinstance(content, list):
        refuse(f"must be a string or an array, not {kind(content)}", path)
    texts: list[TextPart] = []
    for index, part in enumerate(content):
        if not isinstance(part, dict):
            refuse(f"a content part must be an object, not {kind(part)}", (*path, index))
        if part.get("type") == text_type:
            text = part.get("text")
            if not isinstance(text, str):
                refuse(f"must be a string, is {kind(text)}", (*path, index, "text"))
            texts.append(TextPart(index + 1, text, (*path, index, "text")))
    if len(texts) == 1 and len(content) == 1:
        return texts[0].text, texts[0].path, ()
    return "\n".join(part.text for part in texts), None, tuple(texts)


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


def _new_content(content: Json, inner: Path, text: str) -> Json:
    """A result's content with the text at ``inner`` (a path from its block) replaced."""
    if len(inner) == 1 or not isinstance(content, list):
        return text
    return [
        {**part, "text": text} if number == inner[1] and isinstance(part, dict) else part
        for number, part in enumerate(content)
    ]
