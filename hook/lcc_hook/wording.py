"""How a row or a block that the client sends in a shape of its own is put into words: fields, line by line.

Pure functions. Where no text can show something, OpaqueError says what. Runs on Python 3.8 and up.
"""

from __future__ import annotations

from lcc_hook.inventory import OLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from lcc_hook.live_branch import Json, Row

    Keep: TypeAlias = "Callable[[Row], str]"
    """Keeps the bytes of a base64 source in a file and returns the line that names it."""

OPAQUE_LIMIT = 1000
"""Characters of an encrypted value. A longer one is content, which only the API reads; a short one is a reference."""
UNSAID = ("type", "cache_control", "activeForm")
"""Fields that the client does not send, or that say nothing."""
SPOKEN_OF_ALONE = ("async_hook_response", "diagnostics")
"""Attachments that, as those of hooks, are nothing without their fields."""


class OpaqueError(Exception):
    """Something that no text can show."""


def reminder(text: str) -> str:
    """The text as the client marks what the user did not type."""
    return f"<system-reminder>\n{text}\n</system-reminder>"


def is_reminder(text: str) -> bool:
    return text.startswith("<system-reminder>")


def spell(value: Json, keep: Keep, name: str = "") -> list[str]:
    """A value as lines of text, each leaf under its name. Nothing for what is empty. Raises OpaqueError."""
    if value is None:
        return []
    if isinstance(value, str):
        if not value.strip():
            return []
        if name.rpartition(".")[2].startswith("encrypted") and len(value) > OPAQUE_LIMIT:
            raise OpaqueError(f"{len(value)} characters that the API alone can read")
        return [f"{name}:\n{value}" if "\n" in value else f"{name}: {value}"] if name else [value]
    if isinstance(value, (bool, int, float)):
        return [f"{name}: {str(value).lower()}"]
    if isinstance(value, list):
        return [line for each in value for line in spell(each, keep, name)]
    if is_source(value):
        return [keep(value), *spell({key: value[key] for key in ("uri", "filePath") if key in value}, keep, name)]
    return [
        line
        for key, inner in value.items()
        if key not in UNSAID
        for line in spell(inner, keep, f"{name}.{key}" if name else key)
    ]


def is_source(value: Row) -> bool:
    """Whether this is where bytes stand, in one of the shapes in use."""
    return (
        value.get("type") == "base64"
        or any(isinstance(value.get(key), str) for key in ("base64", "blob"))
        or (isinstance(value.get("data"), str) and isinstance(value.get("mimeType"), str))
    )


def field_at(value: Json, path: str) -> Json:
    """The value at a dotted path, of a list those of its members; None where the way ends."""
    for key in path.split("."):
        if isinstance(value, list):
            value = [each.get(key) for each in value if isinstance(each, dict)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


def words_of_attachment(attachment: Row, keep: Keep) -> str:
    """An attachment of an older client, which did not write down what it sent. Empty where it sent nothing."""
    kind = str(attachment["type"])
    head, *fields = OLDER[kind]
    told = [(path, field_at(attachment, path)) for path in fields]
    is_empty = not any(value for path, value in told if path != "hookName")
    if is_empty and (kind.startswith("hook_") or kind in SPOKEN_OF_ALONE):
        return ""
    lines = [line for path, value in told for line in spell(value, keep, path.rpartition(".")[2])]
    return reminder("\n".join([f"{head}:", *lines] if lines else [f"{head}."]))


def words_of_server_tool(block: Row, keep: Keep) -> str:
    """A call of a tool that the API itself runs, or what that tool answered."""
    kind = str(block["type"])
    if kind.endswith("_use"):
        tool = ".".join(str(block[key]) for key in ("server_name", "name") if block.get(key))
        return "\n".join([f"The assistant used {tool}, which the API runs, with:", *spell(block.get("input"), keep)])
    head = "It answered, with an error:" if block.get("is_error") is True else "It answered:"
    return "\n".join([f"{head} ({kind})", *spell(block.get("content"), keep)])


def words_of_citations(citations: Json, keep: Keep) -> str:
    """What a text of the assistant's rests on."""
    lines = spell(citations, keep)
    return "\n".join(["The answer above rests on:", *lines]) if lines else ""


def words_of_search_result(block: Row, keep: Keep) -> str:
    content = block.get("content")
    shown = {"title": block.get("title"), "source": block.get("source"), "text": _texts(content)}
    return "\n".join(["[search result]", *spell(shown, keep), *spell(block.get("citations"), keep, "citations")])


def words_of_document(block: Row, keep: Keep) -> str:
    """A document whose source is text or blocks of text. Raises OpaqueError for one that the API fetches."""
    source = block.get("source")
    kind = field_at(source, "type")
    if kind == "text":
        text: Json = field_at(source, "data")
    elif kind == "content":
        text = _texts(field_at(source, "content"))
    else:
        raise OpaqueError(f"a document that stands elsewhere ({kind})")
    shown = {"title": block.get("title"), "context": block.get("context"), "text": text}
    return "\n".join(["[document]", *spell(shown, keep)])


def _texts(content: Json) -> str:
    """The texts of a list of text blocks, or a text. Raises OpaqueError for any other block."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else []:
        text = field_at(part, "text")
        if field_at(part, "type") != "text" or not isinstance(text, str):
            raise OpaqueError(f"a part ({field_at(part, 'type')}) of it")
        texts.append(text)
    return "\n".join(texts)
