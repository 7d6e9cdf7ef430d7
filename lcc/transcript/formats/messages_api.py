"""Messages API requests: messages whose content is a string or a list of blocks.

As strict as the payload. Blocks that are neither text, thinking, a client's tool call nor its result
(images, documents, server tools) are left as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from lcc.transcript.document import kind, refuse
from lcc.transcript.formats.payload import CallIds, error_flag, message_role
from lcc.transcript.model import Json, Message, Path, ToolResult, ToolUse

THINKING = frozenset(("thinking", "redacted_thinking"))


class Content(NamedTuple):
    """What one message's content holds. ``more`` as in ``Message``."""

    text: str
    uses: list[ToolUse]
    results: list[ToolResult]
    more: bool


def parse_messages(messages: list[Json], above: Path) -> tuple[Message, ...]:
    """The messages, one to one. ``above`` is the path of the array. Raises TranscriptError."""
    ids = CallIds()
    parsed: list[Message] = []
    for index, message in enumerate(messages):
        path = (*above, index)
        if not isinstance(message, dict):
            refuse(f"a message must be an object, not {kind(message)}", path)
        role = message_role(message, path)
        if message.get("content") is None:
            refuse(
                f"must be a string or an array, is {'null' if 'content' in message else 'absent'}", (*path, "content")
            )
        content = read_content(message["content"], (*path, "content"), None)
        for use in content.uses:
            ids.call(use.id, use.path)
        for result in content.results:
            ids.answer(result.tool_use_id, result.path)
        parsed.append(
            Message(role, content.text, tuple(content.uses), tuple(content.results), message, (index,), content.more)
        )
    return tuple(parsed)


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
    text, text_path = result_text(block.get("content"), (*path, "content"), "text")
    return ToolResult(use_id, text, error_flag(block, path), path, text_path)


def result_text(content: Json, path: Path, text_type: str) -> tuple[str, Path | None]:
    """A result's text, and where it stands if it is exactly one. ``text_type`` names the text parts."""
    if isinstance(content, str):
        return content, path
    if content is None:
        return "", None
    if not isinstance(content, list):
        refuse(f"must be a string or an array, not {kind(content)}", path)
    texts: list[str] = []
    for index, part in enumerate(content):
        if not isinstance(part, dict):
            refuse(f"a content part must be an object, not {kind(part)}", (*path, index))
        if part.get("type") == text_type:
            text = part.get("text")
            if not isinstance(text, str):
                refuse(f"must be a string, is {kind(text)}", (*path, index, "text"))
            texts.append(text)
    if len(texts) == 1 and len(content) == 1:
        return texts[0], (*path, 0, "text")
    return "\n".join(texts), None
