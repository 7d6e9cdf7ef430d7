"""A made workspace on a real disk and the session of an agent that works in it.

Operations are plain data, so that hypothesis can shrink them; `World.run` carries them out one after the other:
it changes the files, and writes the calls and results that a client would have recorded.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from making import Message, call_message, numbered, result_message

REMINDER = "\n\n<system-reminder>\nWhenever you read a file, consider whether it looks malicious.\n</system-reminder>\n"
STUB = (
    "File unchanged since last read. The content from the earlier Read tool_result in this conversation is still "
    "current — refer to that instead of re-reading."
)
ADDED = ("", "", "", "\nShell cwd was reset to /w", "\n\n... [12 lines truncated] ...", REMINDER)
NAMES = (
    "plain.py",
    "folder/deep/inner.txt",
    "with space.md",
    "x (lines 1-2)",
    "x (lines 1-2).txt",
    "tick`s.md",
    "new\nline.txt",
    "ünï→code.txt",
    "sep\u2028arator.txt",
    "a to recover] b.txt",
    " leading.txt",
    "quo'te.txt",
    "dollar$.txt",
    "-dash.txt",
)
SNIPPETS = (
    "def parse(self, text):",
    "    return [row for row in rows]",
    "",
    "\ttabbed",
    "     1→import os",
    "2\tsecond",
    "[removed: re-read plain.py to recover]",
    "[identical output kept at c3]",
    "[output = lines 1-2 of c4]",
    "<system-reminder>",
    "emoji 🎉 and é",
    "nel\u0085vt\vff\fls\u2028ps\u2029end",
    "carriage\rreturn",
    "Output:",
    "Wall time: 3 seconds",
    "x" * 90,
    "a line as long as a paragraph, " * 15,
    "a line that is common in logs, INFO 200 OK",
    "a line that is common in logs, INFO 200 OK",
)


def texts(most_lines: int = 14) -> st.SearchStrategy[str]:
    """File contents: ordinary and odd lines, LF or CRLF, with or without a final newline, empty too."""
    line = st.one_of(st.sampled_from(SNIPPETS), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
    return st.builds(
        lambda lines, end, final: end.join(lines) + (end if final else ""),
        st.lists(line, max_size=most_lines),
        st.sampled_from(["\n", "\n", "\n", "\r\n"]),
        st.booleans(),
    )


@dataclass(frozen=True)
class Write:
    """The agent writes a file with a tool; ``seen`` False: something outside the session writes it."""

    name: str
    content: str
    seen: bool = True


@dataclass(frozen=True)
class Script:
    """An opaque command that writes a file."""

    name: str
    content: str


@dataclass(frozen=True)
class Read:
    """The agent reads a file with the read tool."""

    name: str
    style: str
    offset: int | None
    limit: int | None
    phantom: bool
    reminder: bool
    where: str


@dataclass(frozen=True)
class Shell:
    """The agent reads a file with a command."""

    name: str
    program: str
    count: int
    codex: bool
    strip: str
    """The characters that the client strips from the output's end."""
    where: str
    added: str
    """What the client puts behind it."""


@dataclass(frozen=True)
class Repeat:
    """Some tool prints an earlier output again, or lines of it, or more around it."""

    back: int
    first: int
    last: int
    around: str
    codex: bool
    flag: bool | None


@dataclass(frozen=True)
class Other:
    """Any other call: an error, a listing, an output that looks like a note."""

    tool: str
    text: str
    flag: bool | None


@dataclass(frozen=True)
class Stub:
    """The client says that the file has not changed since an earlier read."""

    name: str


@dataclass(frozen=True)
class Strange:
    """A read of a path that a transcript can hold and a disk need not."""

    kind: str
    text: str


@dataclass(frozen=True)
class Say:
    """The user says something; ``role`` may be the assistant's."""

    role: str
    text: str


@dataclass(frozen=True)
class Unanswered:
    """A call that got no result."""

    name: str


@dataclass(frozen=True)
class Parallel:
    """The two newest calls are made in one message, and their results arrive in one."""


@dataclass(frozen=True)
class Author:
    """The agent writes at length: into a file, a part of one, a command or an agent's prompt; or lists many paths."""

    kind: str
    name: str
    lines: int
    odd: str
    flag: bool | None


AUTHORS = ("write", "edit", "edits", "command", "agent", "plan", "listing", "commits")


Op = Write | Script | Read | Shell | Repeat | Other | Stub | Strange | Say | Unanswered | Parallel | Author

TRUE_TO_THE_FILE = ("dotdot", "link inside", "link outside", "link folder")
STRANGE = (
    *TRUE_TO_THE_FILE,
    "nul",
    "long",
    "trailing slash",
    "loop",
    "fifo",
    "folder",
    "too large",
    "not utf-8",
    "missing",
    "empty path",
)


def authors() -> st.SearchStrategy[Op]:
    """One operation of which `auto` may take the input, or of whose output an excerpt may stay."""
    return st.builds(
        Author,
        st.sampled_from(AUTHORS),
        st.sampled_from(NAMES),
        st.integers(4, 90),
        st.sampled_from(SNIPPETS),
        st.sampled_from([None, False, False, True]),
    )


def operations(*, any_disk: bool) -> st.SearchStrategy[Op]:
    """One operation.

    ``any_disk`` False: files change by calls alone, and every output is what the disk held, as the transcript
    proxy has to suppose.
    """
    name = st.sampled_from(NAMES + NAMES[:3] * 6)
    where = st.sampled_from(["absolute", "call cwd", "session", "workdir"])
    flag = st.sampled_from([None, None, None, True, False])
    small = st.integers(0, 9)
    reads = st.builds(
        Read,
        name,
        st.sampled_from(["arrow", "tab", "plain"] if any_disk else ["arrow", "tab"]),
        st.sampled_from([None, None, None, 0, 1, 2, 5]),
        st.sampled_from([None, None, 1, 2, 4, 50]),
        st.booleans(),
        st.booleans(),
        where,
    )
    programs = ["cat", "cat -n", "nl -ba", "sed", "sed $", "head", "head -n", "tail", "cat | x"]
    strips = st.sampled_from(["", "\n", " \t\r\n\v\f\u0085\u2028"] if any_disk else ["", "\n"])
    shells = st.builds(
        Shell, name, st.sampled_from(programs), small, st.booleans(), strips, where, st.sampled_from(ADDED)
    )
    repeats = st.builds(Repeat, st.integers(0, 6), small, small, st.sampled_from(SNIPPETS), st.booleans(), flag)
    others = st.builds(Other, st.sampled_from(["Grep", "mcp__x__y", "Bash", "WebFetch"]), texts(), flag)
    written = st.builds(Write, name, texts(), st.booleans() if any_disk else st.just(True))
    kinds: list[st.SearchStrategy[Op]] = [
        *[reads] * 12,
        *[shells] * 6,
        *[repeats] * 6,
        *[written] * 2,
        st.builds(Script, name, texts()),
        st.builds(Stub, name),
        *[st.builds(Strange, st.sampled_from(STRANGE if any_disk else TRUE_TO_THE_FILE), texts())] * 3,
        *[st.just(Parallel())] * 2,
        st.builds(Say, st.sampled_from(["user", "assistant"]), st.sampled_from([*NAMES, "go on", "see c2"])),
        st.builds(Unanswered, name),
        *[others] * 3,
    ]
    return st.sampled_from(kinds).flatmap(lambda kind: kind)


@dataclass
class World:
    """The workspace, and the messages so far."""

    folder: Path
    snake: bool = False
    files: dict[str, str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    calls: int = 0
    outputs: list[str] = field(default_factory=list)
    sealed: int = 0
    """The messages before this one are history: a pass has seen them."""

    def __post_init__(self) -> None:
        self.root = str(self.folder / "work")
        self.cwd = str(self.folder / "work" / "session")
        os.makedirs(self.cwd)
        os.makedirs(os.path.join(self.root, "elsewhere"))
        self.messages.append({"role": "user", "text": "Mend it.", "kept": {"unknown": 1}})

    def run(self, operations: list[Op]) -> None:
        """Carry the operations out."""
        for operation in operations:
            getattr(self, "_" + type(operation).__name__.lower())(operation)

    def path(self, name: str) -> str:
        """Where a named file lies."""
        return os.path.join(self.cwd, name)

    def content(self, name: str) -> str:
        """What a named file holds; it is made when it is first asked for."""
        if name not in self.files:
            lines = [f"{name!r} holds line {number} of it" for number in range(1, 9)]
            self._put(name, "\n".join(lines) + "\n" * (len(name) % 2))
        return self.files[name]

    def _put(self, name: str, content: str) -> None:
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_bytes(content.encode())
        self.files[name] = content

    def _call(self, tool: str, given: Any, text: str | None, flag: bool | None = None, cwd: str | None = None) -> None:
        """Record a call and its result, as the client would."""
        self.calls += 1
        call_id = f"c{self.calls}"
        asked = call_message(call_id, tool, given, f"step {self.calls}", **({} if cwd is None else {"cwd": cwd}))
        self.messages.append(_snake(asked) if self.snake else asked)
        if text is None:
            return
        self.outputs.append(text)
        answered = result_message(call_id, text, flag)
        self.messages.append(_snake(answered) if self.snake else answered)

    def _named(self, name: str, where: str) -> tuple[str, str | None, str | None]:
        """A file's path as a call writes it, the call's recorded directory and its own ``workdir``."""
        if where == "call cwd":
            return name, self.cwd, "session"  # what is recorded of a call has its relative workdir already
        if where == "workdir":
            return name, None, "."
        return (self.path(name) if where == "absolute" else name), None, None

    def _write(self, op: Write) -> None:
        self._put(op.name, op.content)
        if op.seen:
            self._call("Write", {"file_path": self.path(op.name), "content": op.content}, "written", False)

    def _author(self, op: Author) -> None:
        body = "".join(f"{op.odd} value_{self.calls}_{number} = {number}\n" for number in range(op.lines))
        path = self.path(op.name)
        if op.kind == "write":
            self._put(op.name, body)
            self._call("Write", {"file_path": path, "content": body}, "written", op.flag)
        elif op.kind == "edit":
            old = self.content(op.name)
            self._put(op.name, body)
            self._call("Edit", {"file_path": path, "old_string": old, "new_string": body}, "edited", op.flag)
        elif op.kind == "edits":
            edits = [{"old_string": "a", "new_string": body}, {"old_string": body, "new_string": "b", "all": True}]
            self._call("MultiEdit", {"file_path": path, "edits": edits}, "edited", op.flag)
        elif op.kind == "command":
            self._call("Bash", {"command": f"cat > x <<'E'\n{body}E", "timeout": 1000}, "", op.flag)
        elif op.kind == "agent":
            self._call("Task", {"prompt": body, "description": "Look"}, f"agentId: a{self.calls}\n{body}", op.flag)
        elif op.kind == "plan":
            self._call("ExitPlanMode", {"plan": body}, "ok", op.flag)
        elif op.kind == "listing":
            found = "".join(f"src/part{self.calls}/{op.lines}/module_{number}.py\n" for number in range(op.lines))
            self._call("Glob", {"pattern": "**/*.py"}, found + op.odd, op.flag)
        else:
            log = "".join(f"{self.calls * 97 + number * 31:x}abcdef1 change {number}\n" for number in range(6))
            self._call("Bash", {"command": "git log --oneline"}, log + body, op.flag)

    def _script(self, op: Script) -> None:
        self._put(op.name, op.content)
        self._call("Bash", {"command": "python make.py"}, "made", None, self.root)

    def _read(self, op: Read) -> None:
        lines = self.content(op.name).split("\n")
        if not op.phantom and lines[-1] == "" and len(lines) > 1:
            lines.pop()
        start = max(op.offset or 1, 1)
        part = lines[start - 1 :][: op.limit]
        text = _shown(part, op.style, op.offset if op.offset is not None else 1)
        if not part:
            text = REMINDER.strip()
        elif op.reminder:
            text += REMINDER
        path, cwd, workdir = self._named(op.name, op.where)
        given: Message = {"file_path": path}
        given.update({key: value for key, value in (("offset", op.offset), ("limit", op.limit)) if value is not None})
        if workdir:
            given["workdir"] = workdir
        self._call("Read", given, text, None, cwd)

    def _shell(self, op: Shell) -> None:
        content = self.content(op.name)
        whole = content.split("\n")
        lines = [line + "\n" for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])
        count = op.count + 1
        path, cwd, workdir = self._named(op.name, op.where)
        word = shlex.quote(path)
        shown, command = {
            "cat": (lines, f"cat {word}"),
            "cat -n": (_numbered(lines), f"cat -n {word}"),
            "nl -ba": (_numbered(lines), f"nl -ba {word}"),
            "sed": (lines[op.count : op.count + 3], f"sed -n '{count},{count + 2}p' {word}"),
            "sed $": (lines[op.count :], f"sed -n '{count},$p' {word}"),
            "head": (lines[:10], f"head {word}"),
            "head -n": (lines[:count], f"head -n {count} {word}"),
            "tail": (lines[-count:], f"tail -{count} {word}"),
            "cat | x": (lines[::-1], f"cat {word} | tac"),
        }[op.program]
        text = "".join(shown).rstrip(op.strip) + op.added
        if not op.codex:
            self._call("Bash", {"command": command, **({"cwd": workdir} if workdir else {})}, text, None, cwd)
            return
        text = _codex(self.calls, text)
        self._call("exec_command", {"cmd": command, **({"workdir": workdir} if workdir else {})}, text, None, cwd)

    def _repeat(self, op: Repeat) -> None:
        text = self.outputs[-1 - op.back % len(self.outputs)] if self.outputs else op.around
        lines = text.split("\n")
        first, last = op.first % len(lines), op.last % len(lines)
        if op.first == op.last:
            text = f"{op.around}\n{text}\n{op.around}"
        elif first <= last and (op.first, op.last) > (3, 3):
            text = "\n".join(lines[first : last + 1])
        if op.codex:
            self._call("exec_command", {"cmd": "make log"}, _codex(self.calls, text), op.flag)
        else:
            self._call("Grep", {"pattern": "x"}, text, op.flag)

    def _other(self, op: Other) -> None:
        given = {"Bash": {"command": "git log | head"}, "WebFetch": {"url": "https://example.org"}}
        self._call(op.tool, given.get(op.tool, {"pattern": "x"}), op.text, op.flag)

    def _stub(self, op: Stub) -> None:
        self._call("Read", {"file_path": self.path(op.name)}, STUB)

    def _strange(self, op: Strange) -> None:
        folder = os.path.join(self.root, "elsewhere")
        path = os.path.join(folder, f"strange{self.calls}")
        content = (
            op.text or "a little text that is long enough to be worth a note, or so one hopes, with some more of it"
        )
        data = content.encode()
        if op.kind == "fifo":
            os.mkfifo(path)
        elif op.kind == "loop":
            os.symlink(path, path)
        elif op.kind == "folder":
            os.mkdir(path)
        elif op.kind == "too large":
            Path(path).write_bytes(data)
            os.truncate(path, 4 * 1024 * 1024 + 1)
        elif op.kind == "not utf-8":
            Path(path).write_bytes(data + b"\xff")
        elif op.kind in ("link inside", "link outside"):
            target = os.path.join(folder if op.kind == "link inside" else self.root, f"target{self.calls}")
            Path(target).write_bytes(data)
            os.symlink(target, path)
        elif op.kind == "link folder":
            os.symlink(self.root, path)
            Path(self.root, f"through{self.calls}").write_bytes(data)
            path += f"/through{self.calls}"
        elif op.kind not in ("missing", "empty path"):
            Path(path).write_bytes(data)
        path = {
            "nul": path + "\0",
            "long": path + "/" + "n" * 10_000,
            "trailing slash": path + "/",
            "dotdot": os.path.join(folder, "..", "elsewhere", os.path.basename(path)),
            "empty path": "",
        }.get(op.kind, path)
        self._call("Read", {"file_path": path}, _shown(content.split("\n"), "tab", 1))

    def _say(self, op: Say) -> None:
        self.messages.append({"role": op.role, "text": op.text})

    def _parallel(self, op: Parallel) -> None:
        uses, found = ("tool_calls", "tool_results") if self.snake else ("toolUses", "toolResults")
        four = self.messages[max(self.sealed, len(self.messages) - 4) :]
        if [[key in message for key in (uses, found)] for message in four] != [[True, False], [False, True]] * 2:
            return
        calls = {**four[0], uses: four[0][uses] + four[2][uses]}
        answers = {**four[1], found: four[1][found] + four[3][found]}
        self.messages[-4:] = [calls, answers]

    def _unanswered(self, op: Unanswered) -> None:
        self._call("Read", {"file_path": self.path(op.name)}, None)


def _shown(lines: list[str], style: str, first: int) -> str:
    if style == "plain":
        return "\n".join(lines)
    form = "{:>6}→{}" if style == "arrow" else "{}\t{}"
    return numbered("\n".join(lines), first, form) if lines else ""


def _snake(message: Message) -> Message:
    """The same by the other names that the seed allows."""
    uses = [
        {{"tool_use_id": "id", "tool": "name"}.get(key, key): value for key, value in use.items()}
        for use in message.get("toolUses", [])
    ]
    rest = {key: value for key, value in message.items() if key not in ("toolUses", "toolResults")}
    return rest | ({"tool_calls": uses} if uses else {"tool_results": message["toolResults"]})


def _numbered(lines: list[str]) -> list[str]:
    return [f"{number:>6}\t{line}" for number, line in enumerate(lines, 1)]


def _codex(number: int, text: str) -> str:
    return (
        f"Chunk ID: {number:06x}\nWall time: 0.{number} seconds\nProcess exited with code 0\n"
        f"Original token count: {len(text) // 4}\nOutput:\n{text}"
    )
