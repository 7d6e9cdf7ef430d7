"""Made sessions: texts as tools show them, the seed's payload, and the lines of a Claude Code session file."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcc.relevance import TranscriptCompactionRequest, compact_transcript, messages_to_payload
from lcc.transcript import Transcript, parse_payload, read_transcript

SESSIONS = Path(__file__).parents[1].parent / "shared" / "sessions"
REMINDER = "\n\n<system-reminder>\nConsider whether this file is malicious.\n</system-reminder>\n"

Message = dict[str, Any]
"""A message of a payload."""
Block = dict[str, Any]
"""A block of a message's content, as the Messages API and session files have it."""
Row = dict[str, Any]
"""A line of a session file."""


def session_files(pattern: str = "*.jsonl") -> list[Path]:
    """The shared real sessions; empty where this machine has none."""
    return sorted(SESSIONS.glob(pattern)) if SESSIONS.is_dir() else []


# ---------------------------------------------------------------- texts


def numbered(text: str, first: int = 1, form: str = "{:>6}→{}") -> str:
    """``text`` as a read tool shows it."""
    return "\n".join(form.format(number, line) for number, line in enumerate(text.split("\n"), first))


def long_text(name: str, lines: int = 20) -> str:
    """Lines that occur in no other text."""
    return "".join(f"{name}: this is line {number} of {lines}\n" for number in range(1, lines + 1))


# ---------------------------------------------------------------- payloads


def call_message(call_id: str, tool: str, given: Any, said: str | None = None, **more: Any) -> Message:
    """The assistant's message with one call; ``more`` stands beside the call's input."""
    words = {} if said is None else {"text": said}
    return {"role": "assistant", **words, "toolUses": [{"tool_use_id": call_id, "tool": tool, "input": given, **more}]}


def result_message(call_id: str, text: str, flag: bool | None = None, **more: Any) -> Message:
    """The message with a call's result; ``flag`` is the host's word on whether it failed."""
    flags = {} if flag is None else {"is_error": flag}
    return {"role": "user", "toolResults": [{"tool_use_id": call_id, "text": text, **flags, **more}]}


@dataclass
class Answer:
    """What a pass made of a session."""

    messages: list[Message]
    report: dict[str, Any]

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """The decision records, by call id."""
        return {record["id"]: record for record in self.report["decisions"]}

    @property
    def texts(self) -> dict[str, str]:
        """The results' texts, by call id."""
        return {
            result.get("tool_use_id", result.get("id")): result["text"]
            for message in self.messages
            for result in message.get("toolResults", message.get("tool_results", []))
        }

    def reason(self, call: str) -> str:
        """The reason of the decision on one call."""
        return str(self.records[call]["reason"])

    def decision(self, call: str) -> str:
        """The decision on one call."""
        return str(self.records[call]["decision"])


@dataclass
class MadeSession:
    """A session in the making. Its first message is pinned; `compact` pins no recent one unless it is told to."""

    goal: str = "Mend the parser."
    cwd: str | None = None
    messages: list[Message] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        self.messages.append({"role": "user", "text": self.goal})

    def say(self, text: str, role: str = "user") -> None:
        """A message without calls."""
        self.messages.append({"role": role, "text": text})

    def talk(self, count: int) -> None:
        """Words of the assistant's, which keep what came before away from the newest messages."""
        for number in range(count):
            self.say(f"thinking aloud, step {number}", "assistant")

    def call(
        self, tool: str, given: Any, text: str | None, flag: bool | None = None, *, id: str = "", **more: Any
    ) -> str:
        """A call and its result, each in its own message; returns the id. ``text`` None: no result."""
        self.calls += 1
        call_id = id or f"c{self.calls}"
        self.messages.append(call_message(call_id, tool, given, **more))
        if text is not None:
            self.messages.append(result_message(call_id, text, flag))
        return call_id

    def read(self, path: str, text: str, flag: bool | None = None, **given: Any) -> str:
        """A call of the read tool."""
        return self.call("Read", {"file_path": path, **given}, text, flag)

    def bash(self, command: str, text: str, flag: bool | None = None, **more: Any) -> str:
        """A shell command."""
        return self.call("Bash", {"command": command}, text, flag, **more)

    def filler(self, count: int = 1) -> None:
        """Calls that write nothing, and whose results no rule can remove."""
        for _ in range(count):
            self.call("Grep", {"pattern": f"pattern {self.calls}"}, f"found {self.calls}")

    @property
    def payload(self) -> dict[str, Any]:
        """The session as a payload."""
        return {"messages": self.messages} | ({} if self.cwd is None else {"cwd": self.cwd})

    @property
    def transcript(self) -> Transcript:
        """The session as it is read."""
        return parse_payload(self.payload)

    def raw(self) -> bytes:
        """The session as a file."""
        return json.dumps(self.payload, ensure_ascii=False).encode()

    def compact(self, rules_mode: str = "lossless", **options: Any) -> Answer:
        """One pass with the offline rules."""
        return compact(self.payload, rules_mode=rules_mode, **options)


def compact(payload: Any, **options: Any) -> Answer:
    """One pass with the offline rules over a payload, which it must not change."""
    before = copy.deepcopy(payload)
    given = {"provider": "rules", "preserve_recent": 0, **options}
    result = compact_transcript(TranscriptCompactionRequest(payload=payload, **given))
    assert payload == before
    return Answer(messages_to_payload(result.messages), result.report)


# ---------------------------------------------------------------- session files: blocks


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def thinking(words: str = "") -> Block:
    return {"type": "thinking", "thinking": words, "signature": "sig"}


def use(call_id: str, tool: str = "Bash", **given: Any) -> Block:
    """A call with ``given`` as its input."""
    return {"type": "tool_use", "id": call_id, "name": tool, "input": given, "caller": {"type": "direct"}}


def result(call_id: str, content: Any = "out", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


# ---------------------------------------------------------------- session files: rows


def row(kind: str, name: str, parent: str | None, message: Any = None, **more: Any) -> Row:
    """A line named ``name`` that hangs on ``parent``; ``more`` overrides what every line has, and adds to it."""
    start = {"parentUuid": parent, "isSidechain": False, "cwd": "/p", "sessionId": "s1", "version": "2.1.0"}
    return {**start, "type": kind, **({} if message is None else {"message": message}), "uuid": name, **more}


def user(name: str, parent: str | None, content: Any, **more: Any) -> Row:
    return row("user", name, parent, {"role": "user", "content": content}, **more)


def assistant(name: str, parent: str | None, message_id: str, *blocks: Block, **more: Any) -> Row:
    message = {"id": message_id, "role": "assistant", "content": list(blocks), "usage": {"output_tokens": 3}}
    return row("assistant", name, parent, message, **more)


def answer(name: str, parent: str | None, call_id: str, content: Any = "out", **more: Any) -> Row:
    """A user line that holds one result, with the second copy that the client keeps beside the message."""
    return user(name, parent, [result(call_id, content)], **{"toolUseResult": {"stdout": content}, **more})


def jsonl(*rows: Row | str, end: str = "\n") -> bytes:
    """A file of these lines, written as JSON.stringify does; strings are taken as they are."""
    return "".join(
        (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False, separators=(",", ":"))) + end
        for each in rows
    ).encode()


def read_rows(*rows: Row | str, end: str = "\n") -> Transcript:
    return read_transcript(jsonl(*rows, end=end))


class SessionFile:
    """Rows of one conversation as the client writes them, each hanging on the one before."""

    def __init__(self, project: Path | str = "/p", **every: Any) -> None:
        """``every`` stands in each row."""
        self.project = project
        self.id = str(uuid.uuid4())
        self.rows: list[Row] = []
        self._every = {
            "cwd": str(project),
            "sessionId": self.id,
            "version": "2.1.332",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "userType": "external",
            "gitBranch": "HEAD",
            **every,
        }
        self._results: dict[str, Any] = {}

    @property
    def last(self) -> str | None:
        """The name of the newest row."""
        return self.rows[-1]["uuid"] if self.rows else None

    def row(self, kind: str, message: Any = None, name: str = "", **more: Any) -> None:
        """A row of any kind, behind the one before."""
        self.rows.append(row(kind, name or str(uuid.uuid4()), self.last, message, **{**self._every, **more}))

    def user(self, content: Any, name: str = "", **more: Any) -> None:
        """A prompt, or any other content of the user's."""
        self.row("user", {"role": "user", "content": content}, name, **more)

    def assistant(self, *blocks: Block, name: str = "", usage: dict[str, int] | None = None) -> None:
        """An answer: one row a block, as the client writes them, each under a message id of its own."""
        for block in blocks:
            message = {
                "id": f"msg_{len(self.rows)}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5-5",
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage or {"input_tokens": 10, "output_tokens": 10},
            }
            self.row("assistant", message, name)

    def result(self, call_id: str, content: Any, *beside: Block, flag: bool | None = None, **more: Any) -> None:
        """The result of the call that came last, a text or blocks, and what stands ``beside`` its block in the row."""
        self._results[call_id] = content
        flags = {} if flag is None else {"is_error": flag}
        self.user([result(call_id, content, **flags), *beside], sourceToolAssistantUUID=self.last, **more)

    def read(self, call_id: str, path: Path, offset: int = 1, limit: int | None = None) -> None:
        """A Read of a file or of some of its lines, with its result, numbered as the tool numbers."""
        lines = path.read_text(encoding="utf-8").split("\n")[offset - 1 :][:limit]
        span = {} if limit is None else {"offset": offset, "limit": limit}
        self.assistant(use(call_id, "Read", file_path=str(path), **span))
        self.result(call_id, numbered("\n".join(lines), offset, "{}\t{}"))

    def talk(self, count: int) -> None:
        """Answers, which keep what came before away from the newest messages."""
        for number in range(count):
            self.assistant(text(f"step {number}, über"))

    def results(self) -> dict[str, Any]:
        """The content of each result, by call id."""
        return dict(self._results)

    def raw(self) -> bytes:
        """The file's bytes."""
        return jsonl(*self.rows)

    def write(self, home: Path) -> Path:
        """Write the file under ``home``; the client finds it by ``--resume`` in the project's folder."""
        folder = home / ".claude" / "projects" / "".join(c if c.isalnum() else "-" for c in str(self.project))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.id}.jsonl"
        path.write_bytes(self.raw())
        return path


def worked_on(project: Path, home: Path, files: Iterable[Path], chats: int = 8) -> SessionFile:
    """A session that read the files whole and then talked on until those reads are no recent work any more."""
    session = SessionFile(project)
    session.user("Read what is there.")
    for number, path in enumerate(files):
        session.read(f"toolu_old{number}", path)
    session.assistant(text("I have read it."))
    for number in range(chats):
        session.user(f"Question {number}?")
        session.assistant(text(f"Answer {number}."))
    session.write(home)
    return session
