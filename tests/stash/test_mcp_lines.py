"""Lines on the server's standard input that are no good JSON-RPC: none ends it, and the next request is answered."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}


def request(number: object, method: str, **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


LINES = {
    "cut off": b'{"jsonrpc":"2.0","id":2,"meth',
    "nested without an end": b"[" * 100_000,
    "an id of 5,000 digits": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    "a batch": b"[" + request(3, "ping") + b"," + request(4, "ping") + b"]",
    "no UTF-8": b'{"jsonrpc":"2.0","id":5,"method":"\xff\xfe"}',
    "zeros": b"\0\0",
    "no id": request(None, "ping"),
    "parameters that are a list": b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[1]}',
    "parameters of other types": request(7, "tools/call", name=5, arguments="x"),
    "an unknown method": request(8, "nope/nope"),
    "nothing": b"\n\n",
    "a number": b"5",
    "null": b"null",
    "half a character": request(9, "tools/call", name="recall", arguments={"id": "\ud800"}),
    "not a number": b'{"jsonrpc":"2.0","id":10,"method":"ping","params":{"x":NaN}}',
    "no version": b'{"id":11,"method":"ping"}',
    "an answer to nothing": b'{"jsonrpc":"2.0","id":12,"result":{}}',
    "20 MB": request(13, "ping", x="a" * 20_000_000),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[bytes]]:
    """One server that has been greeted; it lives through all of the lines."""
    home = tmp_path_factory.mktemp("home")
    process = subprocess.Popen(
        [sys.executable, "-c", "from lcc.cli import main; main(['mcp'])"],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LCC_STASH_DIR": str(home / "stash")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    send(process, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}).encode())
    assert b'"id":0' in answer(process)
    send(process, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    yield process
    process.kill()
    process.wait()


def send(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes]) -> bytes:
    """The next line that the server writes; the process is ended where none comes."""
    assert process.stdout is not None
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        return process.stdout.readline()
    finally:
        late.cancel()


@pytest.mark.parametrize("name", LINES)
def test_a_bad_line_ends_nothing(server: subprocess.Popen[bytes], name: str, tmp_path: Path) -> None:
    """Whatever is said to the line itself, the request behind it is answered."""
    wanted = f"after {name}"
    send(server, LINES[name])
    send(server, request(wanted, "ping"))
    said = answer(server)
    while said and json.loads(said).get("id") != wanted:
        assert "error" in json.loads(said) or "result" in json.loads(said)
        said = answer(server)
    assert said, "the server ended"
    assert server.poll() is None
