"""Real sessions, compacted and resumed by the real Claude Code client with the plugin's defaults, each note followed.

    python scripts/replay_sessions.py FOLDER [--sessions 6] [--client VERSION]

Each session of FOLDER (Claude Code's files) is put into a home of its own under a project of its own: its folder's name
is that of this project everywhere in the file, and the files that the session recorded lie there as it left them. The
real client resumes it, is told `/compact`, and is asked on; then another process of it resumes the result. The model is
a scripted one on loopback that follows a note of each kind: a file by Read, the stash by the plugin's own tool.

For each session the table tells what the user was told, whether the requests after it were right (every text, call and
result of the session is there as it was, or as a note), and which notes gave back the very bytes. "Can go" is what
`lcc compact` takes from the same file. Exit 1 where a session of which 25 % or more can go was not replaced, a request
was wrong, or a note did not give back what it stands for. Needs Node.js; the client is `install_client.py`'s.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT / "tests"))

from client.claude_process import Claude, Lab, path_with  # noqa: E402
from client.conversation import COMMAND_ROWS, conversation  # noqa: E402
from client.messages_api import Block, Body, MessagesApi, Reply, Script, call, say, serve, think, words_of  # noqa: E402
from replay import Workspace, write_files  # noqa: E402
from retention import SHARED  # noqa: E402

from lcc.transcript import Transcript, read_transcript  # noqa: E402
from lcc.transcript.lines import split  # noqa: E402

ENOUGH = 0.25
RECALL = "mcp__lcc__recall"
LONGEST = 55_000
"""Characters of what is had back: it comes in one answer."""
_FILE = re.compile(r"\[removed: re-read (?P<path>.+?)(?: \(lines (?P<first>\d+)-(?P<last>\d+)\))? to recover[^\]]*\]")
_STASH = re.compile(r"\[removed: \d+ tokens · lcc recall (?P<id>[0-9a-f]{12,64})\](?P<holds>\n\[it holds [^\]]*\])?")
_NOTE = re.compile(r"\[(?:removed: |identical output kept at |output = lines )")
_ROW = re.compile(r"^ *[0-9]+(?:→|\t|\Z)", re.MULTILINE)
_FIGURES = re.compile(r"\n\n<system-reminder>\n<total_tokens>[^<]*</total_tokens>\n</system-reminder>\Z")
"""What the client puts behind the newest result of a request."""
_REMINDER = re.compile(r"\n+<system-reminder>.*?</system-reminder>\n*\Z", re.DOTALL)


@dataclass
class Replayed:
    """What became of one session."""

    name: str
    can_go: float = 0.0
    told: str = ""
    wrong: list[str] = field(default_factory=list)
    followed: dict[str, bool] = field(default_factory=dict)
    """By kind of note: whether it gave back the very bytes."""

    @property
    def is_replaced(self) -> bool:
        """Whether the session was compacted by the plugin."""
        return "kept every message" in self.told

    @property
    def is_good(self) -> bool:
        """Whether it is as it has to be."""
        replaced = self.is_replaced or self.can_go < ENOUGH
        return replaced and not self.wrong and all(self.followed.values())


@dataclass(frozen=True)
class Original:
    """What the session held before: texts of results and inputs of calls, by call id."""

    results: dict[str, str]
    inputs: dict[str, Any]
    texts: list[str]

    @classmethod
    def of(cls, transcript: Transcript) -> Original:
        """What the live branch of a session file holds."""
        pairs = list(transcript.pairs())
        return cls(
            {pair.use.id: pair.result.text for pair in pairs},
            {pair.use.id: pair.use.input for pair in pairs},
            [message.text for message in transcript.messages if message.text and not message.by_client],
        )


def replay(path: Path, binary: Path, root: Path, target: str | None = None) -> Replayed:
    """Compact and resume the session in ``path`` with the client ``binary``, in a lab under ``root``."""
    env = {"LCC_PYTHON": sys.executable, "LCC_BUDGET_MS": "60000", **({"LCC_TARGET": target} if target else {})}
    lab = Lab(root, path_with(), env)
    session, raw = moved_into(path.read_bytes(), lab)
    original = Original.of(read_transcript(raw))
    found = Replayed(path.name, can_go(lab, raw))
    wanted: dict[str, tuple[str, str]] = {}

    def follow(body: Body) -> list[Block]:
        thought = [think("I follow them.")] if (body.get("thinking") or {}).get("type") == "enabled" else []
        return [*thought, *(list(calls_for(body, original, wanted)) or [say("There is nothing to follow.")])]

    try:
        with serve(Script([Reply(follow), Reply([say("Here.")]), Reply([say("Here again.")])])) as (api, url):
            with Claude(binary, lab, url, plugin_dirs=[CHECKOUT], resume=session) as claude:
                found.told = told(claude)
                claude.ask("Go on.")
                name = claude.session
            if found.is_replaced:
                with Claude(binary, lab, url, plugin_dirs=[CHECKOUT], resume=name) as claude:
                    claude.ask("And now?")
                judge(api, original, wanted, found)
    finally:
        stop = [Path(sys.executable).parent / "lcc-daemon", "stop"]
        subprocess.run(stop, env=lab.environment(), capture_output=True, check=False, timeout=60)
    return found


def told(claude: Claude) -> str:
    """What `/compact` tells the user. A task that the session left behind may end a turn of its own first."""
    turn = claude.ask("/compact")
    if not turn.said_to_user() and not turn.result.strip():
        turn = claude.finish(len(claude.events), 0.0)
    return " ".join(turn.said_to_user()) or turn.result.strip() or "(nothing)"


def is_whole(path: Path) -> bool:
    """Whether a client sends all of the session: no line is damaged, and it was not cut at its start."""
    transcript = read_transcript(path.read_bytes())
    first = transcript.messages[0] if transcript.messages else None
    return first is not None and first.role == "user" and not first.tool_results and not transcript.warnings


def moved_into(raw: bytes, lab: Lab) -> tuple[str, bytes]:
    """The session as one of the lab's project, under an id of its own, with its files; the id and the file's bytes."""
    rows = [document.value for document in split(raw)]
    folder = next(str(row["cwd"]) for row in rows if row.get("cwd"))
    session = str(uuid.uuid4())
    for old, new in [
        (folder, str(lab.project)),
        *((str(row["sessionId"]), session) for row in rows if "sessionId" in row),
    ]:
        raw = raw.replace(json.dumps(old)[1:-1].encode(), new.encode())
    raw = at_rest(raw)
    workspace = Workspace()
    for document in split(raw):
        workspace.take(document.value)
    inside = {name: text for name, text in workspace.files.items() if name.startswith(f"{lab.project}/")}
    write_files({name: text for name, text in inside.items() if "/../" not in name})
    place = lab.home / ".claude/projects" / "".join(c if c.isalnum() else "-" for c in str(lab.project))
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{session}.jsonl").write_bytes(raw)
    return session, raw


def at_rest(raw: bytes) -> bytes:
    """The session with a last word of the assistant's: one that was cut in the middle of a turn is none to compact."""
    rows = [document.value for document in split(raw)]
    last = next(row for row in reversed(rows) if row.get("uuid") and not row.get("isSidechain"))
    answer = next(row for row in reversed(rows) if row.get("type") == "assistant" and not row.get("isSidechain"))
    message = {**answer["message"], "id": "msg_at_rest", "content": [say("Done.")], "stop_reason": "end_turn"}  # type: ignore[dict-item]
    row = {**answer, "uuid": str(uuid.uuid4()), "parentUuid": last["uuid"], "message": message}
    return raw.removesuffix(b"\n") + b"\n" + json.dumps(row, ensure_ascii=False).encode() + b"\n"


def can_go(lab: Lab, raw: bytes) -> float:
    """The share of the session that `lcc compact` would take, in the same workspace."""
    (lab.root / "session.jsonl").write_bytes(raw)
    words = [
        "--provider",
        "rules",
        "--rules-mode",
        "auto",
        "--workspace-root",
        str(lab.project),
        "--dry-run",
        "-r",
        "-",
    ]
    command = [Path(sys.executable).parent / "lcc", "compact", lab.root / "session.jsonl", *words]
    done = subprocess.run(command, env=lab.environment(), capture_output=True, check=True)
    return float(json.loads(done.stdout)["reduction_ratio"])


def calls_for(body: Body, original: Original, wanted: dict[str, tuple[str, str]]) -> Iterator[Block]:
    """A call for the first note of each kind in the request. ``wanted`` gets what each has to give, with its kind."""
    for call_id, text, removed in notes_in(body, original):
        in_input = call_id not in original.results or original.results[call_id] != removed
        stash, file = _STASH.fullmatch(text), _FILE.match(text)
        kind = "input" if in_input else "excerpt" if stash and stash["holds"] else "note" if stash else "file"
        if kind in {kind for kind, _ in wanted.values()} or len(removed) > LONGEST:
            continue
        if stash:
            name = f"toolu_again_{len(wanted)}"
            wanted[name] = kind, removed
            yield call(name, RECALL, id=stash["id"], limit=60_000)
        elif file and not in_input:
            name = f"toolu_again_{len(wanted)}"
            wanted[name] = kind, bare(removed)
            first, last = file["first"], file["last"]
            span = {"offset": int(first), "limit": int(last) - int(first) + 1} if first else {}
            yield call(name, "Read", file_path=file["path"], **span)


def notes_in(body: Body, original: Original) -> Iterator[tuple[str, str, str]]:
    """Each note of a request: its call, the note, and what stood there before."""
    for item in conversation(body):
        if item.kind == "result" and item.key in original.results and _NOTE.match(item.text):
            if item.text != original.results[item.key]:
                yield item.key, item.text, original.results[item.key]
        elif item.kind == "call" and item.key in original.inputs:
            before = dict(strings(original.inputs[item.key]))
            for place, text in strings(json.loads(item.text)[1]):
                if place in before and before[place] != text:
                    yield item.key, text, before[place]


def strings(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every string in a value with its place."""
    if isinstance(value, str):
        yield above, value
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from strings(inner, (*above, key))


def bare(text: str) -> str:
    """A read's text without the numbers of its lines and the client's reminder."""
    return _ROW.sub("", _REMINDER.sub("", text))


def judge(api: MessagesApi, original: Original, wanted: dict[str, tuple[str, str]], found: Replayed) -> None:
    """Note what is wrong with the requests after the compaction, and whether what was had back is what went."""
    for request in api.requests:
        if request.status != 200:
            found.wrong.append(f"refused: {request.refusal}")
    main = api.of("main")
    for request in main:
        found.wrong += differences(request.body, original)
    first, last = conversation(main[0].body), conversation(main[-1].body)
    if len(main) < 2 or last[: len(first)] != first:
        found.wrong.append("the resumed request does not begin as the first one did")
    given = {item.key: _FIGURES.sub("", item.text) for item in conversation(main[-1].body) if item.kind == "result"}
    for name, (kind, text) in wanted.items():
        answer = given.get(name, "")
        found.followed[kind] = (bare(answer) == text) if kind == "file" else (answer == text)


def differences(body: Body, original: Original) -> Iterator[str]:
    """What of the session a request does not hold, neither as it was nor as a note."""
    items = conversation(body)
    results = {item.key: item.text for item in items if item.kind == "result"}
    inputs = {item.key: json.loads(item.text)[1] for item in items if item.kind == "call"}
    words = words_of(body["messages"])
    for call_id, text in original.results.items():
        now = results.get(call_id)
        if now is None:
            yield f"the result of {call_id} is not there"
        elif now != text and not _NOTE.match(now) and text.strip():
            yield f"the result of {call_id} is another one"
    for call_id, given in original.inputs.items():
        now_strings = dict(strings(inputs.get(call_id)))
        for place, text in strings(given):
            if now_strings.get(place) != text and not _NOTE.match(now_strings.get(place, "")):
                yield f"the input of {call_id} is another one"
    for text in original.texts:
        if text.strip() not in words and not text.strip().startswith(COMMAND_ROWS):
            yield f"words are not there: {text.strip()[:60]!r}"


def row(found: Replayed) -> str:
    """The session's line in the table."""
    followed = ", ".join(f"{kind} {'ok' if ok else 'WRONG'}" for kind, ok in sorted(found.followed.items())) or "none"
    requests = "right" if not found.wrong else f"WRONG: {found.wrong[0]} ({len(found.wrong)})"
    live = "replaced" if found.is_replaced else found.told
    return f"| {found.name} | {found.can_go:.0%} | {live} | {requests} | {followed} |"


def client(version: str) -> Path:
    """The client's program."""
    asked = subprocess.run(
        [sys.executable, CHECKOUT / "scripts/install_client.py", version], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise SystemExit(f"Claude Code {version} is not there: {asked.stderr.strip()}")
    return Path(asked.stdout.strip())


def main(words: Sequence[str] | None = None) -> int:
    """Replay the sessions that the command line names; 0 where all is well."""
    parser = argparse.ArgumentParser(description="Real sessions, compacted and resumed by the real client.")
    parser.add_argument("folder", nargs="?", type=Path, default=SHARED)
    parser.add_argument("--sessions", type=int, default=6, help="how many, the first by name")
    parser.add_argument("--client", default="2.1.332", metavar="VERSION")
    parser.add_argument("--target", help="the option of that name, for every session; 2 (tokens) climbs every rung")
    asked = parser.parse_args(words)
    files = sorted(path for path in asked.folder.glob("*.jsonl") if b'"sessionId"' in path.read_bytes()[:20_000])
    if not files:
        parser.exit(2, f"{asked.folder}: no sessions of Claude Code\n")
    binary = client(asked.client)
    cut = [path.name for path in files if not is_whole(path)]
    if cut:
        print(f"Left out, since they are damaged or begin in the middle: {', '.join(cut)}\n")
    files = [path for path in files if path.name not in cut]
    print("| session | can go | live | the two requests after it | followed back |\n| --- | ---: | --- | --- | --- |")
    good = True
    for path in files[: asked.sessions]:
        with tempfile.TemporaryDirectory(prefix="lcc-rp-", ignore_cleanup_errors=True) as folder:
            found = replay(path, binary, Path(folder), asked.target)
        good = good and found.is_good
        print(row(found), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
