"""Inputs that nobody would write, by the thousand: each must end well, and how it ended is counted.

    python scripts/fuzz.py [files|sessions|ladder|reports|frames ...] [--inputs N] [--seed N] [--seconds N]

``files``: session files of every format, their bytes and their JSON values mutated, read and compacted. ``sessions``:
transcripts of a real shell's output and of reads of real files, with a second writer who changes the files while the
pass runs; what is called verified must be on the disk when the pass has ended. ``ladder``: sessions that `auto`
compacts, with notes in inputs, and the way back, also from a damaged compacted session (scripts/fuzzed_ladder.py).
``reports``: mutated reports, explained
as text and as a page. ``frames``: mutated headers of the daemon's socket.

Prints the count by kind and outcome. A fault (any error but a refusal that names its cause) or a hang (over ten
seconds) is printed with the number of its input, which ``--seed`` and the number make again; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import hashlib
import json
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType

import orjson

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fuzzed_ladder import ladder
from making import MadeSession, numbered
from transcript.test_fuzz import SEEDS, mutated

from lcc.compaction.compact import Compacted, compact
from lcc.contract.options import PassOptions, RequestError
from lcc.contract.report_reader import ReportError, read_report
from lcc.explain.grouped import explain
from lcc.explain.html import page
from lcc.relevance.ports import Ports
from lcc.transcript import Edits, Json, TranscriptError, read_transcript, render
from lcc_daemon.protocol import ProtocolError, frame, parse_header, read_frame
from lcc_hook.client import header_for

LONGEST = 10
"""Seconds after which an input counts as a hang."""
ODD: tuple[Json, ...] = (
    None, True, 0, -1, 2**63, 2**64 - 1, 1.5, "", "x" * 300, "\u2028\n\r\0", [], [[]], {}, {"type": []}, [{"id": {}}],
)  # fmt: skip
MODES = ("lossless", "recoverable", "lossy")
SHOWN_FAULTS = 5


class HangError(BaseException):
    """An input took too long. No `Exception`, so that nothing on the way takes it for one of its own."""


@contextmanager
def bounded() -> Iterator[None]:
    """Raise ``HangError`` when what stands inside takes too long."""

    def stop(number: int, at: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def require(holds: bool, outcome: str) -> str:
    """``outcome``, where what it promises holds."""
    assert holds, outcome
    return outcome


def odd_value(value: Json, chosen: random.Random) -> Json:
    """``value`` with one value in it replaced, removed, doubled or renamed."""
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    if not inner or chosen.random() < 0.1:
        return chosen.choice(ODD)
    key, at = chosen.choice(inner)
    if isinstance(value, dict):
        changed = dict(value)
        match chosen.randrange(8):
            case 0:
                del changed[str(key)]
            case 1:
                changed[str(key) + "x"] = changed.pop(str(key))
            case _:
                changed[str(key)] = odd_value(at, chosen)
        return changed
    assert isinstance(value, list)
    place = int(key)
    if chosen.randrange(8) == 0:
        return [*value[: place + 1], *value[place:]]
    return [*value[:place], odd_value(at, chosen), *value[place + 1 :]]


def odd_json(raw: bytes, chosen: random.Random) -> bytes:
    """One line of ``raw`` with a value of another kind."""
    lines = raw.split(b"\n")
    place = chosen.choice([number for number, line in enumerate(lines) if line])
    lines[place] = orjson.dumps(odd_value(orjson.loads(lines[place]), chosen))
    return b"\n".join(lines)


def files(chosen: random.Random) -> str:
    """A damaged session file: refused with its place, or read, given back as it was, and compacted."""
    change = odd_json if chosen.random() < 0.5 else mutated
    raw = change(chosen.choice(SEEDS), chosen)
    try:
        transcript = read_transcript(raw)
    except TranscriptError as error:
        return require(bool(error.place and error.problem), "refused")
    assert render(transcript, Edits()) == raw
    if chosen.random() < 0.2:
        compact(transcript, PassOptions(provider="rules", rules_mode=chosen.choice(MODES)))  # type: ignore[arg-type]
        return "compacted"
    return "read"


@lru_cache(maxsize=1)
def shell_outputs() -> tuple[tuple[str, str], ...]:
    """What a shell really says here, in several shapes: lists, errors, colours, other line ends, other scripts."""
    commands = (
        "ls -la /usr", "cat /etc/passwd", "seq 1 200", "ls /nowhere", "printf 'a\\r\\nb\\r\\n'", "id", "df",
        "printf '\\033[31mred\\033[0m\\n'", "find /usr/share -maxdepth 1", "printf '解析器 失败\\n'", "false",
        "git --version", "uname -a",
        "head -c 300 /dev/urandom | od -c", "yes | head -300", "stat /etc", "date -u +%s", "printf 'no end'",
    )  # fmt: skip
    found = []
    for command in commands:
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=20, check=False)
        found.append((command, (done.stdout + done.stderr).decode("utf-8", "replace")))
    return tuple(found)


@lru_cache(maxsize=1)
def _world() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="lcc-fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def sessions(chosen: random.Random) -> str:
    """A session of shell outputs and reads while a second writer is at work: no note is called verified that is not."""
    folder = _world()
    session = MadeSession("Go on with the work", cwd=str(folder))
    paths = [folder / f"part-{number}.txt" for number in range(3)]
    for _ in range(chosen.randint(2, 12)):
        if chosen.random() < 0.5:
            command, output = chosen.choice(shell_outputs())
            session.bash(command, output)
            continue
        path = chosen.choice(paths)
        content = "".join(f"line {number} {chosen.randrange(100)}\n" for number in range(chosen.randint(1, 60)))
        if not path.exists() or chosen.random() < 0.5:
            path.write_text(content)
        session.read(str(path), numbered(path.read_text(), form="{}\t{}"))
    session.talk(chosen.randrange(8))

    def write(_: Compacted) -> None:
        if chosen.random() < 0.4:
            path = chosen.choice(paths)
            if chosen.random() < 0.3:
                path.unlink(missing_ok=True)
            else:
                path.write_text(f"somebody else's {chosen.randrange(10**6)}\n")

    mode = chosen.choice((*MODES, "stashed"))
    options = PassOptions(provider="rules", rules_mode=mode, question=chosen.choice(("", "part-1.txt")))  # type: ignore[arg-type]
    ports = Ports(stash_folder=folder / "stash")
    answer = compact(read_transcript(session.raw()), options, ports, stage=write)
    assert not answer.report["lossless_violations"]
    verified = 0
    for record in answer.report["decisions"]:
        disk = record.get("disk")
        if disk:
            verified += 1
            assert hashlib.sha256(Path(disk["real"]).read_bytes()).hexdigest() == disk["sha256"]
    return f"{mode}, {'verified notes' if verified else 'no verified note'}"


@lru_cache(maxsize=1)
def _report() -> bytes:
    session = MadeSession("Go on")
    for command, output in shell_outputs():
        session.bash(command, output)
    session.talk(12)
    made = compact(read_transcript(session.raw()), PassOptions(provider="rules", rules_mode="lossless"))
    return orjson.dumps(made.report)


def reports(chosen: random.Random) -> str:
    """A damaged report: refused, or explained in every form."""
    raw = (odd_json if chosen.random() < 0.8 else mutated)(_report(), chosen)
    try:
        report = read_report(raw)
    except ReportError as error:
        return require(bool(str(error)), "refused")
    if chosen.random() < 0.3:
        json.dumps(explain(report, 5).as_json())
        page(report)
        return "explained"
    return "read"


def frames(chosen: random.Random) -> str:
    """A damaged header, now and then over a real socket: a request, or a refusal of one line."""
    env = {f"LCC_{chosen.randrange(9)}".encode(): bytes(chosen.randrange(1, 256) for _ in range(9)) for _ in range(3)}
    data = mutated(header_for(chosen.choice(("compact", "status", "stop")), env), chosen)
    try:
        if chosen.random() < 0.02:
            data = asyncio.run(_over_a_socket(mutated(frame(data), chosen)))
        parse_header(data)
    except ProtocolError as error:
        return require(bool(error.reason) and "\n" not in error.say, "refused")
    except (ConnectionError, EOFError):
        return "cut off"
    return "a request"


async def _over_a_socket(data: bytes) -> bytes:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        return bytes(await read_frame(ours, 65536, "the header"))


KINDS: dict[str, Callable[[random.Random], str]] = {
    "files": files,
    "sessions": sessions,
    "ladder": lambda chosen: ladder(chosen, _world(), shell_outputs(), mutated),
    "reports": reports,
    "frames": frames,
}


def fuzz(kind: str, seed: int, numbers: Iterable[int], until: float) -> tuple[Counter[str], list[str]]:
    """The count by outcome of the inputs ``numbers`` of a kind, and what went wrong."""
    outcomes: Counter[str] = Counter()
    faults: list[str] = []
    for number in numbers:
        if time.monotonic() > until:
            break
        try:
            with bounded():
                outcome = KINDS[kind](random.Random(f"{seed} {kind} {number}"))
        except HangError:
            outcome = "HANG"
            faults.append(f"{kind} {number}: over {LONGEST} s")
        except RequestError as error:
            outcome = f"refused options: {error}"
        except Exception:
            outcome = "FAULT"
            faults.append(f"{kind} {number}: {traceback.format_exc(limit=-4)}")
        outcomes[outcome] += 1
    return outcomes, faults


def main() -> int:
    parser = argparse.ArgumentParser(description="Inputs that nobody would write; how each ended is counted.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all of them by default")
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs of each kind")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600, help="for each kind at most")
    options = parser.parse_args()
    for kind in options.kinds:
        if kind not in KINDS:
            parser.error(f"{kind}: none of {', '.join(KINDS)}")
    failed = False
    for kind in options.kinds or KINDS:
        began = time.monotonic()
        numbers = range(options.first, options.first + options.inputs)
        outcomes, faults = fuzz(kind, options.seed, numbers, began + options.seconds)
        print(f"{kind}: {outcomes.total():,} inputs in {time.monotonic() - began:.0f} s", flush=True)
        for outcome, count in outcomes.most_common():
            print(f"  {count:>10,}  {outcome}")
        for fault in faults[:SHOWN_FAULTS]:
            print(f"  {fault}")
        failed = failed or bool(faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
