"""Rows: the configuration, the event, the session's files and a second writer, the judge."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from daemon.daemon_world import write_session
from daemon.faults.row import Call, Live, Table
from judge.system_one_server import Respond, always, answers, http, system_one
from odd_files import in_place

CONFIGURATION = Table("configuration", is_shared=True)
EVENT = Table("event", is_shared=True)
FILES = Table("files")
JUDGE = Table("judge", is_shared=True)

Make = Callable[[Live], Iterator[Call]]


# ---------------------------------------------------------------- the configuration


def place(live: Live) -> Path:
    """The configuration's file, in a folder that is there."""
    file = live.root / "home" / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    live.stack.callback(lambda: file.rmdir() if file.is_dir() else file.unlink())
    return file


def configured(text: bytes) -> Make:
    """A configuration with these bytes."""

    def make(live: Live) -> Iterator[Call]:
        place(live).write_bytes(text)
        yield Call()

    return make


for _name, _text in {
    "is no TOML": b"rules_mode = [",
    "is nested too deeply": b"model = " + b"[" * 3000 + b"]" * 3000,
    "has a number of 10,000 digits": b"preserve_recent = " + b"9" * 10_000,
    "is no UTF-8": b'model = "\xff"',
    "has a key that is not known": b"rulesmode = 'lossy'",
    "has a value that may not be": b"min_reduction = 7",
    "has a table in a value's place": b"[provider]\nname = 1",
    "is 20 MB long": b"# " + b"x" * 20_000_000,
}.items():
    CONFIGURATION.row(_name, "hand-over: config")(configured(_text))
CONFIGURATION.row("switches lcc off", "hand-over: disabled")(configured(b"enabled = false"))
CONFIGURATION.row("asks for all of the session's characters", "skip: too-little")(configured(b"min_reduction = 1"))


def of_kind(kind: str) -> Make:
    """What is no file in the configuration's place."""

    def make(live: Live) -> Iterator[Call]:
        in_place(kind, place(live))
        yield Call()

    return make


for _kind in ("a folder", "a pipe", "a socket", "a device"):
    CONFIGURATION.row(f"is {_kind}", "hand-over: config")(of_kind(_kind))


@CONFIGURATION.row("is named and not there", "hand-over: config")
def named(live: Live) -> Iterator[Call]:
    yield Call(env={"LCC_CONFIG": str(live.root / "none.toml")})


@CONFIGURATION.row("a variable holds what it may not", "hand-over: config")
def variables(live: Live) -> Iterator[Call]:
    for name, value in {"LCC_RULES_MODE": "all", "LCC_BUDGET_MS": "2s", "LCC_PRESERVE_RECENT": "-1"}.items():
        yield Call(env={name: value})


# ---------------------------------------------------------------- the event


def given(*inputs: bytes) -> Make:
    """These bytes as the hook's input."""

    def make(live: Live) -> Iterator[Call]:
        for each in inputs:
            yield Call(stdin=each)

    return make


EVENT.row("is empty, torn, rubbish, or no object", "hand-over: bad-event")(
    given(b"", b"{", b"\x00\xff rubbish", b"[]", b"7", b'{"messages": 7}', b"{}")
)
EVENT.row("is nested too deeply", "hand-over: bad-event")(given(b"[" * 200_000, b'{"a":' * 100_000))
EVENT.row("holds half of a character", "hand-over: bad-event")(
    given(b'{"messages": [{"role": "user", "text": "\xe2\x82')
)


def changed(change: Callable[[dict[str, Any]], object]) -> Make:
    """The event with something changed in it."""

    def make(live: Live) -> Iterator[Call]:
        event = json.loads(live.event)
        change(event)
        yield Call(stdin=json.dumps(event).encode())

    return make


EVENT.row("has a role that is none", "hand-over: bad-transcript")(
    changed(lambda event: event["messages"].append({"role": "nobody", "text": "x", "toolUses": []}))
)
EVENT.row("has a result of no call", "hand-over: bad-transcript")(
    changed(
        lambda event: event["messages"].append(
            {"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": "t", "text": "x"}]}
        )
    )
)
EVENT.row("has a trigger that is not known", "hand-over: unknown-trigger")(
    changed(lambda event: event.update(trigger="by the moon"))
)
EVENT.row("does not say where the session works", "hand-over: bad-event")(changed(lambda event: event.update(cwd="")))
EVENT.row("names a session ../../x", "replaced")(changed(lambda event: event.update(session_id="../../x\n\0y")))
EVENT.row("has numbers of 400 digits", "hand-over: bad-event")(
    changed(lambda event: event.update(context_tokens=10**400, window_tokens=-(10**400)))
)


# ---------------------------------------------------------------- the session's files


def with_files(change: Callable[[Path], object]) -> Make:
    """Each file that the session read is changed before the call."""

    def make(live: Live) -> Iterator[Call]:
        for path in live.project.iterdir():
            change(path)
        yield Call()

    return make


def swapped(kind: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        path.unlink()
        in_place(kind, path)

    return change


FILES.row("changed since they were read", "skip: nothing-to-remove")(
    with_files(lambda path: path.write_text("other\n"))
)
FILES.row("removed since they were read", "skip: nothing-to-remove")(with_files(lambda path: path.unlink()))
for _kind in ("a folder", "a pipe", "a socket", "a device"):
    FILES.row(f"{_kind} in the place of each", "skip: nothing-to-remove")(with_files(swapped(_kind)))
FILES.row("grown to a terabyte without content", "skip: nothing-to-remove")(
    with_files(lambda path: os.truncate(path, 2**40))
)
FILES.row("a loop of links in the place of each", "skip: nothing-to-remove")(
    with_files(lambda path: (path.unlink(), path.symlink_to(path.name)))
)


@FILES.row("one changed, the others as they were", "replaced")
def one_changed(live: Live) -> Iterator[Call]:
    (live.project / "module_1.py").write_text("other\n")
    yield Call()


@FILES.row("a second writer replaces and puts back one of them during the pass", "replaced")
def second_writer(live: Live) -> Iterator[Call]:
    live.start()
    path = live.project / "module_0.py"
    whole = path.read_bytes()

    def write(process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            for content in (b"somebody else's\n", whole):
                path.with_suffix(".new").write_bytes(content)
                path.with_suffix(".new").replace(path)

    for _ in range(3):
        yield Call(meanwhile=write)


@FILES.row("a second writer removes one of them during the pass", "replaced")
def remover(live: Live) -> Iterator[Call]:
    """The note of one that went after the pass cannot be followed: it is made again before that is looked at."""
    live.start()
    path = live.project / "module_0.py"
    whole = path.read_bytes()

    def write(process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            path.unlink(missing_ok=True)
            path.write_bytes(whole)

    yield Call(meanwhile=write)


def transcript(change: Callable[[Path], object], **more: Any) -> Make:
    """The module, with a session file that is changed before."""

    def make(live: Live) -> Iterator[Call]:
        path = write_session(live)
        change(path)
        yield Call.of_module(live, transcript=path, **more)

    return make


FILES.row("the session's own: not there", "hand-over: told")(transcript(lambda path: path.unlink()))
for _kind in ("a folder", "a pipe", "a device"):
    FILES.row(f"the session's own: {_kind}", "hand-over: told")(transcript(swapped(_kind)))
FILES.row("the session's own: rubbish", "hand-over: told")(transcript(lambda path: path.write_bytes(b"\x00\xff{[")))


# ---------------------------------------------------------------- the judge


def judged(env: Mapping[str, str]) -> dict[str, str]:
    return {"LCC_PROVIDER": "jev", "TYPESAFE_API_KEY": "k", "LCC_RULES_MODE": "lossless", **env}


def asked(respond: Respond, **env: str) -> Make:
    """A judge that answers so."""

    def make(live: Live) -> Iterator[Call]:
        server = live.stack.enter_context(system_one(respond))
        yield Call(env=judged({"TYPESAFE_BASE_URL": server.url, **env}))

    return make


def odd_answer(change: Callable[[dict[str, Any]], object]) -> Respond:
    def respond(asked: Any) -> Any:
        answer = answers(asked)
        change(answer)
        return http(200, answer)

    return respond


JUDGE.row("keeps everything", "skip: nothing-to-remove")(asked(always(0.99)))
for _name, _respond in {
    "is down with 500": lambda asked: http(500, {}),
    "refuses the key": lambda asked: http(401, {}),
    "asks to come back in a year": lambda asked: http(429, {}, Retry_After="31536000"),
    "answers with rubbish": lambda asked: http(200, b"<html>"),
    "answers with another JSON": lambda asked: http(200, {"answers": []}),
    "sends it elsewhere": lambda asked: http(302, {}, Location="http://127.0.0.1:1/"),
    "answers for other questions": odd_answer(lambda answer: answer.update(answers={"q": {"type": "noul", "noul": 1}})),
    "answers with no numbers": odd_answer(
        lambda answer: [each.update(noul="high") for each in answer["answers"].values()]
    ),
    "answers out of range": odd_answer(lambda answer: [each.update(noul=-7) for each in answer["answers"].values()]),
    "hangs up in the middle": lambda asked: [b"HTTP/1.1 200 X\r\nContent-Length: 900\r\n\r\n{", None],
}.items():
    JUDGE.row(_name, "hand-over: degraded")(asked(_respond, LCC_JUDGE_TIMEOUT_S="2"))  # type: ignore[arg-type]
JUDGE.row("never answers", "hand-over: degraded")(asked(lambda asked: [300.0, *http(200, {})], LCC_JUDGE_TIMEOUT_S="1"))
JUDGE.row("sends a byte a second", "hand-over: degraded")(
    asked(lambda asked: [step for _ in range(99) for step in (b"H", 1.0)], LCC_JUDGE_TIMEOUT_S="1")
)
JUDGE.row("needs a certificate file that is not there", "hand-over: degraded")(
    asked(always(0.01), SSL_CERT_FILE="/nowhere/ca.pem", TYPESAFE_BASE_URL="https://127.0.0.1:1")
)
JUDGE.row("behind a proxy of a kind that is not known", "hand-over: degraded")(
    asked(always(0.01), ALL_PROXY="socks5://127.0.0.1:1", TYPESAFE_BASE_URL="https://judge.example")
)
JUDGE.row("unencrypted on another machine", "hand-over: degraded")(
    asked(always(0.01), TYPESAFE_BASE_URL="http://judge.example")
)
JUDGE.row("an address that is none", "hand-over: degraded")(asked(always(0.01), TYPESAFE_BASE_URL="htp:/[::1"))
JUDGE.row("down, and the files prove the outputs", "hand-over: degraded")(
    asked(lambda asked: http(500, {}), LCC_RULES_MODE="recoverable", LCC_JUDGE_TIMEOUT_S="2")
)


@JUDGE.row("nobody listens", "hand-over: degraded")
def refused(live: Live) -> Iterator[Call]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    yield Call(env=judged({"TYPESAFE_BASE_URL": f"http://127.0.0.1:{port}"}))


@JUDGE.row("without a key", "hand-over: degraded")
def no_key(live: Live) -> Iterator[Call]:
    yield Call(env=judged({"TYPESAFE_API_KEY": "-"}))


@JUDGE.row("speaks TLS with a certificate of nobody's", "hand-over: degraded")
def unknown_certificate(live: Live) -> Iterator[Call]:
    import trustme

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    server = live.stack.enter_context(system_one(always(0.01), context))
    yield Call(env=judged({"TYPESAFE_BASE_URL": server.url}))
