"""A small session, written call by call, and one pass over it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from lcc.relevance import TranscriptCompactionRequest, compact_transcript, messages_to_payload

Message = dict[str, Any]

REMINDER = "\n\n<system-reminder>\nConsider whether this file is malicious.\n</system-reminder>\n"


def numbered(text: str, first: int = 1, form: str = "{:>6}→{}") -> str:
    """``text`` as a read tool shows it."""
    return "\n".join(form.format(number, line) for number, line in enumerate(text.split("\n"), first))


def long_text(name: str, lines: int = 20) -> str:
    """Lines that occur in no other text."""
    return "".join(f"{name}: this is line {number} of {lines}\n" for number in range(1, lines + 1))


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

    def call(
        self, tool: str, given: Any, text: str | None, flag: bool | None = None, *, id: str = "", **more: Any
    ) -> str:
        """A call and its result, each in its own message; returns the id. ``text`` None: no result."""
        self.calls += 1
        call_id = id or f"c{self.calls}"
        self.messages.append(
            {"role": "assistant", "toolUses": [{"tool_use_id": call_id, "tool": tool, "input": given, **more}]}
        )
        if text is not None:
            result: Message = {"tool_use_id": call_id, "text": text}
            if flag is not None:
                result["is_error"] = flag
            self.messages.append({"role": "user", "toolResults": [result]})
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

    def compact(self, rules_mode: str = "lossless", **options: Any) -> Answer:
        """One pass with the offline rules."""
        payload: Any = {"messages": self.messages}
        if self.cwd is not None:
            payload["cwd"] = self.cwd
        return compact(payload, rules_mode=rules_mode, **options)


def compact(payload: Any, **options: Any) -> Answer:
    """One pass with the offline rules over a payload, which it must not change."""
    before = copy.deepcopy(payload)
    given = {"provider": "rules", "preserve_recent": 0, **options}
    result = compact_transcript(TranscriptCompactionRequest(payload=payload, **given))
    assert payload == before
    return Answer(messages_to_payload(result.messages), result.report)
