"""The `lcc-daemon` command. argparse, not typer: this is also how the daemon itself starts."""

from __future__ import annotations

import argparse
import os
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lcc_daemon.protocol import BUILD
from lcc_hook.client import GiveUpError, OutOfTimeError, arm, runtime_folder

START_SECONDS = 30.0
STOP_SECONDS = 60.0
STATUS_SECONDS = 20.0


def main(words: list[str] | None = None) -> int:
    """Run one command. Exit code 0 where it did what was asked, 1 where it could not, 2 for a wrong command line."""
    options = _parser().parse_args(words)
    try:
        folder = runtime_folder(dict(os.environb))
        code: int = options.run(folder, options)
        return code
    except GiveUpError as gave:
        return _fail(gave.say)
    except OutOfTimeError:
        return _fail("it took too long: see lcc-daemon logs")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lcc-daemon", description="The warm process behind lcc's hooks. It starts by itself and stops when idle."
    )
    parser.add_argument("--version", action="version", version=f"lcc-daemon {BUILD}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    start = commands.add_parser("start", help="start it, unless it is running")
    start.set_defaults(run=_start)
    stop = commands.add_parser("stop", help="finish what it is doing and stop; no error if it is not running")
    stop.add_argument("--all", action="store_true", help="those of other builds too")
    stop.set_defaults(run=_stop)
    restart = commands.add_parser("restart", help="stop, then start")
    restart.set_defaults(run=_restart)
    status = commands.add_parser("status", help="report its state; never starts it")
    status.add_argument("--json", action="store_true", help="all figures, as JSON")
    status.set_defaults(run=_status)
    logs = commands.add_parser("logs", help="show the end of its log")
    logs.add_argument("-n", "--lines", type=_lines, default=50, metavar="N", help="how many lines (default 50)")
    logs.set_defaults(run=_logs)
    run = commands.add_parser("run", help="serve in the foreground")
    run.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    run.add_argument("--build", default=BUILD, help=argparse.SUPPRESS)
    run.set_defaults(run=_run)
    answer = commands.add_parser("answer")
    answer.add_argument("command", choices=("recall", "allow-recall"))
    answer.set_defaults(run=_answer)
    return parser


def _lines(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no number of lines; give 0 or more")
    return int(text)


def _fail(problem: str) -> int:
    print(f"lcc-daemon: {problem}", file=sys.stderr)
    return 1


def _answer(folder: bytes, options: argparse.Namespace) -> int:
    """Answer one request on standard input without a daemon: for the hook, where none can be had."""
    from lcc_daemon.dispatch import answer_alone

    sys.stdout.buffer.write(answer_alone(options.command, folder, sys.stdin.buffer.read()))
    return 0


def _run(folder: bytes, options: argparse.Namespace) -> int:
    if options.build != BUILD:
        problem = (
            f"{sys.executable} has lcc {BUILD}, and {options.build} is needed: upgrade it, "
            "or start a new session, which sets up the plugin's own environment"
        )
        if options.ready_fd is None:
            return _fail(problem)
        os.write(options.ready_fd, problem.encode() + b"\n")
        return 1
    from lcc_daemon.daemon import run

    return run(folder, dict(os.environ), options.ready_fd)


def _start(folder: bytes, options: argparse.Namespace) -> int:
    from lcc_daemon.manage import start

    arm(START_SECONDS)
    # Whoever types lcc-daemon means the package that it came with.
    happened, pid = start(folder, {**os.environb, b"LCC_PYTHON": os.fsencode(sys.executable)})
    print(f"lcc-daemon: {happened} (pid {pid})")
    return 0


def _stop(folder: bytes, options: argparse.Namespace) -> int:
    from lcc_daemon.manage import stop

    arm(STOP_SECONDS)
    print(f"lcc-daemon: {stop(folder, getattr(options, 'all', False))}")
    return 0


def _restart(folder: bytes, options: argparse.Namespace) -> int:
    _stop(folder, options)
    return _start(folder, options)


def _status(folder: bytes, options: argparse.Namespace) -> int:
    from lcc_daemon.manage import status

    arm(STATUS_SECONDS)
    found = status(folder, os.environ)
    if options.json:
        import orjson

        sys.stdout.write(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        print("\n".join(status_lines(found)))
    return 0


def status_lines(found: Mapping[str, Any]) -> list[str]:
    """The status as a person reads it, the most important line first."""
    state = str(found["state"])
    busy = found.get("busy") or []
    if busy:
        state = "busy: " + ", ".join(f"{each['command']} for {each['seconds']:.1f} s" for each in busy[:5])
    lines = [f"lcc-daemon {found['build']}: {state}"]
    if "problem" in found:
        lines.append(f"  problem     {found['problem']}")
    if "other" in found:
        lines.append(f"  other       {found['other']} (ends when idle; lcc-daemon stop --all ends it now)")
    if "pid" in found:
        lines.append(f"  process     {found['pid']}")
    if "uptime_s" in found:
        latency, saved = found["latency_ms"], found["bytes_saved"]
        times = "none yet" if latency["p50"] is None else "/".join(f"{latency[p]:.0f}" for p in ("p50", "p95", "p99"))
        left = found["idle_stop_in_s"]
        lines += [
            f"  up          {found['uptime_s']:.0f} s, {found['memory_mb']:.0f} MB, Python {found['python']}",
            f"  requests    {found['requests']} ({found['failed']} failed, {found['refused']} refused), "
            f"ms p50/p95/p99: {times}",
            f"  saved       {saved['today']:,} bytes today, {saved['ever']:,} ever",
            f"  sessions    {len(found['sessions'])} followed",
            f"  idle stop   {'not counting down' if left is None else f'in {left} s'}",
        ]
        if found["last_error"]:
            lines.append(f"  last error  {found['last_error']['at']} {found['last_error']['what']}")
        if found["config_problem"]:
            lines.append(f"  config      {found['config_problem']}")
    lines += [f"  socket      {found['socket']}", f"  log         {found['log']}"]
    return lines


def _logs(folder: bytes, options: argparse.Namespace) -> int:
    from lcc.config import state_folder
    from lcc.private_files import open_regular

    file = Path(state_folder(os.environ)) / "daemon.log"
    try:
        with open(open_regular(file), encoding="utf-8", errors="replace") as opened:
            for line in deque(opened, max(0, options.lines)):
                sys.stdout.write(line)
    except FileNotFoundError:
        print(f"lcc-daemon: no log yet ({file})", file=sys.stderr)
    except BrokenPipeError:  # whoever reads has seen enough; `main` ends it quietly
        raise
    except OSError as error:
        return _fail(f"{file}: {error.strerror}")
    return 0
