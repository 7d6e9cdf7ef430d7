"""The wire: length-prefixed frames over a Unix socket, one request a connection.

    daemon  greeting    "lcc <protocol> <build> <pid>"
    client  header      key=value fields with NUL between them: protocol, build, command, cwd, can_recall, env.<NAME> …,
                        and lends: names of variables with secrets, which stay with the client until they are asked for
            body        the hook's stdin, untouched
    daemon  header      "<status> <number>\\n<text>": ok or error, or one after which another answer follows:
                        wait (more time, in ms), lend (names of variables)
            body        the bytes for stdout
    client  lent        after lend: NAME=value fields with NUL between them

Each of these is one frame: four bytes of length, most significant first, then so many bytes. A length is checked
against its limit before anything is allocated for it. The client's side of this is hook/lcc_hook/client.py.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lcc_hook.client import BUILD, FRAME_LIMIT, HEADER_LIMIT, PROTOCOL

__all__ = ["BUILD", "FRAME_LIMIT", "HEADER_LIMIT", "PROTOCOL"]

Status = Literal["ok", "error", "wait", "lend"]

PIECE = 1 << 20
MOST_FIELDS = 200
MANAGING = frozenset(("status", "stop"))
"""Commands that a client of another build may give too."""
HOOKS = ("session-start", "compact", "pre-compact", "session-end")
"""What Claude Code calls us for, in the order of a session's life."""
COMMANDS = MANAGING | {*HOOKS, "allow-recall", "measured", "recall", "between-turns", "ping", "slash"}


class ProtocolError(Exception):
    """A request that cannot be served; the text goes to the client and to the log."""

    def __init__(self, reason: str, say: str) -> None:
        super().__init__(say)
        self.reason = reason
        self.say = say


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a hook: its command, its session's variables and working folder, and its stdin."""

    command: str
    env: Mapping[str, str] = field(repr=False)
    body: bytes | bytearray = field(default=b"", repr=False)
    cwd: str = ""
    lends: frozenset[str] = frozenset()
    """Variables with secrets that the client gives only when it is asked for them."""
    can_recall: bool = False
    """A session start's: the session's shell finds our `lcc`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back. For ``error``, ``text`` is a machine word, a newline, and one line for the user."""

    body: bytes = b""
    text: str = ""
    status: Status = "ok"
    number: int = 0

    def frames(self) -> tuple[bytes, bytes]:
        """The header frame with the body's length behind it, and the body."""
        head = f"{self.status} {self.number}\n{self.text}".encode("utf-8", "replace")[:HEADER_LIMIT]
        return frame(head) + len(self.body).to_bytes(4, "big"), self.body


def failure(reason: str, say: str) -> Answer:
    """An ``error`` answer: a machine word, and one line for the user."""
    return Answer(status="error", text=f"{reason}\n{' '.join(say.split())}")


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def greeting(pid: int) -> bytes:
    return frame(f"lcc {PROTOCOL} {BUILD} {pid}".encode())


def parse_header(data: bytes) -> Request:
    """The request that a header frame describes, without its body. Raises ProtocolError."""
    fields: dict[str, str] = {}
    parts = data.split(b"\0", MOST_FIELDS + 1)
    if len(parts) > MOST_FIELDS:
        raise ProtocolError("bad-request", f"a header of more than {MOST_FIELDS} fields")
    for part in parts:
        key, found, value = part.partition(b"=")
        if not found:
            raise ProtocolError("bad-request", "a header field without a value")
        fields[os.fsdecode(key)] = os.fsdecode(value)
    command = fields.get("command", "")
    if fields.get("protocol") != str(PROTOCOL):
        raise ProtocolError("other-version", f"this daemon speaks protocol {PROTOCOL}: run lcc-daemon restart")
    if fields.get("build") != BUILD and command not in MANAGING:
        raise ProtocolError("other-version", f"this daemon is of build {BUILD}: run lcc-daemon restart")
    if command not in COMMANDS:
        raise ProtocolError("unknown-command", "the daemon knows no such command")
    env = {key[4:]: value for key, value in fields.items() if key.startswith("env.")}
    lends = frozenset(fields.get("lends", "").split())
    return Request(command, env, cwd=fields.get("cwd", ""), lends=lends, can_recall=fields.get("can_recall") == "1")


def parse_lent(data: bytes) -> dict[str, str]:
    """The variables in a client's answer to ``lend``; what is none is passed over."""
    pairs = (part.partition(b"=") for part in data.split(b"\0"))
    return {os.fsdecode(key): os.fsdecode(value) for key, found, value in pairs if found}


async def read_frame(line: socket.socket, limit: int, what: str) -> bytearray:
    """One frame from a non-blocking socket. The caller sets the deadline. Raises ProtocolError, EOFError."""
    size = int.from_bytes(await _exactly(line, 4), "big")
    if size > limit:
        raise ProtocolError("too-large", f"{what} of {size} bytes is over the limit of {limit} bytes")
    return await _exactly(line, size)


async def _exactly(line: socket.socket, size: int) -> bytearray:
    """So many bytes. The buffer grows with what comes, not with what was announced."""
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < size:
        piece = await loop.sock_recv(line, min(PIECE, size - len(data)))
        if not piece:
            raise EOFError(len(data))
        data += piece
    return data


async def send(line: socket.socket, answer: Answer) -> None:
    loop = asyncio.get_running_loop()
    for part in answer.frames():
        if part:  # whoever has all of its answer may be gone before an empty part is sent
            await loop.sock_sendall(line, part)
