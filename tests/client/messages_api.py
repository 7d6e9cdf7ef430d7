"""A Messages API on loopback that answers from a script and refuses what the real API refuses.

The client under test talks to it as it would to the vendor: streamed answers, token usage, and status
400 for a conversation the real API would not take (see ``why_refused``). Every request is kept.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]
Body = dict[str, Any]

SUMMARY_REQUEST = "Your task is to create a detailed summary"
SUMMARY_TEXT = "<summary>THE BUILT-IN SUMMARY</summary>"
TOOL_RESULT = "tool_result"
THINKING = ("thinking", "redacted_thinking")
CALL_LIMIT = 120.0


def say(text: str) -> Block:
    """A text block of the assistant."""
    return {"type": "text", "text": text}


def call(call_id: str, tool: str, **arguments: Any) -> Block:
    """A tool_use block of the assistant."""
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def bash(call_id: str, command: str) -> Block:
    """A call of the shell tool."""
    return call(call_id, "Bash", command=command, description="a step of the test")


def think(thought: str) -> Block:
    """A thinking block, signed as this API signs; a changed or foreign one is refused."""
    return {"type": "thinking", "thinking": thought, "signature": signature(thought)}


def signature(thought: str) -> str:
    return hashlib.sha256(b"signed by the fake: " + thought.encode()).hexdigest()


@dataclass(frozen=True)
class Reply:
    """One scripted answer of the model.

    ``blocks`` may be a function of the request: a model that acts on what it reads. ``input_tokens`` is the
    usage reported (None: estimated from the request's size). ``hold`` delays the answer until it is set.
    ``error`` is answered instead: (status, type, message).
    """

    blocks: list[Block] | Callable[[Body], list[Block]]
    input_tokens: int | None = None
    hold: threading.Event | None = None
    error: tuple[int, str, str] | None = None


@dataclass
class Script:
    """What the model says: to the main loop in order, and to sub-agents recognised by their first prompt."""

    main: list[Reply]
    agents: dict[str, list[Reply]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """One request as it came, who sent it (main, agent, summary, side) and how it was answered."""

    kind: str
    body: Body
    status: int
    refusal: str | None
    at: float


def blocks_of(message: Body) -> list[Block]:
    """The content of one message as blocks."""
    content = message["content"]
    return [say(content)] if isinstance(content, str) else content


def words_of(messages: Iterable[Body]) -> str:
    """All text blocks of the messages, joined. Tool results are left out."""
    return "\n".join(b["text"] for m in messages for b in blocks_of(m) if b.get("type") == "text")


def result_text(block: Block) -> str:
    """The text of one tool_result block; other parts are named in brackets."""
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(p["text"] if p["type"] == "text" else f"[{p['type']}]" for p in content)


def results_in(body: Body) -> dict[str, str]:
    """tool_use_id to result text, over the whole request."""
    return {
        b["tool_use_id"]: result_text(b) for m in body["messages"] for b in blocks_of(m) if b["type"] == TOOL_RESULT
    }


def calls_in(body: Body) -> list[str]:
    """The ids of all tool_use blocks of the request, in order."""
    return [b["id"] for m in body["messages"] for b in blocks_of(m) if b["type"] == "tool_use"]


def why_refused(body: Body) -> str | None:
    """Why the real API would answer 400 to this conversation, or None where it would accept it."""
    turns = list(_turns(body["messages"]))
    if not turns or turns[0][0] != "user":
        return "messages: first message must use the user role"
    return _empty_block(turns) or _unpaired_call(turns) or _bad_thinking(turns, body) or _bad_cache_marks(body)


def _turns(messages: list[Body]) -> Iterator[tuple[str, list[Block]]]:
    """Messages of one role in a row count as one turn; system entries stand outside the pairing."""
    role, blocks = "", list[Block]()
    for message in messages:
        if message["role"] == "system":
            continue
        if message["role"] != role and blocks:
            yield role, blocks
            blocks = []
        role = message["role"]
        blocks = blocks + blocks_of(message)
        if not blocks_of(message):
            blocks = [{"type": "empty"}]
    if blocks:
        yield role, blocks


def _empty_block(turns: list[tuple[str, list[Block]]]) -> str | None:
    for place, (_, blocks) in enumerate(turns):
        for block in blocks:
            if block["type"] == "empty":
                return f"messages.{place}: user messages must have non-empty content"
            if block["type"] == "text" and not block["text"].strip():
                return f"messages.{place}: text content blocks must contain non-whitespace text"
    return None


def _unpaired_call(turns: list[tuple[str, list[Block]]]) -> str | None:
    seen = set[str]()
    open_calls = set[str]()
    for place, (role, blocks) in enumerate(turns):
        if role == "user":
            kinds = [b["type"] for b in blocks]
            answered = [b["tool_use_id"] for b in blocks if b["type"] == TOOL_RESULT]
            if set(answered) - open_calls:
                return f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks"
            if open_calls - set(answered):
                return f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after"
            if len(answered) != len(set(answered)):
                return f"messages.{place}: each tool_use must have a single result"
            if answered and TOOL_RESULT in kinds[len(answered) :]:
                return f"messages.{place}: `tool_result` blocks must come first"
            open_calls = set()
        else:
            calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
            if seen & set(calls) or len(calls) != len(set(calls)):
                return f"messages.{place}: `tool_use` ids must be unique"
            seen.update(calls)
            open_calls = set(calls)
    return "messages: a call stands last without its result" if open_calls else None


def _bad_thinking(turns: list[tuple[str, list[Block]]], body: Body) -> str | None:
    for place, (_, blocks) in enumerate(turns):
        for block in blocks:
            if block["type"] == "thinking" and block["signature"] != signature(block["thinking"]):
                return f"messages.{place}: Invalid `signature` in `thinking` block"
    if (body.get("thinking") or {}).get("type") != "enabled" or not _has_result(turns[-1]):
        return None
    start = len(turns) - 1
    while start > 0 and (turns[start][0] == "assistant" or _has_result(turns[start])):
        start -= 1
    first = turns[start + 1][1][0]["type"]
    if first in THINKING:
        return None
    return (
        f"messages.{start + 1}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. "
        "When `thinking` is enabled, the turn of an open call must start with a thinking block"
    )


def _has_result(turn: tuple[str, list[Block]]) -> bool:
    return any(block["type"] == TOOL_RESULT for block in turn[1])


def _bad_cache_marks(body: Body) -> str | None:
    marked = [b for b in body.get("system") or [] if isinstance(b, dict)] + (body.get("tools") or [])
    marked += [b for m in body["messages"] for b in blocks_of(m)]
    count = sum("cache_control" in b for b in marked)
    return f"A maximum of 4 blocks with cache_control may be provided. Found {count}." if count > 4 else None


class MessagesApi:
    """The scripted model behind the HTTP server. ``requests`` grows as the client asks."""

    def __init__(self, script: Script) -> None:
        self._main = deque(script.main)
        self._agents = {needle: deque(replies) for needle, replies in script.agents.items()}
        self._news = threading.Condition()
        self.requests: list[Request] = []

    def of(self, kind: str) -> list[Request]:
        """The requests of one kind so far."""
        with self._news:
            return [r for r in self.requests if r.kind == kind]

    def wait_for(self, kind: str, count: int, seconds: float = CALL_LIMIT) -> Request:
        """Block until ``count`` requests of the kind have come; returns the last of them."""
        with self._news:
            arrived = self._news.wait_for(lambda: sum(r.kind == kind for r in self.requests) >= count, timeout=seconds)
            if not arrived:
                raise TimeoutError(f"{count} requests of kind {kind} did not come: {self.kinds()}")
            return [r for r in self.requests if r.kind == kind][count - 1]

    def kinds(self) -> str:
        """The kinds of all requests in order, as one line."""
        return " ".join(r.kind for r in self.requests)

    def answer(self, body: Body) -> tuple[int, Body]:
        """Status and message for one request of ``POST /v1/messages``."""
        with self._news:
            kind, queue = self._addressee(body)
            refusal = why_refused(body)
            reply = _reply_to(kind, queue) if refusal is None else None
            status = 400 if reply is None else 200 if reply.error is None else reply.error[0]
            self.requests.append(Request(kind, body, status, refusal, time.time()))
            self._news.notify_all()
        if reply is None:
            return 400, _error("invalid_request_error", refusal or "")
        if reply.hold is not None:
            reply.hold.wait(CALL_LIMIT)
        if reply.error is not None:
            return reply.error[0], _error(reply.error[1], reply.error[2])
        return 200, _message(reply, body)

    def _addressee(self, body: Body) -> tuple[str, deque[Reply]]:
        messages = body["messages"]
        if SUMMARY_REQUEST in words_of(messages[-1:]) or SUMMARY_REQUEST in words_of(messages[-2:]):
            return "summary", deque([Reply([say(SUMMARY_TEXT)])])
        first = words_of(m for m in messages[:2] if m["role"] == "user")
        for needle, replies in self._agents.items():
            if needle in first:
                return "agent", replies
        if any(tool.get("name") == "Bash" for tool in body.get("tools") or []):
            return "main", self._main
        return "side", deque()


def _reply_to(kind: str, queue: deque[Reply]) -> Reply:
    return queue.popleft() if queue else Reply([say("side answer" if kind == "side" else "script at its end")])


def _error(kind: str, message: str) -> Body:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _message(reply: Reply, body: Body) -> Body:
    blocks = reply.blocks(body) if callable(reply.blocks) else reply.blocks
    tokens = reply.input_tokens if reply.input_tokens is not None else len(json.dumps(body)) // 4
    return {
        "id": f"msg_{time.time_ns()}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 10},
    }


def _as_stream(message: Body) -> bytes:
    """The message as server-sent events, one delta for each block."""
    events: list[Body] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        *(event for index, block in enumerate(message["content"]) for event in _block_events(index, block)),
        {
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": message["usage"]["output_tokens"]},
        },
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def _block_events(index: int, block: Block) -> Iterator[Body]:
    if block["type"] == "text":
        start, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    elif block["type"] == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    else:
        start = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: MessagesApi

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed: the requests are kept in ``MessagesApi.requests``."""

    def do_HEAD(self) -> None:
        self._send(200, "application/json", b"")

    def do_GET(self) -> None:
        self._send(200, "application/json", b"{}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if "count_tokens" in self.path:
            return self._send(200, "application/json", json.dumps({"input_tokens": len(raw) // 4}).encode())
        if "/v1/messages" not in self.path:
            return self._send(200, "application/json", b"{}")
        body = json.loads(raw)
        status, message = self.api.answer(body)
        if status == 200 and body.get("stream"):
            return self._send(200, "text/event-stream", _as_stream(message))
        return self._send(status, "application/json", json.dumps(message).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


@contextmanager
def serve(script: Script) -> Iterator[tuple[MessagesApi, str]]:
    """Serve the script on a free loopback port; yields the API and its base URL."""
    api = MessagesApi(script)
    handler = type("Handler", (_Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield api, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
