"""A private world for a test of the daemon: its own home, folders and project, and the programs run in them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import making
import programs
from making import Row, call_message, jsonl, numbered, result, result_message, use

PYTHON = sys.executable
"""The tests' own interpreter, whatever a test makes of `sys.executable`."""
CHECKOUT = Path(__file__).parents[2]
CLIENT = CHECKOUT / "hook" / "lcc_hook" / "client.py"
MARKER = "sk-live-MARKER-9f2d41"
"""Stands in the sessions of these tests, and must never stand in a log."""


@dataclass
class World:
    """Everything under one short folder, since a socket's path may not be long."""

    root: Path
    started: list[int] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def runtime(self) -> Path:
        return self.root / "run"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "LCC_RUNTIME_DIR": str(self.runtime),
            "LCC_STATE_DIR": str(self.state),
            "LCC_PYTHON": PYTHON,
            "LCC_BUDGET_MS": "20000",
            "LCC_START_BUDGET_MS": "40000",
            **self.extra,
        }

    @property
    def socket_file(self) -> Path:
        return next(iter(self.runtime.glob("d-*.sock")), self.runtime / "none")

    def client(self, command: str, stdin: bytes | str = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        """Run the hook client as Claude Code does."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return subprocess.run(
            [PYTHON, "-I", "-S", "-E", CLIENT, command],
            input=data, capture_output=True, env=self.merged(env), timeout=90, cwd=self.project, check=False,
        )  # fmt: skip

    def start_client(self, command: str, stdin: bytes, **env: str) -> subprocess.Popen[bytes]:
        """The same, left running; stdin comes from a file, so that nobody has to write it meanwhile."""
        file = self.root / f"stdin-{time.monotonic_ns()}"
        file.write_bytes(stdin)
        with open(file, "rb") as opened:
            return subprocess.Popen(
                [PYTHON, "-I", "-S", "-E", CLIENT, command],
                stdin=opened, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.merged(env), cwd=self.project,
            )  # fmt: skip

    def client_alone(self, command: str, stdin: bytes | str = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        """The hook client where only it is there, without our other sources: nothing can be run from them."""
        alone = self.root / "alone" / "lcc_hook"
        if not alone.exists():
            shutil.copytree(CLIENT.parent, alone, ignore=shutil.ignore_patterns("__pycache__"))
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return subprocess.run(
            [PYTHON, "-I", "-S", "-E", alone / "client.py", command],
            input=data, capture_output=True, env=self.merged(env), timeout=90, cwd=self.project, check=False,
        )  # fmt: skip

    def plan_alone(self, stdin: bytes, **env: str) -> dict[str, object]:
        """The plan that `compact` prints there."""
        done = self.client_alone("compact", stdin, **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def plan(self, stdin: bytes, **env: str) -> dict[str, object]:
        """The plan that `compact` prints; the client must have exited 0."""
        done = self.client("compact", stdin, **env)
        assert done.returncode == 0, done.stderr
        plan = json.loads(done.stdout)
        assert plan["v"] == 1
        return plan

    def cli(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return programs.run_text("lcc-daemon", *words, env=self.merged(env), timeout=90)

    def status(self, **env: str) -> dict[str, object]:
        done = self.cli("status", "--json", **env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def start(self, **env: str) -> int:
        """Start a daemon, and return its process id."""
        done = self.cli("start", **env)
        assert done.returncode == 0, done.stderr
        return self.pid()

    def pid(self) -> int:
        pid = int(next(self.runtime.glob("d-*.pid")).read_text().split()[0])
        self.started.append(pid)
        return pid

    def merged(self, env: dict[str, str]) -> dict[str, str]:
        return {key: value for key, value in {**self.env, **env}.items() if value != "-"}

    def log(self) -> str:
        return "".join(file.read_text() for file in self.state.glob("daemon.log*"))

    def processes(self) -> list[int]:
        """Every daemon of this world that runs, found by its environment."""
        found = []
        mark = f"LCC_RUNTIME_DIR={self.runtime}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                if (
                    (b"lcc_daemon" in words or b"lcc-daemon" in words)
                    and b"run" in words
                    and mark in (folder / "environ").read_bytes().split(b"\0")
                ):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def connect(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(30)
        line.connect(str(self.socket_file))
        return line

    def end(self) -> None:
        for pid in {*self.started, *self.processes()}:
            try:
                if f"LCC_RUNTIME_DIR={self.runtime}".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                continue


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether the condition came true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def read_frame(line: socket.socket) -> bytes:
    size = int.from_bytes(read_exactly(line, 4), "big")
    return read_exactly(line, size)


def read_exactly(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            raise EOFError(data)
        data += piece
    return data


def header(command: str, **fields: str) -> bytes:
    from lcc_daemon.protocol import BUILD, PROTOCOL

    values = {"protocol": str(PROTOCOL), "build": BUILD, "command": command, **fields}
    return b"\0".join(f"{key}={value}".encode() for key, value in values.items())


# ---------------------------------------------------------------- sessions


SESSION = "11111111-2222-3333-4444-555555555555"


def shown(text: str) -> str:
    """A file's text, which ends its last line, as the Read tool shows it."""
    return numbered(text[:-1], form="{}\t{}")


def source(name: str, lines: int = 120) -> str:
    return "".join(f"value_{number} = {name!r}  # {MARKER} line {number}\n" for number in range(lines))


def read_turn(number: int, path: Path, output: str, is_error: bool = False) -> list[dict[str, object]]:
    call = f"toolu_{number:04}"
    asked = call_message(call, "Read", {"file_path": str(path)}, f"Reading file {number}.", result={}, text=output)
    answered = result_message(call, output, isError=is_error, result={})
    return [asked | {"handle": f"a{number}"}, {**answered, "text": "", "toolUses": [], "handle": f"r{number}"}]


def make_event(world: World, files: int = 8, lines: int = 120, **fields: object) -> bytes:
    """A `session.compact` event of a session that read so many files, all of them still on disk."""
    world.project.mkdir(parents=True, exist_ok=True)
    messages: list[dict[str, object]] = [{"role": "user", "text": f"Mend it. {MARKER}", "toolUses": [], "handle": "h"}]
    for number in range(files):
        path = world.project / f"module_{number}.py"
        text = source(path.name, lines)
        path.write_text(text)
        messages += read_turn(number, path, shown(text))
    messages += [
        {"role": role, "text": f"word {n}", "toolUses": []} for n, role in enumerate(["assistant", "user"] * 4)
    ]
    event = {
        "v": 1,
        "trigger": "manual",
        "instructions": None,
        "session_id": SESSION,
        "agent_id": None,
        "cwd": str(world.project),
        "options": {},
        "messages": messages,
    }
    return json.dumps({**event, **fields}, ensure_ascii=False).encode()


def that_can_recall(world: World, event: bytes) -> bytes:
    """The event in a session that can follow notes of the stash: it began with our hook, and has used its shell."""
    value = json.loads(event)
    call = call_message("toolu_shell", "Bash", {"command": "ls"}, "Looking.", result={}, text="nothing")
    value["messages"][1:1] = [call, {**result_message("toolu_shell", "nothing"), "text": "", "toolUses": []}]
    started = json.dumps({"session_id": value["session_id"], "source": "startup"})
    world.client("session-start", started, CLAUDE_ENV_FILE=str(world.root / "env.sh"))
    assert wait_until((world.runtime / "recall" / value["session_id"]).exists)
    return json.dumps(value).encode()


def make_large_event(world: World) -> bytes:
    """An event whose plan is over 4 MiB."""
    messages: list[dict[str, object]] = [{"role": "user", "text": "Mend it.", "toolUses": []}]
    for number in range(4000):  # a long path makes a long note, and 4,000 of them more than 4 MiB
        deep = world.project.joinpath(*(letter * 100 for letter in "éüöäàèò"))
        path = deep / f"{number:04}{'ñ' * 100}.txt"
        if number == 0:
            deep.mkdir(parents=True)
        line = f"{number} " + "é" * 200
        path.write_text("\n".join([line] * 8) + "\n")
        messages.append(call_message(f"t{number}", "Read", {"file_path": str(path)}, ""))
        messages.append(result_message(f"t{number}", shown(f"{line}\n" * 8)) | {"text": "", "toolUses": []})
    return make_event(world, messages=messages, files=0)


def write_session(world: World, files: int = 6) -> Path:
    """A session file as Claude Code writes it, of the same kind of session."""
    world.project.mkdir(parents=True, exist_ok=True)
    path = world.root / "home" / ".claude" / "projects" / "-p" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    rows = [row(None, "u0", "user", f"Mend the parser. {MARKER}", world)]
    for number in range(files):
        file = world.project / f"module_{number}.py"
        text = source(file.name)
        file.write_text(text)
        rows += read_rows(number, rows[-1]["uuid"], file, shown(text), world)
    last = str(rows[-1]["uuid"])
    for number in range(6):
        rows.append(row(last, f"t{number}", "user", f"And now step {number}.", world))
        last = f"t{number}"
    append_rows(path, rows)
    return path


def append_rows(path: Path, rows: list[Row]) -> None:
    with open(path, "ab") as out:
        out.write(jsonl(*rows))


def row(parent: str | None, name: str, role: str, content: object, world: World, **fields: object) -> Row:
    message = {"role": role, "content": content, **({"id": f"msg_{name}"} if role == "assistant" else {})}
    every = {"cwd": str(world.project), "sessionId": SESSION, "version": "2.1.332", "userType": "external"}
    return making.row(role, name, parent, message, timestamp="2026-01-01T00:00:00.000Z", **every, **fields)


def read_rows(number: int, parent: str | None, path: Path, output: str, world: World) -> list[Row]:
    call = f"toolu_{number:04}"
    return [
        row(parent, f"a{number}", "assistant", [use(call, "Read", file_path=str(path))], world),
        row(f"a{number}", f"r{number}", "user", [result(call, output)], world),
    ]
