"""What the model sees: a request's messages as a flat list that two requests can be compared by."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from client.messages_api import Body, blocks_of, result_text


class Item(NamedTuple):
    """One block. ``key`` is the call id of a call or a result; ``flag`` is set for an error result."""

    kind: str
    key: str
    text: str
    flag: bool = False


COMMAND_ROWS = ("<local-command-", "<command-name>/compact")


def conversation(body: Body) -> list[Item]:
    """Every block in order, without what the client adds around a conversation (reminders, /compact's own rows)."""
    items = []
    for message in body["messages"]:
        if message["role"] == "system":
            continue
        for block in blocks_of(message):
            item = _item(message["role"], block)
            if item.kind != "user" or not item.text.startswith(("<system-reminder>", *COMMAND_ROWS)):
                items.append(item)
    return items


def _item(role: str, block: dict[str, Any]) -> Item:
    kind = block["type"]
    if kind == "text":
        return Item(role, "", block["text"].strip())
    if kind == "tool_use":
        return Item("call", block["id"], json.dumps([block["name"], block["input"]], sort_keys=True))
    if kind == "tool_result":
        return Item("result", block["tool_use_id"], result_text(block), block.get("is_error") is True)
    return Item(kind, "", json.dumps(block.get("source", "")))


def texts(items: list[Item], role: str) -> list[str]:
    """The texts of one role, in order."""
    return [item.text for item in items if item.kind == role]


def results(items: list[Item]) -> dict[str, Item]:
    """The results by call id."""
    return {item.key: item for item in items if item.kind == "result"}


def calls(items: list[Item]) -> list[Item]:
    """The calls in order."""
    return [item for item in items if item.kind == "call"]
