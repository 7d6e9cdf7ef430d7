"""Codex rollouts: JSONL of ``{"timestamp", "type", "payload"}``.

What the model is sent are the ``response_item`` lines. Events repeat outputs and are left alone, but for two
that change the conversation: a rollback takes its last turns away, and a compaction replaces what came before.
In rollouts of mid-2025 the items stand in the lines by themselves, behind a first line of ``id`` and ``timestamp``.
Each message line is a message; a run of calls is one assistant message, and a run of results one user message.
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from typing import Final

import orjson

from lcc.transcript.building import MessageBuilder, duplicate_ids, placed_in_line, warnings_of
from lcc.transcript.document import BOM, kind, refuse
from lcc.transcript.formats.many_lines import ManyLines, strings_of
from lcc.transcript.formats.messages_api import result_text
from lcc.transcript.formats.payload import ROLES
from lcc.transcript.lines import UNREAD, split
from lcc.transcript.model import Role, ToolResult, ToolUse, Transcript
from lcc.transcript.source import Source
from lcc.transcript.values import Json, Path, TranscriptError

# Tuples: a value of any type can be looked up in one.
_LINE_TYPES: Final = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
_BARE_ITEMS: Final = ("message", "reasoning", "function_call", "function_call_output", "local_shell_call")
_TEXT_PARTS: Final = ("input_text", "output_text", "text")
_TURN_STARTS: Final = ("task_started", "turn_started")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")


class Codex(ManyLines):
    """A rollout of Codex."""

    name = "codex"
    what = "a Codex rollout"

    def recognises(self, source: Source) -> bool:
        document = source.document if source.is_one_document else source.fields
        if isinstance(document, dict) and {"session", "items"} <= document.keys():
            raise TranscriptError(
                "a rollout of the first Codex, one JSON document, which lcc does not read", source.name
            )
        first = source.fields
        line_type = first.get("type")
        is_bare = line_type in _BARE_ITEMS and ("role" in first or "call_id" in first) and "message" not in first
        return (line_type in _LINE_TYPES and "payload" in first) or is_bare or _is_bare_meta(first)

    def begins(self, source: Source) -> bool:
        return self.recognises(source)

    def read(self, source: Source) -> Transcript:
        rollout = _Rollout()
        offsets: list[tuple[int, int]] = []
        warnings: list[str] = []
        raw = source.raw
        for start, end, line, value, damage in split(raw, len(BOM) if raw.startswith(BOM) else 0, strict=source.strict):
            index = len(offsets)
            offsets.append((start, end))
            if damage is not None:
                warnings.append(damage)
            try:
                rollout.take(value, index, damage is not None)
            except TranscriptError as error:
                misread = placed_in_line(error, index, line)
                if source.strict:
                    raise misread from None
                warnings.append(f"{misread}; {UNREAD}")
        messages = tuple(message.build() for message in rollout.messages)
        return Transcript(
            self,
            messages,
            rollout.cwd,
            rollout.session_id,
            rollout.version,
            frozenset(),
            duplicate_ids(messages),
            raw,
            tuple(offsets),
            warnings_of(warnings),
            len(warnings),
            aside=tuple(message.build() for message in rollout.aside),
        )

    def is_own_line(self, path: Path) -> bool:
        return path[1:] in ((), ("payload",))

    def input_path(self, use: ToolUse) -> Path | None:
        # Arguments of a function call are JSON within a string: a string in them has no place of its own in the file.
        return use.text_path

    def content_path(self, result: ToolResult) -> Path:
        return (*result.path, "output")

    def image_data(self, part: Mapping[str, Json]) -> str | None:
        url = part.get("image_url")
        if part.get("type") != "input_image" or not isinstance(url, str):
            return None
        return url.partition(";base64,")[2] if url.startswith("data:") else None

    def image_part(self, media_type: str, data: str) -> dict[str, Json]:
        return {"type": "input_image", "image_url": f"data:{media_type};base64,{data}"}

    def text_part(self, text: str) -> dict[str, Json]:
        return {"type": "input_text", "text": text}

    def second_copies(self, transcript: Transcript) -> dict[str, list[str]]:
        """Its events repeat outputs."""
        found: dict[str, list[str]] = {}
        raw = transcript.raw or b""
        for start, end in transcript.documents:
            if b'"event_msg"' in raw[start : start + 200]:
                event = orjson.loads(raw[start:end]).get("payload")
                if isinstance(event, dict) and isinstance(event.get("call_id"), str):
                    found.setdefault(event["call_id"], []).extend(strings_of(event))
        return found


CODEX: Final = Codex()
FORMAT: Final = CODEX


class _Rollout:
    """The conversation so far."""

    def __init__(self) -> None:
        self.messages: list[MessageBuilder] = []
        self.aside: list[MessageBuilder] = []
        """What a rollback or a compaction took out of it."""
        self.turns: list[int] = []
        """For each turn, how many messages were there when it started."""
        self.cwd: str | None = None
        self.session_id: str | None = None
        self.version: str | None = None
        self.has_meta = False

    def take(self, value: dict[str, Json], index: int, damaged: bool) -> None:
        """One line. ``damaged``: nothing in it may be replaced."""
        line_type, payload = value.get("type"), value.get("payload")
        if line_type not in _LINE_TYPES:
            if line_type in _BARE_ITEMS and "payload" not in value:
                self._item(value, (index,), damaged)
            elif not index and _is_bare_meta(value):
                self.has_meta = True
                self.session_id = _string(value, "id")
            return
        if not isinstance(payload, dict):
            refuse(f"must be an object, is {kind(payload) if 'payload' in value else 'absent'}", (index, "payload"))
        path: Path = (index, "payload")
        if line_type == "response_item":
            self._item(payload, path, damaged)
        elif line_type == "compacted":
            self._compacted(payload, path, damaged)
        elif line_type == "event_msg":
            self._event(payload)
        elif line_type == "turn_context":
            self.cwd = _string(payload, "cwd") or self.cwd
        elif not self.has_meta:  # another one is of the session that this one was forked from
            self.has_meta = True
            self.cwd = _string(payload, "cwd") or self.cwd
            self.session_id = _string(payload, "id")
            self.version = _string(payload, "cli_version")

    def _event(self, payload: dict[str, Json]) -> None:
        event = payload.get("type")
        if event in _TURN_STARTS:
            self.turns.append(len(self.messages))
        elif event == "thread_rolled_back":
            count = payload.get("num_turns")
            if isinstance(count, int) and count > 0 and self.turns:
                start = self.turns[-min(count, len(self.turns))]
                self.aside += self.messages[start:]
                del self.messages[start:]
                del self.turns[-count:]

    def _compacted(self, payload: dict[str, Json], path: Path, damaged: bool) -> None:
        """What came before is replaced: by the items named, else by the user's own texts and the summary."""
        history = payload.get("replacement_history")
        if isinstance(history, list):
            before, self.messages = self.messages, []
            try:
                for i, item in enumerate(history):
                    if not isinstance(item, dict):
                        refuse(f"must be an object, is {kind(item)}", (*path, "replacement_history", i))
                    self._item(item, (*path, "replacement_history", i), damaged)
            except TranscriptError:
                self.messages = before
                raise
            self.aside += before
            self.turns = []
            return
        self.turns = []
        self.aside += [m for m in self.messages if m.role != "user" or m.results]
        self.messages = [m for m in self.messages if m.role == "user" and not m.results]
        summary = MessageBuilder("user")
        summary.texts.append(_string(payload, "message") or "")
        summary.documents.append(int(path[0]))
        self.messages.append(summary)

    def _item(self, item: dict[str, Json], path: Path, damaged: bool) -> None:
        item_type = item.get("type")
        if item_type == "message":
            self._message(item, path, _role(item, path))
        elif item_type == "agent_message":
            self._message(item, path, "developer")
        elif item_type in _CALLS:
            use = self._call(item, path)
            self._step("assistant", path).uses.append(use)
        elif item_type in _OUTPUTS:
            result = _output(item, path)
            self._step("user", path).results.append(result.untouchable() if damaged else result)
        elif not isinstance(item_type, str):
            refuse(f"must be a string, is {kind(item_type)}", (*path, "type"))

    def _step(self, role: Role, path: Path) -> MessageBuilder:
        """The message that a call or a result joins."""
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != role or not (last.uses or last.results):
            last = MessageBuilder(role)
            self.messages.append(last)
        last.documents.append(int(path[0]))
        return last

    def _message(self, item: dict[str, Json], path: Path, role: Role) -> None:
        message = MessageBuilder(role)
        message.documents.append(int(path[0]))
        content = item.get("content")
        if isinstance(content, str):
            message.texts.append(content)
        elif isinstance(content, list):
            for i, part in enumerate(content):
                if not isinstance(part, dict):
                    refuse(f"must be an object, is {kind(part)}", (*path, "content", i))
                if part.get("type") not in _TEXT_PARTS:
                    message.more = True
                    continue
                text = part.get("text")
                if not isinstance(text, str):
                    refuse(f"must be a string, is {kind(text)}", (*path, "content", i, "text"))
                message.texts.append(text)
        elif content is not None:
            refuse(f"must be a string or an array, is {kind(content)}", (*path, "content"))
        self.messages.append(message)

    def _call(self, item: dict[str, Json], path: Path) -> ToolUse:
        call_id = _required(item, "call_id", path)
        if item["type"] == "local_shell_call":
            return ToolUse(call_id, "local_shell", item.get("action"), self.cwd, path)
        name = _required(item, "name", path)
        namespace = _string(item, "namespace")
        tool = f"{namespace}__{name}" if namespace else name
        if item["type"] == "custom_tool_call":
            text_path = (*path, "input") if isinstance(item.get("input"), str) else None
            return ToolUse(call_id, tool, item.get("input"), self.cwd, path, text_path)
        arguments = _arguments(item.get("arguments"))
        cwd = self.cwd
        if isinstance(arguments, dict) and isinstance(workdir := arguments.get("workdir"), str):
            cwd = os.path.join(cwd, workdir) if cwd else workdir
        return ToolUse(call_id, tool, arguments, cwd, path)


def _role(item: dict[str, Json], path: Path) -> Role:
    written = item.get("role")
    role = ROLES.get(written) if isinstance(written, str) else None
    if role is None:
        refuse(f"must be one of {', '.join(ROLES)}, is {written!r}", (*path, "role"))
    return role


def _is_bare_meta(first: dict[str, Json]) -> bool:
    """Whether it is the first line of a rollout of mid-2025, whose other lines are the items themselves."""
    return "type" not in first and isinstance(first.get("id"), str) and {"timestamp", "instructions"} <= first.keys()


def _arguments(written: Json) -> Json:
    """A function call's arguments are JSON in a string; what cannot be decoded to an object stays as written."""
    if not isinstance(written, str):
        return written
    try:
        arguments: Json = orjson.loads(written)
    except orjson.JSONDecodeError:
        return written
    return arguments if isinstance(arguments, dict) else written


def _output(item: dict[str, Json], path: Path) -> ToolResult:
    """A result: its output is a string, a list of parts, or in older versions an object that holds either."""
    call_id = _required(item, "call_id", path)
    output, output_path = item.get("output"), (*path, "output")
    is_error: bool | None = None
    if isinstance(output, dict):
        success = output.get("success")
        is_error = not success if isinstance(success, bool) else None
        output, output_path = output.get("content"), (*output_path, "content")
    text, text_path, parts = result_text(output, output_path, "input_text")
    return ToolResult(call_id, text, is_error, path, text_path, parts)


def _required(item: dict[str, Json], key: str, path: Path) -> str:
    value = item.get(key)
    if not (value and isinstance(value, str)):
        refuse(f"must be a string, not empty, is {kind(value) if key in item else 'absent'}", (*path, key))
    return value


def _string(item: dict[str, Json], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) else None
