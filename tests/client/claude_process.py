"""The real Claude Code client as a child process, headless, in folders of its own.

``Lab`` holds the folders and the environment (nothing of the caller's but PATH); ``Claude`` is one running
client. Both only wait for events: nothing here sleeps.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = dict[str, Any]

TURN_LIMIT = 120.0
TOOLS = "Bash,Read,Edit,Write,Glob,Grep,Agent,Task,Skill,TodoWrite"
KEY_FOR_THE_FAKE = "sk-ant-not-a-key"


@dataclass
class Lab:
    """A home, a project and a runtime folder that no other test sees, and the environment built on them."""

    root: Path
    path: str
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in (self.home, self.project, self.runtime, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def runtime(self) -> Path:
        return self.root / "run"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def debug_log(self) -> Path:
        """The client's own debug log: what it says about modules it loads or refuses."""
        return self.root / "debug.txt"

    def environment(self, base_url: str = "http://127.0.0.1:9") -> dict[str, str]:
        """The whole environment of a client or of a program of ours in this lab."""
        return {
            "PATH": self.path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.temporary),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "SHELL": "/bin/bash",
            "ANTHROPIC_BASE_URL": base_url,
            "ANTHROPIC_API_KEY": KEY_FOR_THE_FAKE,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            **self.env,
        }

    def transcript(self, session: str) -> Path:
        """The session's file, where the client keeps it."""
        found = list(self.home.glob(f".claude/projects/*/{session}.jsonl"))
        if len(found) != 1:
            raise FileNotFoundError(f"{len(found)} transcripts of session {session} under {self.home}")
        return found[0]

    def write(self, name: str, text: str) -> Path:
        """A file in the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path


@dataclass(frozen=True)
class Turn:
    """What one prompt led to: every event up to its result, and how long it took."""

    events: list[Event]
    result: str
    subtype: str
    seconds: float

    def said_to_user(self) -> list[str]:
        """The lines that the plugin put on the user's screen (``$.ui.log``), as the client shows them, in order."""
        return [f"{e['plugin']}: {e['text']}" for e in self.events if e.get("subtype") == "ui_log"]


def client_command(
    binary: Path, lab: Lab, plugin_dirs: Sequence[Path] = (), resume: str | None = None, tools: str = TOOLS
) -> list[str]:
    """How the client is started in ``lab``, headless or in a terminal."""
    command = [str(binary), "--permission-mode", "acceptEdits", "--allowedTools", tools]
    command += ["--debug-file", str(lab.debug_log)]
    for folder in plugin_dirs:
        command += ["--plugin-dir", str(folder)]
    return [*command, "--resume", resume] if resume else command


class Claude:
    """One client process. Use as a context manager: leaving it ends the process and waits for it."""

    def __init__(
        self,
        binary: Path,
        lab: Lab,
        base_url: str,
        *,
        plugin_dirs: Sequence[Path] = (),
        resume: str | None = None,
        model: str | None = None,
        settings: Mapping[str, Any] | None = None,
        tools: str = TOOLS,
        arguments: Sequence[str] = (),
    ) -> None:
        self.lab = lab
        command = client_command(binary, lab, plugin_dirs, resume, tools)
        command += ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        if model:
            command += ["--model", model]
        if settings:
            command += ["--settings", json.dumps(settings)]
        self._news = threading.Condition()
        self.events: list[Event] = []
        self._ended = False
        self._stderr = open(lab.root / "stderr.txt", "ab")  # noqa: SIM115 - closed in close()
        self._process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=lab.project,
            env=lab.environment(base_url),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Claude:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def session(self) -> str:
        """The id of the session, as the client last named it."""
        with self._news:
            return next(e["session_id"] for e in reversed(self.events) if e.get("session_id"))

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"type": "raw", "text": line.decode("utf-8", "replace")}
            with self._news:
                self.events.append(event)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def send(self, content: str | list[dict[str, Any]]) -> None:
        """Give the client a prompt without waiting for anything."""
        self._write({"type": "user", "message": {"role": "user", "content": content}})

    def interrupt(self) -> None:
        """Stop the running turn, as Escape does."""
        self._write({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}})

    def _write(self, value: Event) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        self._process.stdin.flush()

    def wait(self, wanted: Callable[[Event], bool], since: int = 0, seconds: float = TURN_LIMIT) -> int:
        """Block until an event at or after index ``since`` is wanted; returns the index of that event."""
        until = time.monotonic() + seconds
        place = since
        with self._news:
            while True:
                while place < len(self.events):
                    if wanted(self.events[place]):
                        return place
                    place += 1
                left = until - time.monotonic()
                if self._ended or left <= 0:
                    state = "the client ended" if self._ended else f"nothing came in {seconds} s"
                    raise TimeoutError(f"{state}; last events: {self.events[-3:]}")
                self._news.wait(left)

    def ask(self, content: str | list[dict[str, Any]], seconds: float = TURN_LIMIT) -> Turn:
        """Give a prompt (or a slash command) and wait for its result."""
        since, begun = len(self.events), time.monotonic()
        self.send(content)
        return self.finish(since, begun, seconds)

    def finish(self, since: int, begun: float, seconds: float = TURN_LIMIT) -> Turn:
        """Wait for the result of the turn whose events begin at index ``since``."""
        end = self.wait(lambda e: e.get("type") == "result", since, seconds)
        last = self.events[end]
        return Turn(
            self.events[since : end + 1],
            str(last.get("result", "")),
            str(last.get("subtype", "")),
            time.monotonic() - begun,
        )

    def wait_for_queue(self, words: str, seconds: float = 10.0) -> None:
        """Block until the client has taken up words that came while it works: its session file says so."""
        needle = json.dumps(words)[1:-1].encode()
        until = time.monotonic() + seconds
        while not any(
            b'"operation":"enqueue"' in line and needle in line
            for line in self.lab.transcript(self.session).read_bytes().splitlines()
        ):
            if time.monotonic() > until:
                raise TimeoutError(f"the client did not take up {words!r}")
            threading.Event().wait(0.01)

    def close(self, seconds: float = 30.0) -> int:
        """End the client as a closed terminal does; kills it where it does not end."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._reader.join(5)
        self._stderr.close()
        return code


def path_with(*folders: Path) -> str:
    """A PATH of these folders and the system's own: no other program of the caller's is found."""
    return os.pathsep.join([*map(str, folders), "/usr/local/bin", "/usr/bin", "/bin"])
