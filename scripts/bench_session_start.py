"""What a session's start costs with the plugin: processor time and memory of everything that the client starts.

    python scripts/bench_session_start.py                      # without the plugin, and with this checkout's
    python scripts/bench_session_start.py --before ../older    # beside another checkout's plugin
    python scripts/bench_session_start.py --rounds 9 --version 2.1.197

Each round is one headless session of the real client against a Messages API on loopback: one prompt, one answer, the
end. The variants take turns, so that all meet the same load. The daemon runs already, in folders of the run's own
(`--cold`: it does not). The client is that of the tests, the Python environment that of the script.

CPU is of the client and of all that it started and waited for or left behind, in seconds; memory is what these
processes hold (PSS, in MB) when the request comes, a second after the prompt for the servers to settle. Medians, and
the least in brackets. The daemon is not counted: it serves every session of the user.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).parents[1]
TICK = os.sysconf("SC_CLK_TCK")
PR_SET_CHILD_SUBREAPER = 36
SETTLE_SECONDS = 1.0
PYTHON = """#!{python}
import runpy, sys
words = [word for word in sys.argv[1:] if word not in ("-I", "-S", "-E")]
sys.path[:0] = {folders!r}
sys.argv[:] = words[1:]
if words[0] == "-m":
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
else:
    exec(words[1])
"""
"""An interpreter that has this environment's libraries and a plugin's own sources, of whichever checkout."""


class Cost(NamedTuple):
    """One session: CPU seconds and MB of the client with all of its own, and the processes beside it."""

    cpu: float
    memory: float
    names: tuple[str, ...]


def answer(words: str) -> bytes:
    """A streamed answer of the Messages API."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {**message, "usage": {"input_tokens": 100, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


class Api(BaseHTTPRequestHandler):
    """Answers each request once it was told to; the first one is waited for."""

    came: threading.Event
    go: threading.Event

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def do_POST(self) -> None:
        """One request, of a model or of anything else."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.came.set()
        self.go.wait(30)
        body = answer("Hello.")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving() -> Iterator[tuple[type[Api], str]]:
    """The API on loopback, and its address."""
    handler = type("Handler", (Api,), {"came": threading.Event(), "go": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield handler, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


class Process(NamedTuple):
    """What the system says of one process."""

    parent: int
    cpu: float
    words: str
    memory: float


def process(pid: int) -> Process | None:
    """A living process; ``cpu`` holds that of the children it waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    if stat[0] == "Z":
        return None
    pss = next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0)
    return Process(int(stat[1]), sum(map(int, stat[11:15])) / TICK, words, pss / 1024)


def family(root: int) -> dict[int, Process]:
    """All living descendants of a process."""
    everyone = {int(entry.name): process(int(entry.name)) for entry in Path("/proc").glob("[0-9]*")}
    found: dict[int, Process] = {}
    grown = {root}
    while grown:
        grown = {pid for pid, each in everyone.items() if each and each.parent in grown and pid not in found}
        found.update({pid: each for pid in grown if (each := everyone[pid])})
    return found


def is_daemon(each: Process) -> bool:
    """Whether a process is our daemon."""
    return "lcc_daemon" in each.words or "lcc-daemon" in each.words


class World:
    """Folders of one variant, and what its sessions are started with."""

    def __init__(self, plugin: Path | None, client: Path) -> None:
        self.plugin, self.client = plugin, client
        self.root = Path(tempfile.mkdtemp(prefix="lcc-start-"))
        for name in ("home", "project", "run"):
            (self.root / name).mkdir(mode=0o700)
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.root / "home"),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "SHELL": "/bin/sh",
            "ANTHROPIC_API_KEY": "sk-ant-not-a-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        if plugin:
            python = self.root / "python"
            folders = [str(plugin), str(plugin / "daemon"), str(plugin / "hook")]
            python.write_text(PYTHON.format(python=sys.executable, folders=folders))
            python.chmod(0o755)
            self.env["LCC_PYTHON"] = str(python)

    def daemon(self, command: str) -> None:
        """Have the daemon started or stopped."""
        words = [self.env["LCC_PYTHON"], "-m", "lcc_daemon", command]
        subprocess.run(words, env=self.env, stdout=subprocess.DEVNULL, check=True, timeout=60)

    def close(self) -> None:
        """End the daemon, and remove the folders."""
        if self.plugin:
            self.daemon("stop")
        shutil.rmtree(self.root, ignore_errors=True)

    def session(self) -> Cost:
        """One session."""
        words = [str(self.client), "-p", "Hello?"]
        if self.plugin:
            words += ["--plugin-dir", str(self.plugin)]
        before = os.times()
        with serving() as (api, url):
            env = {**self.env, "ANTHROPIC_BASE_URL": url}
            ran = subprocess.Popen(words, cwd=self.root / "project", env=env, stdout=subprocess.DEVNULL)
            if not api.came.wait(60):
                raise SystemExit(f"{self.client}: no request came")
            time.sleep(SETTLE_SECONDS)
            there = family(os.getpid())
            api.go.set()
            ran.wait(60)
        left = family(os.getpid())
        while True:  # what was left behind and has ended; we are its parent by now
            try:
                if not os.waitpid(-1, os.WNOHANG)[0]:
                    break
            except ChildProcessError:
                break
        after = os.times()
        own = {pid: each for pid, each in there.items() if not is_daemon(each)}
        waited = after.children_user + after.children_system - before.children_user - before.children_system
        return Cost(
            waited + sum(each.cpu for pid, each in left.items() if pid in own),
            sum(each.memory for each in own.values()),
            tuple(sorted(each.words[-60:] for pid, each in own.items() if pid != ran.pid)),
        )


def shown(values: list[float], digits: int) -> str:
    """Median, and the least."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f})"


def main() -> None:
    """Measure, and print one row for each variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout, to compare with")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--version", default="2.1.332", help="of the client")
    parser.add_argument("--cold", action="store_true", help="no daemon runs when a session starts")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        raise SystemExit("bench_session_start.py needs Linux: it reads /proc")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    installer = [sys.executable, CHECKOUT / "scripts" / "install_client.py", options.version]
    client = Path(subprocess.run(installer, check=True, capture_output=True, text=True).stdout.strip())
    plugins = {"no plugin": None, "before": options.before and options.before.resolve(), "this checkout": CHECKOUT}
    worlds = {name: World(plugin, client) for name, plugin in plugins.items() if plugin or name == "no plugin"}
    costs: dict[str, list[Cost]] = {name: [] for name in worlds}
    try:
        for number in range(options.rounds + 1):
            for name, world in worlds.items():
                if world.plugin:
                    world.daemon("stop" if options.cold else "start")
                cost = world.session()
                if number:  # the first one of each is not counted: files are read into memory
                    costs[name].append(cost)
            print(f"round {number} of {options.rounds}", file=sys.stderr)
    finally:
        for world in worlds.values():
            world.close()
    print("| session start | CPU s | memory MB | processes beside the client |")
    print("| --- | ---: | ---: | --- |")
    for name, each in costs.items():
        cells = [
            shown([cost.cpu for cost in each], 2),
            shown([cost.memory for cost in each], 0),
            "; ".join(each[-1].names) or "none",
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
