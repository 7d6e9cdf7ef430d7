"""Speed and memory of reading and rendering transcripts, beside ``orjson.loads`` of the same bytes.

    python scripts/bench_transcript.py [CALLS ...]

For each format a made-up session of that many Read calls is written to a temporary file. CPU seconds are the
best of three in one process; memory is the growth of a fresh process's peak while it reads, then renders.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from lcc.transcript import Edits, apply_edits, read_transcript, render

RESULT_CHARS = 1000


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        Path(sys.argv[4]).write_bytes(session(sys.argv[2], int(sys.argv[3])))
        return
    if sys.argv[1:2] == ["--speed"]:
        print(speed(Path(sys.argv[3]).read_bytes(), sys.argv[2]))
        return
    if sys.argv[1:2] == ["--memory"]:
        memory(Path(sys.argv[3]))
        return
    print("format        calls     MB  loads s  read s  x loads  edit s  drop s  read x input  render MB  output MB")
    for calls in [int(argument) for argument in sys.argv[1:]] or [1000, 10_000, 50_000]:
        for form in WRITERS:
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / "transcript")
                child("--write", form, str(calls), path)
                print(f"{form:12} {calls:6} {child('--speed', form, path)} {child('--memory', form, path)}", flush=True)


def child(*arguments: str) -> str:
    """Run this program again; a process's peak counts that of its parent, so this one stays small."""
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def speed(raw: bytes, form: str) -> str:
    """CPU seconds of each step."""
    lines = [raw[start:end] for start, end in read_transcript(raw).documents] or [raw]
    loads = best(lambda: [orjson.loads(line) for line in lines])
    read = best(lambda: read_transcript(raw))
    transcript = read_transcript(raw)
    ids = [pair.use.id for pair in transcript.pairs()]
    notes = Edits(dict.fromkeys(ids, "[note]"))
    edit = best(lambda: (render(transcript, notes), apply_edits(transcript, notes)))
    drop = best(lambda: render(transcript, Edits({}, frozenset(ids[::2]))))
    return f"{len(raw) / 1e6:6.1f} {loads:8.3f} {read:7.3f} {read / loads:8.2f} {edit:7.3f} {drop:7.3f}"


def best(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        run()
        seconds.append(time.process_time() - begun)
    return min(seconds)


def memory(path: Path) -> None:
    """Print the growth of this process's peak: reading as a multiple of the input (which is not counted), rendering."""
    raw = path.read_bytes()
    before = peak()
    transcript = read_transcript(raw)
    read = peak()
    out = render(transcript, Edits({pair.use.id: "[note]" for pair in transcript.pairs()}))
    print(f"{(read - before) / len(raw):13.2f} {(peak() - read) / 1e6:10.1f} {len(out) / 1e6:10.1f}")


def peak() -> int:
    """Bytes; ``ru_maxrss`` counts kilobytes on Linux, bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def session(form: str, calls: int) -> bytes:
    """A session of ``calls`` Read calls with their results, as a file of the format."""
    return WRITERS[form](list(_steps(calls)))


def _document(messages: Iterable[dict[str, Any]]) -> bytes:
    return orjson.dumps({"messages": list(messages)})


def _lines(lines: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def _steps(calls: int) -> Iterator[tuple[str, dict[str, Any], str]]:
    chosen = random.Random(calls)
    body = "".join(f'{number:6}\u2192    def line_{number}(self): return "x"\n' for number in range(3000))
    for number in range(calls):
        start = chosen.randrange(len(body) - RESULT_CHARS)
        yield f"toolu_{number}", {"file_path": f"/p/f{number}.py"}, body[start : start + RESULT_CHARS]


def _payload(call_id: str, arguments: dict[str, Any], output: str) -> Iterator[dict[str, Any]]:
    use = {"tool_use_id": call_id, "tool": "Read", "input": arguments}
    yield {"role": "assistant", "text": f"Reading for {call_id}.", "toolUses": [use]}
    yield {"role": "user", "toolResults": [{"tool_use_id": call_id, "text": output}]}


def _request(call_id: str, arguments: dict[str, Any], output: str) -> Iterator[dict[str, Any]]:
    use = {"type": "tool_use", "id": call_id, "name": "Read", "input": arguments}
    yield {"role": "assistant", "content": [{"type": "text", "text": f"Reading for {call_id}."}, use]}
    yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": output}]}


def _session(steps: list[tuple[str, dict[str, Any], str]]) -> Iterator[dict[str, Any]]:
    """With the second copy of each output that the client keeps beside the message."""
    parent: str | None = None
    for call_id, arguments, output in steps:
        common = {"isSidechain": False, "cwd": "/p", "sessionId": "s", "version": "2.1.0", "gitBranch": "main"}
        use = {"type": "tool_use", "id": call_id, "name": "Read", "input": arguments}
        message = {"id": f"msg_{call_id}", "role": "assistant", "content": [use], "usage": {"input_tokens": 9}}
        yield {"parentUuid": parent, **common, "type": "assistant", "message": message, "uuid": f"a-{call_id}"}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": output}
        yield {
            "parentUuid": f"a-{call_id}",
            **common,
            "type": "user",
            "message": {"role": "user", "content": [result]},
            "uuid": f"r-{call_id}",
            "toolUseResult": {"type": "text", "file": {"filePath": arguments["file_path"], "content": output}},
        }
        parent = f"r-{call_id}"


def _rollout(steps: list[tuple[str, dict[str, Any], str]]) -> Iterator[dict[str, Any]]:
    yield {"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "cwd": "/p", "cli_version": "0.1"}}
    for call_id, arguments, output in steps:
        call = {
            "type": "function_call",
            "name": "exec",
            "arguments": orjson.dumps(arguments).decode(),
            "call_id": call_id,
        }
        yield {"timestamp": "t", "type": "response_item", "payload": call}
        answer = {"type": "function_call_output", "call_id": call_id, "output": output}
        yield {"timestamp": "t", "type": "response_item", "payload": answer}


WRITERS: dict[str, Callable[[list[tuple[str, dict[str, Any], str]]], bytes]] = {
    "payload": lambda steps: _document(m for step in steps for m in _payload(*step)),
    "messages-api": lambda steps: _document(m for step in steps for m in _request(*step)),
    "claude-code": lambda steps: _lines(_session(steps)),
    "codex": lambda steps: _lines(_rollout(steps)),
}
"""What writes a session in each format."""


if __name__ == "__main__":
    main()
