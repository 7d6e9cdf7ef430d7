"""A System One server on loopback that answers, and fails, as a test tells it: real sockets, no library."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Step = bytes | float | None
"""Bytes to send, seconds to wait (less when the server is stopped), or None: close the connection."""


@dataclass(frozen=True)
class Asked:
    """One request as it arrived, and its number (from 0) among all that arrived."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def questions(self) -> list[str]:
        return list(self.json["questions"])


Respond = Callable[[Asked], Iterator[Step] | list[Step]]


def http(status: int, body: bytes | dict[str, Any], **headers: str) -> list[Step]:
    """A whole response; keyword names become header names, with dashes for underscores."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ["\r\n".join(lines).encode() + b"\r\n\r\n" + data]


def answers(asked: Asked, value: Callable[[str], Any] | float = 0.9, model: str = "jev-1.13.0") -> dict[str, Any]:
    """A valid answer to every question; ``value`` is the probability, or gives it by the question's name."""
    give = value if callable(value) else lambda name: value
    return {
        "model": model,
        "answers": {name: {"type": "noul", "noul": give(name)} for name in asked.questions},
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def always(value: Callable[[str], Any] | float = 0.9) -> Respond:
    """Answer every request."""
    return lambda asked: http(200, answers(asked, value))


@dataclass
class SystemOneServer:
    """Listens on a free port of 127.0.0.1. ``asked`` are the requests so far, in the order of their arrival."""

    respond: Respond
    tls: ssl.SSLContext | None = None
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        scheme = "https" if self.tls else "http"
        return f"{scheme}://127.0.0.1:{self._socket.getsockname()[1]}"

    def accept(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError):
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.append(connection)
                self.connections += 1
            with connection, connection.makefile("rb") as reader:
                while (asked := self._read(reader)) is not None and self._send(connection, asked):
                    pass

    def _read(self, reader: Any) -> Asked | None:
        first = reader.readline().decode()
        if not first.strip():
            return None
        method, path, _ = first.split(" ", 2)
        headers: dict[str, str] = {}
        while line := reader.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = reader.read(int(headers.get("content-length", "0")))
        with self._lock:
            asked = Asked(len(self.asked), method, path, headers, body)
            self.asked.append(asked)
        return asked

    def _send(self, connection: socket.socket, asked: Asked) -> bool:
        if asked.method != "POST":
            connection.sendall(http(405, b"", Allow="POST")[0])  # type: ignore[arg-type]
            return True
        for step in self.respond(asked):
            if step is None:
                return False
            if isinstance(step, bytes):
                connection.sendall(step)
            elif self._stopped.wait(step):
                return False
        return True


@contextmanager
def system_one(respond: Respond, tls: ssl.SSLContext | None = None) -> Iterator[SystemOneServer]:
    """A running server, stopped at the end with every connection that is still open."""
    server = SystemOneServer(respond, tls)
    thread = threading.Thread(target=server.accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)


def closed_port() -> int:
    """A port of 127.0.0.1 on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])
