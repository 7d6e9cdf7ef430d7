"""A row of the fault table, and one run of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from daemon.daemon_world import CHECKOUT, CLIENT, PYTHON, World, append_rows, make_event, row
from making import result, use

HANGS_AFTER: Final = 60
"""Seconds after which a call counts as hung. Its own time is 20 s, and 40 where it starts a daemon."""
HOST: Final = Path(__file__).with_name("module_host.mjs")
NOT_WORTH_IT: Final = ("nothing-new", "nothing-to-remove", "too-little")
"""Hand-overs after which the module leaves the session as it is."""
_NOTE = re.compile(
    r"\[removed: re-read (?P<path>.+?)(?: \(lines (?P<first>\d+)-(?P<last>\d+)\))? to recover"
    r"(?:; content verified on disk at compaction time)?\]"
)


@dataclass(frozen=True)
class Call:
    """One call of a hook, in its world's environment and what ``env`` changes of it ("-": not set)."""

    command: str = "compact"
    stdin: bytes | None = None
    """None: the event of the world."""
    env: Mapping[str, str] = field(default_factory=dict)
    program: tuple[str | Path, ...] = (PYTHON, "-I", "-S", "-E", CLIENT)
    before: Callable[[], object] | None = None
    """Called in the new process before the program begins."""
    meanwhile: Callable[[subprocess.Popen[bytes]], object] = lambda process: None
    """Called while the program runs."""
    stays_open: bool = False
    """Standard input is not closed until the program has ended."""

    @classmethod
    def of_module(cls, live: Live, plugin: Path = CHECKOUT, **more: Any) -> Call:
        """The module's whole answer to a compaction, in Node, with the processes that it starts."""
        node = shutil.which("node")
        assert node is not None, "Node.js is missing"
        transcript = more.pop("transcript", "")
        stdin = json.dumps({**json.loads(live.event), "transcript_path": str(transcript)}).encode()
        return cls(command=str(plugin), stdin=stdin, program=(node, HOST), **more)

    @classmethod
    def of_hook(cls, live: Live, event: str, plugin: Path = CHECKOUT, **more: Any) -> Call:
        """The command that hooks.json names for an event, run by a shell as the client does."""
        hooks = json.loads((CHECKOUT / "hooks.json").read_bytes())["hooks"]
        command = hooks[event][0]["hooks"][0]["command"]
        env = {"CLAUDE_PLUGIN_ROOT": str(plugin), **more.pop("env", {})}
        stdin = json.dumps({"session_id": "s", "source": "startup", "cwd": str(live.project)}).encode()
        return cls(command=command, stdin=stdin, program=("/bin/sh", "-c"), env=env, **more)


@dataclass(frozen=True)
class Outcome:
    """How a call ended: "replaced", "skip: WORD", "hand-over: WORD", or a word for what must not be; and its time."""

    ended: str
    seconds: float
    said: str = ""


class Live(World):
    """A home, its folders, and a session whose outputs are all on the disk."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for name in ("home", "project"):
            (root / name).mkdir()
        self.event = make_event(self, files=4)
        self.stack = ExitStack()

    def ran(self, call: Call) -> Outcome:
        """Make the call and say how it ended."""
        begun = time.monotonic()
        process = subprocess.Popen(
            [*map(str, call.program), call.command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.merged(dict(call.env)), cwd=self.root, preexec_fn=call.before,
        )  # fmt: skip
        beside = threading.Thread(target=call.meanwhile, args=(process,), daemon=True)
        beside.start()
        stdin = self.event if call.stdin is None else call.stdin
        try:
            out, err = self._talked(process, stdin, call.stays_open)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return Outcome("HUNG", time.monotonic() - begun)
        seconds = time.monotonic() - begun
        beside.join(HANGS_AFTER)
        if process.returncode != 0:
            return Outcome(f"EXIT {process.returncode}", seconds, err.decode(errors="replace")[-300:])
        return Outcome(self._ending(call, out), seconds, (out + err).decode(errors="replace")[-300:])

    def _talked(self, process: subprocess.Popen[bytes], stdin: bytes, stays_open: bool) -> tuple[bytes, bytes]:
        if not stays_open:
            return process.communicate(stdin, timeout=HANGS_AFTER)
        process.wait(HANGS_AFTER)
        return process.communicate()

    def _ending(self, call: Call, out: bytes) -> str:
        if call.command != "compact" and not call.command.startswith("/"):
            return _ending_of_hook(out)
        try:
            answer = json.loads(out)
        except ValueError:
            return "NO ANSWER"
        if answer.get("action") == "parts":
            answer = json.loads("".join(Path(part).read_text("utf-8") for part in answer["parts"]))
        match answer:
            case {"v": 1, "action": "hand-over", "reason": str(reason), "say": str(say)} if say and "\n" not in say:
                return f"{'skip' if reason in NOT_WORTH_IT else 'hand-over'}: {reason}"
            case {"v": 1, "action": "replace", "results": dict(results)} if results:
                return "replaced" if all(self.leads_back(*item) for item in results.items()) else "WRONG NOTE"
            case {"outcome": "replaced", "results": dict(results)} if results:
                return "replaced" if all(self.leads_back(*item) for item in results.items()) else "WRONG NOTE"
            case {"outcome": "skip" | "summary" as outcome, "line": str(line)}:
                return f"{'skip' if outcome == 'skip' else 'hand-over'}: {line and 'told'}"
        return "NO PLAN"

    def transcript(self) -> Path:
        """The session's file, with a row for each message of the event; what has no handle there stands in none."""
        path = self.root / "session.jsonl"
        last: str | None = None
        rows = []
        for number, message in enumerate(json.loads(self.event)["messages"]):
            name = message.get("handle", f"w{number}")
            blocks = [use(each["tool_use_id"], each["tool"], **each["input"]) for each in message["toolUses"]]
            blocks += [result(each["tool_use_id"], each["text"]) for each in message.get("toolResults", [])]
            rows.append(row(last, name, message["role"], blocks or message["text"], self))
            last = name
        append_rows(path, rows)
        return path

    def leads_back(self, call_id: str, text: str) -> bool:
        """Whether a result is as it was, or a note that gives it back now."""
        shown = {
            result["tool_use_id"]: result["text"]
            for message in json.loads(self.event)["messages"]
            for result in message.get("toolResults", [])
        }[call_id]
        note = _NOTE.fullmatch(text)
        if note is None:
            return bool(text == shown)
        try:
            lines = Path(note["path"]).read_text("utf-8").split("\n")
        except OSError:
            return False
        first, last = int(note["first"] or 1), int(note["last"] or len(lines) - 1)
        return bool("\n".join(f"{number}\t{lines[number - 1]}" for number in range(first, last + 1)) == shown)


def _ending_of_hook(out: bytes) -> str:
    """The ending of a hook that prints words, JSON or nothing: none of it stops the client."""
    if not out:
        return "hand-over: silent"
    try:
        said = json.loads(out)
    except ValueError:
        return "hand-over: words"
    return "hand-over: told" if isinstance(said, dict) and "decision" not in said else "BLOCKED"


Fault = Callable[[Live], Iterator[Call]]


@dataclass(frozen=True)
class Row:
    """A fault: its name, how every call in it must end, and what makes it. What ``make`` yields is called."""

    group: str
    name: str
    ends: str
    make: Fault

    is_shared: bool = False
    """What it does is of the call alone: it is made in the home of its group, where a daemon runs already."""

    def run(self, homes: Homes) -> Outcome:
        """Make the fault in a home, and the calls. Of several the first that does not end as it must counts."""
        with homes.home_of(self) as live, ExitStack() as live.stack:
            outcomes = [live.ran(call) for call in self.make(live)]
        return next((outcome for outcome in outcomes if outcome.ended != self.ends), outcomes[-1])


class Homes:
    """The homes of the rows: of its own for each, but one for all that share theirs. As a context: all end with it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._shared: dict[str, tuple[Live, threading.Lock]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Homes:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def home_of(self, row: Row) -> Iterator[Live]:
        """The home that a row is made in, which nobody else uses meanwhile."""
        if not row.is_shared:
            with _new_home() as live:
                yield live
            return
        with self._lock:
            if row.group not in self._shared:
                live = self._stack.enter_context(_new_home())
                live.start()
                self._shared[row.group] = live, threading.Lock()
        live, lock = self._shared[row.group]
        with lock:
            yield live


@contextmanager
def _new_home() -> Iterator[Live]:
    root = Path(tempfile.mkdtemp(prefix="lcc-", dir="/tmp"))
    live = Live(root)
    try:
        yield live
    finally:
        live.end()
        shutil.rmtree(root, ignore_errors=True)


class Table:
    """The rows of one group, in the order of their making."""

    def __init__(self, group: str, is_shared: bool = False) -> None:
        self.group = group
        self.is_shared = is_shared
        self.rows: list[Row] = []

    def row(self, name: str, ends: str) -> Callable[[Fault], Fault]:
        """Takes a fault into the table."""

        def add(make: Fault) -> Fault:
            self.rows.append(Row(self.group, name, ends, make, self.is_shared))
            return make

        return add
