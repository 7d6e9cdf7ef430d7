"""What can go wrong for a user, looked at in one go, with the next step for each: `lcc doctor`.

Nothing is changed and nothing is started. Daemon and hooks are asked through their own command, `lcc-daemon status`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import orjson

from lcc.client_folders import config_folder
from lcc.config import Config, ConfigError, config_file, load_config, state_folder
from lcc.private_files import read_or_none

State = Literal["ok", "note", "problem"]

OLDEST_PYTHON = (3, 11)
OLDEST_HOOK_PYTHON = (3, 8)
SLOW_START_MS = 60.0
REPLACING_CLIENT = (2, 1, 332)
"""The client that the replacement was tried with; it loads the module of a plugin."""
GUIDING_CLIENT = (2, 1, 197)
"""The newest client that was seen to ignore the module: its users get the guide."""
LOW_DISK = 1_000_000_000
NO_DISK = 100_000_000
ANSWER_SECONDS = 20.0
MAX_OBJECT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what was found, and what to do where that is not as it should be."""

    name: str
    state: State
    found: str
    next_step: str = ""


Run = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a program and returns its exit code and its stdout; 127 where it cannot be run."""


def run_program(words: Sequence[str]) -> tuple[int, str]:
    """Run one program with a time limit; see `Run`."""
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_SECONDS, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired:
        return 124, ""
    except OSError:
        return 127, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


def doctor(env: Mapping[str, str] | None = None, run: Run = run_program) -> list[Check]:
    """Look at everything, in the order in which a first compaction needs it.

    ``env`` is the environment to judge (default: this process's). Never raises for what it finds.
    """
    env = os.environ if env is None else env
    return [
        _python(),
        _program(env),
        *_config(env),
        _hook_python(env, run),
        _client(env, run),
        _plugin(env),
        *_daemon(run),
        _state(env),
        *_stash(env),
        _disk(env),
        _tokens(),
    ]


def failed(checks: Sequence[Check]) -> bool:
    """Whether anything stands in the way of a compaction."""
    return any(check.state == "problem" for check in checks)


def render(checks: Sequence[Check]) -> str:
    """The checks as plain lines, the next step under each that needs one."""
    width = max(len(check.name) for check in checks)
    signs = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}
    lines = []
    for check in checks:
        lines.append(f"{signs[check.state]}  {check.name.ljust(width)}  {check.found}")
        if check.next_step:
            lines.append(f"{' ' * (width + 11)}next: {check.next_step}")
    problems = sum(check.state == "problem" for check in checks)
    lines.append(f"{problems} problem(s)" if problems else "nothing stands in the way")
    return "\n".join(lines) + "\n"


def as_json(checks: Sequence[Check]) -> bytes:
    """The checks for a program: a list of objects with name, state, found and next_step."""
    return orjson.dumps(
        [{"name": c.name, "state": c.state, "found": c.found, "next_step": c.next_step or None} for c in checks],
        option=orjson.OPT_INDENT_2,
    )


# ---------------------------------------------------------------- one function for each thing


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Check("python", "problem", f"{version} at {sys.executable}", "install Python 3.11 or newer")
    return Check("python", "ok", f"{version} at {sys.executable}")


def _program(env: Mapping[str, str]) -> Check:
    """Whether a shell finds `lcc`, which the notes name."""
    path = shutil.which("lcc", path=env.get("PATH"))
    if path is not None:
        return Check("lcc", "ok", path)
    beside = Path(sys.executable).with_name("lcc")
    if beside.exists():
        step = f"mkdir -p ~/.local/bin && ln -s {shlex.quote(str(beside))} ~/.local/bin/lcc, with ~/.local/bin on PATH"
    else:
        step = f"pipx install {shlex.quote(str(Path(__file__).parents[1]))}"
    return Check("lcc", "note", "no lcc on PATH: a shell cannot run what a note says", step)


def _hook_python(env: Mapping[str, str], run: Run) -> Check:
    """The `python3` that Claude Code starts for each hook: is there one, new enough, and quick to start?"""
    path = shutil.which("python3", path=env.get("PATH"))
    if path is None:
        return Check("python3", "problem", "no python3 on PATH: no hook can run", "install Python 3")
    words = [path, "-I", "-S", "-E", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    times, said = [], ""
    for _ in range(3):
        began = time.perf_counter()
        code, said = run(words)
        times.append((time.perf_counter() - began) * 1000)
        if code != 0:
            return Check("python3", "problem", f"{path} cannot be started (exit {code})", "repair or reinstall it")
    numbers = [int(part) for part in said.strip().split(".") if part.isdigit()]
    if numbers < list(OLDEST_HOOK_PYTHON):
        return Check("python3", "problem", f"{path} is {said.strip()}", "put Python 3.8 or newer first on PATH")
    found = f"{said.strip()} at {path}, starts in {min(times):.0f} ms"
    if min(times) > SLOW_START_MS:
        step = "each hook pays for it: put a python3 itself, not a version manager's stand-in, first on PATH"
        return Check("python3", "note", found, step)
    return Check("python3", "ok", found)


def _config(env: Mapping[str, str]) -> Iterator[Check]:
    file = config_file(env)
    try:
        config = load_config(env)
    except ConfigError as error:
        yield Check("config", "problem", str(error), "mend it; until then every compaction is left to Claude Code")
        return
    chosen = [f"{key}={getattr(config, key)!r} ({source})" for key, source in sorted(config.sources.items())]
    there = str(file) if file.exists() else f"{file} (not there: defaults)"
    yield Check("config", "ok", "; ".join([there, *chosen]))
    recalls = "the agent may run lcc recall without asking (allow_recall)"
    yield Check("recall", "ok", recalls if config.allow_recall else "the agent asks before lcc recall (allow_recall)")
    if not config.enabled:
        yield Check("switch", "problem", "lcc is switched off", f"set enabled = true ({config.sources['enabled']})")
    if config.provider != "rules":
        yield _judge(config, env)


def _judge(config: Config, env: Mapping[str, str]) -> Check:
    from lcc.judge.settings import Unavailable, jev_server, laya_server

    servers = []
    if config.provider in ("jev", "auto"):
        servers.append(jev_server(env, config.jev_model))
    if config.provider in ("laya", "auto"):
        servers.append(laya_server(env, config.laya_model))
    for server in servers:
        if not isinstance(server, Unavailable):
            return Check("judge", "ok", f"{server.provider} at {server.host}, model {server.model}")
    why = "; ".join(reason for server in servers if isinstance(server, Unavailable) for reason in server.why)
    return Check("judge", "problem", why, 'give it what is missing, or set provider = "rules"')


def _client(env: Mapping[str, str], run: Run) -> Check:
    path = shutil.which("claude", path=env.get("PATH"))
    if path is None:
        return Check("claude code", "note", "no claude on PATH", "start lcc doctor where `claude` can be started")
    code, said = run([path, "--version"])
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    if code != 0 or numbers is None:
        return Check("claude code", "problem", f"{path} --version gave no version (exit {code})", "reinstall it")
    version = (int(numbers[1]), int(numbers[2]), int(numbers[3]))
    shown = ".".join(map(str, version))
    if version <= GUIDING_CLIENT:
        step = "update Claude Code: this version ignores the module, and lcc can only guide its summary"
        return Check("claude code", "problem", shown, step)
    if version < REPLACING_CLIENT:
        return Check("claude code", "note", f"{shown}: lcc was not tried with it", "update Claude Code")
    return Check("claude code", "ok", shown)


def _plugin(env: Mapping[str, str]) -> Check:
    base = config_folder(env)
    installed = _read_object(base / "plugins" / "installed_plugins.json").get("plugins")
    found = [key for key in installed if key.startswith("lcc@")] if isinstance(installed, dict) else []
    if not found:
        step = "in Claude Code: /plugin marketplace add <checkout>, then /plugin install lcc@lcc"
        return Check("plugin", "note", f"not installed in {base} (claude --plugin-dir needs no installation)", step)
    enabled = _read_object(base / "settings.json").get("enabledPlugins")
    off = [key for key in found if isinstance(enabled, dict) and enabled.get(key) is False]
    if off:
        return Check("plugin", "problem", f"{', '.join(off)} is disabled", f"claude plugin enable {off[0]}")
    return Check("plugin", "ok", f"{', '.join(found)} installed")


def _daemon(run: Run) -> Iterator[Check]:
    code, said = run([sys.executable, "-m", "lcc_daemon", "status", "--json"])
    try:
        status = orjson.loads(said)
    except orjson.JSONDecodeError:
        status = None
    if not isinstance(status, dict):
        yield Check("daemon", "problem", f"lcc-daemon status failed (exit {code})", "reinstall lcc")
        return
    hooks, environment = status.get("hooks"), status.get("environment")
    yield _hooks(hooks if isinstance(hooks, dict) else {})
    yield _daemon_state(status)
    yield _environment(environment if isinstance(environment, dict) else {})
    path = str(status.get("socket", ""))
    long = os.path.dirname(path) != status.get("runtime_folder")
    found = f"{len(os.fsencode(path))} bytes: {path}"
    if long:
        found += f" (its place under {status.get('runtime_folder')} would be too long)"
    yield Check("socket", "note" if long else "ok", found)
    if status.get("last_error"):
        error = status["last_error"]
        yield Check("last error", "note", f"{error['at']} {error['what']}", f"see {status.get('log')}")


def _daemon_state(status: dict[str, object]) -> Check:
    state = str(status.get("state"))
    if state in ("running", "busy"):
        latency = status.get("latency_ms")
        p95 = latency.get("p95") if isinstance(latency, dict) else None
        found = f"{state}, pid {status.get('pid')}, build {status.get('build')}, {_speed(p95)}"
        return Check("daemon", "ok", found)
    if state in ("not running", "starting", "stopping"):
        return Check("daemon", "ok", f"{state} (the next session or compaction starts it)")
    if state == "other version":
        return Check("daemon", "note", f"{status.get('other')}", "lcc-daemon stop --all ends it now")
    problem = str(status.get("problem") or state)
    return Check("daemon", "problem", problem, "see above" if state == "refused" else "lcc-daemon restart")


def _speed(p95: object) -> str:
    return f"p95 {p95} ms" if p95 is not None else "no request yet"


def _hooks(times: Mapping[str, object]) -> Check:
    """When each hook last came, as the daemon noted it."""
    seen = [f"{hook} {at}" for hook, at in times.items()]
    if not seen:
        step = "start a session with the plugin; if this stays so, look for `hooks module` in claude --debug-file LOG"
        return Check("hooks", "note", "none has come yet", step)
    if "pre-compact" in times and "compact" not in times:
        step = "look for `hooks module` in the log of claude --debug-file LOG: the module is not loaded"
        return Check("hooks", "problem", f"session.compact never came; last: {', '.join(seen)}", step)
    return Check("hooks", "ok", f"last: {', '.join(seen)}")


def _environment(found: Mapping[str, object]) -> Check:
    """The plugin's own Python environment, which a session start with the plugin builds."""
    folder, log = found.get("folder"), found.get("log")
    without = "until then the rules run without it"
    match found.get("state"):
        case "ready":
            return Check("environment", "ok", str(folder))
        case "failed":
            step = f"see {log}; a session start tries again; {without}"
            return Check("environment", "problem", f"could not be set up: {found.get('problem')}", step)
        case "building":
            return Check("environment", "note", f"{folder}: {found.get('problem')}", f"{without}; its log is {log}")
        case "other-build":
            step = f"start a session; the one that is there is used until it is made; its log is {log}"
            return Check("environment", "note", f"{folder}: made for another build", step)
        case "missing":
            step = f"start a session; {without}; its log is {log}"
            return Check("environment", "note", f"{folder}: not there yet", step)
    return Check("environment", "note", "no session has started with the plugin since this computer did")


def _state(env: Mapping[str, str]) -> Check:
    folder = state_folder(env)
    try:
        found = folder.lstat()
    except FileNotFoundError:
        above = next(parent for parent in folder.parents if parent.exists())
        if os.access(above, os.W_OK):
            return Check("state folder", "ok", f"{folder} (not there yet)")
        return Check("state folder", "problem", f"{above} cannot be written", "set LCC_STATE_DIR to a folder of yours")
    except OSError as error:
        return Check("state folder", "problem", f"{folder}: {error.strerror}", "set LCC_STATE_DIR")
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        step = "move it away, or set LCC_STATE_DIR"
        return Check("state folder", "problem", f"{folder} is no folder of yours", step)
    if found.st_mode & 0o077:
        return Check("state folder", "problem", f"{folder} is open to other users", f"chmod 700 {folder}")
    return Check("state folder", "ok", str(folder))


def _stash(env: Mapping[str, str]) -> Iterator[Check]:
    from lcc.stash.folder import StashFolderError, check_folder, stash_folder

    try:
        folder = stash_folder(env)
        check_folder(folder)
    except FileNotFoundError:
        return
    except StashFolderError as error:
        yield Check("stash", "problem", str(error.strerror), "mend it, or set LCC_STASH_DIR to a folder of yours")
    except OSError as error:
        yield Check("stash", "problem", f"{error.filename}: {error.strerror}", "set LCC_STASH_DIR to a folder of yours")
    else:
        yield Check("stash", "ok", str(folder))


def _disk(env: Mapping[str, str]) -> Check:
    folder = state_folder(env)
    above = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
    free = shutil.disk_usage(above).free
    found = f"{free / 1e9:.1f} GB free for {folder}"
    if free < NO_DISK:
        return Check("disk", "problem", found, "free some space: nothing can be stashed or logged")
    return Check("disk", "note" if free < LOW_DISK else "ok", found)


def _tokens() -> Check:
    from lcc.tokens import counter

    method = counter().method
    if method.startswith("~"):
        return Check("tokens", "note", f"{method}: no vocabulary, figures are estimates", "reinstall lcc")
    return Check("tokens", "ok", method)


def _read_object(file: Path) -> dict[str, object]:
    """A small JSON object; empty for anything else."""
    try:
        value = orjson.loads(read_or_none(file, MAX_OBJECT_BYTES, follow=True) or b"null")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
