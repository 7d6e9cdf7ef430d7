"""What a compaction costs whoever waits for it: the whole process of the hook client, with a warm daemon.

    python scripts/bench_hook.py                     # sessions of 1, 5 and 20 MB, 15 rounds
    python scripts/bench_hook.py --sizes 1 --rounds 40 --python /usr/bin/python3

Each round runs, one after the other and so under the same load: a bare `python3 -I -S -E -c pass`, the hook client
with `compact`, and `lcc compact` in a fresh process over the same messages. Times are from start to exit, with the
event on stdin, as the module sends it: each output once. The session's size is that of its lines in the session file.
The daemon is started for the run in folders of its own, and stopped.

At the end each command hook of hooks.json is run by a shell, as the client does, in turns with a bare Python.

Each line gives the median and, in brackets, the least: wall time, and time of a processor, which says more on a machine
that has other things to do. `in the daemon` is its part, as `lcc-daemon status` gives it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

CHECKOUT = Path(__file__).parents[1]
CLIENT = CHECKOUT / "hook" / "lcc_hook" / "client.py"


def make_event(project: Path, megabytes: float) -> bytes:
    """An event of a session that read files (three of four calls) and ran commands, all files still on disk."""
    messages: list[dict[str, object]] = [{"role": "user", "text": "Mend the parser.", "toolUses": []}]
    size, number = 0, 0
    while size < megabytes * 1e6:
        lines = [f"    value_{number}_{index} = compute(cursor, {index * 7919 % 1000})" for index in range(150)]
        text = "".join(f"{line}\n" for line in lines)
        if number % 4 == 3:
            tool, given, output = "Bash", {"command": f"pytest -q tests/test_{number}.py"}, "\n".join(lines[:60])
        else:
            path = project / f"module_{number}.py"
            path.write_text(text)
            tool, given = "Read", {"file_path": str(path)}
            output = "\n".join(f"{index}\t{line}" for index, line in enumerate(lines, 1))
        call = f"toolu_{number:06}"
        use = {"tool_use_id": call, "tool": tool, "input": given}
        result = {"tool_use_id": call, "text": output, "isError": False}
        messages.append({"role": "assistant", "text": f"Step {number}.", "toolUses": [use]})
        messages.append({"role": "user", "text": "", "toolResults": [result]})
        size += len(json.dumps(output)) + 600  # the rest of its two lines in the session file
        number += 1
    event = {"v": 1, "trigger": "manual", "session_id": "bench", "cwd": str(project), "options": {}}
    return json.dumps({**event, "messages": messages}, separators=(",", ":")).encode()


class Cost(NamedTuple):
    """Milliseconds of one whole process: from start to exit, and of a processor."""

    wall: float
    cpu: float


def timed(words: list[str], stdin: Path, env: dict[str, str]) -> tuple[Cost, bytes]:
    """What one process cost, and its stdout."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(stdin, "rb") as file:
        began = time.perf_counter()
        done = subprocess.run(words, stdin=file, capture_output=True, env=env, check=False)
        wall = (time.perf_counter() - began) * 1000
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{words}: exit {done.returncode}: {done.stderr.decode()[-500:]}")
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000
    return Cost(wall, cpu), done.stdout


def shown(costs: list[Cost]) -> str:
    wall, cpu = ([getattr(cost, name) for cost in costs] for name in ("wall", "cpu"))
    return (
        f"{statistics.median(wall):7.1f} ({min(wall):.1f}) ms, processor {statistics.median(cpu):6.1f} ({min(cpu):.1f})"
    )


def status(env: dict[str, str]) -> dict[str, Any]:
    asked = subprocess.run([sys.executable, "-m", "lcc_daemon", "status", "--json"], env=env, capture_output=True)
    found: dict[str, Any] = json.loads(asked.stdout)
    return found


def measure(root: Path, megabytes: float, rounds: int, python: str, env: dict[str, str]) -> None:
    project = root / f"project-{megabytes}"
    project.mkdir()
    event = root / f"event-{megabytes}.json"
    event.write_bytes(make_event(project, megabytes))
    payload = root / f"payload-{megabytes}.json"
    payload.write_text(json.dumps({"messages": json.loads(event.read_bytes())["messages"]}))
    nothing = root / "nothing"
    nothing.touch()
    bare = [python, "-I", "-S", "-E", "-c", "pass"]
    hook = [python, "-I", "-S", "-E", str(CLIENT), "compact"]
    fresh = [str(Path(sys.executable).with_name("lcc")), "compact", str(payload), "--provider", "rules"]
    fresh += ["--rules-mode", "recoverable", "--workspace-root", str(project), "-o", str(root / "out.json")]
    subprocess.run([sys.executable, "-m", "lcc_daemon", "restart"], env=env, check=True, capture_output=True)
    for _ in range(2):
        _, plan = timed(hook, event, env)
    if json.loads(plan)["action"] not in ("replace", "parts"):
        raise SystemExit(f"the daemon handed over: {plan[:300]!r}")
    before = status(env)
    costs: dict[str, list[Cost]] = {"bare": [], "hook": [], "fresh": []}
    for _ in range(rounds):
        costs["bare"].append(timed(bare, nothing, env)[0])
        costs["hook"].append(timed(hook, event, env)[0])
        costs["fresh"].append(timed(fresh, nothing, env)[0])
    after = status(env)
    print(f"session of {megabytes:g} MB (event {event.stat().st_size / 1e6:.1f} MB)")
    print(f"  python3 -I -S -E -c pass   {shown(costs['bare'])}")
    print(f"  hook client, warm daemon   {shown(costs['hook'])}")
    print(f"  lcc compact, fresh         {shown(costs['fresh'])}")
    used = (after["cpu_s"] - before["cpu_s"]) / rounds * 1000
    middle = {name: statistics.median(cost.wall for cost in each) for name, each in costs.items()}
    print(f"  in the daemon              {after['latency_ms']['p50']:7.1f} ms, processor {used:6.1f}")
    print(f"  hook/bare {middle['hook'] / middle['bare']:.1f}, fresh/hook {middle['fresh'] / middle['hook']:.2f}")


def hook_commands() -> list[tuple[str, str]]:
    """The hooks of hooks.json: the event's name, and the command that the client gives to a shell."""
    hooks = json.loads((CHECKOUT / "hooks.json").read_text())["hooks"]
    return [(event, hook["command"]) for event, groups in hooks.items() for group in groups for hook in group["hooks"]]


def measure_hooks(root: Path, rounds: int, python: str, env: dict[str, str]) -> None:
    """Each command hook with a warm daemon, as the client starts it, beside a bare Python in the same round."""
    session = root / "session.jsonl"
    session.write_text("")
    asked = root / "asked.json"
    fields = {"session_id": "bench", "cwd": str(root), "transcript_path": str(session), "source": "resume"}
    fields |= {"tool_name": "Bash", "command_name": "lcc:lcc", "command_args": "keep"}
    asked.write_text(json.dumps({**fields, "tool_input": {"command": "lcc recall 0123456789ab"}}))
    env = {**env, "CLAUDE_PLUGIN_ROOT": str(CHECKOUT), "PATH": f"{Path(python).parent}:/usr/bin:/bin"}
    bare = [python, "-I", "-S", "-E", "-c", "pass"]
    print("each command hook, by a shell, multiples of python3 -I -S -E -c pass (wall, processor)")
    for event, command in hook_commands():
        words = ["/bin/sh", "-c", command]
        pairs = [(timed(bare, asked, env)[0], timed(words, asked, env)[0]) for _ in range(rounds + 1)][1:]
        ratios = [statistics.median(getattr(hook, of) / getattr(one, of) for one, hook in pairs) for of in Cost._fields]
        middle = statistics.median(hook.wall for _, hook in pairs)
        print(f"  {event:20} {ratios[0]:.2f}, {ratios[1]:.2f}   ({middle:.1f} ms)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=float, nargs="+", default=[1, 5, 20], help="session sizes in MB")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--python", default=shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable)
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="bench-hook-"))
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("LCC_")},
        "LCC_RUNTIME_DIR": str(root / "run"),
        "LCC_STATE_DIR": str(root / "state"),
        "LCC_PYTHON": sys.executable,
        "LCC_BUDGET_MS": "30000",
        "LCC_MIN_REDUCTION": "0.1",
    }
    print(f"median of {options.rounds} rounds (minimum in brackets); {options.python}")
    try:
        for size in options.sizes:
            measure(root, size, options.rounds, options.python, env)
        measure_hooks(root, 3 * options.rounds, options.python, env)
    finally:
        subprocess.run([sys.executable, "-m", "lcc_daemon", "stop"], env=env, capture_output=True, check=False)
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
