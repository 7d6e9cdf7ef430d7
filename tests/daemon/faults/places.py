"""Rows: disks, folders, limits, the hook's files and interpreters, the environment, the home."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from daemon.daemon_world import CHECKOUT, CLIENT, PYTHON, make_large_event
from daemon.faults.row import Call, Live, Table
from odd_files import in_place

from lcc_hook.client import BUILD

DISK = Table("disk")
FOLDER = Table("folder")
LIMIT = Table("limit")
PLUGIN = Table("plugin")
HOME = Table("home")

Before = Callable[[], object]


def limited(kind: int, most: int) -> Before:
    """A process with a limit, and all that it starts."""
    return lambda: resource.setrlimit(kind, (most, most))


def as_anybody() -> None:
    """Root obeys the rights of files from here on (capabilities 1 and 2 go, Linux)."""
    if os.geteuid() == 0:
        drop = ctypes.CDLL(None, use_errno=True).prctl
        for capability in (1, 2):
            assert drop(24, capability, 0, 0, 0) == 0


# ---------------------------------------------------------------- no room


@DISK.row("full before the daemon's start", "hand-over: runtime-folder")
def full_at_start(live: Live) -> Iterator[Call]:
    yield Call(before=limited(resource.RLIMIT_FSIZE, 0))


@DISK.row("fills up under a daemon", "replaced")
def full_under(live: Live) -> Iterator[Call]:
    resource.prlimit(live.start(), resource.RLIMIT_FSIZE, (0, 0))
    yield Call()
    yield Call()


@DISK.row("full, and the plan is over 4 MiB", "hand-over: parts")
def full_for_parts(live: Live) -> Iterator[Call]:
    pid = live.start()
    event = make_large_event(live)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))
    yield Call(stdin=event)


@DISK.row("full for the log", "replaced")
def full_for_log(live: Live) -> Iterator[Call]:
    live.plan(live.event)
    log = live.state / "daemon.log"
    resource.prlimit(live.pid(), resource.RLIMIT_FSIZE, (log.stat().st_size, log.stat().st_size))
    for _ in range(3):
        yield Call()


@DISK.row("full for the stash", "replaced")
def full_for_stash(live: Live) -> Iterator[Call]:
    resource.prlimit(live.start(), resource.RLIMIT_FSIZE, (10, 10))
    yield Call(env={"LCC_RULES_MODE": "stashed"})


# ---------------------------------------------------------------- folders that cannot be used


@FOLDER.row("runtime folder read-only", "hand-over: runtime-folder")
def runtime_read_only(live: Live) -> Iterator[Call]:
    live.runtime.mkdir(mode=0o500)
    yield Call(before=as_anybody)


@FOLDER.row("runtime folder not to be entered", "hand-over: no-access")
def runtime_closed(live: Live) -> Iterator[Call]:
    live.start()
    live.runtime.chmod(0o000)
    live.stack.callback(live.runtime.chmod, 0o700)
    yield Call(before=as_anybody)


@FOLDER.row("runtime folder open to others", "hand-over: runtime-folder")
def runtime_open(live: Live) -> Iterator[Call]:
    live.start()
    live.runtime.chmod(0o770)
    yield Call()
    live.runtime.chmod(0o700)


@FOLDER.row("runtime folder is another user's", "hand-over: runtime-folder")
def runtime_of_another(live: Live) -> Iterator[Call]:
    if os.geteuid() == 0:
        live.runtime.mkdir(mode=0o700)
        os.chown(live.runtime, 65534, 65534)
        yield Call()
    else:
        yield Call(env={"LCC_RUNTIME_DIR": "/"})


@FOLDER.row("runtime folder is a link", "hand-over: runtime-folder")
def runtime_link(live: Live) -> Iterator[Call]:
    (live.root / "elsewhere").mkdir(mode=0o700)
    live.runtime.symlink_to(live.root / "elsewhere")
    yield Call()


@FOLDER.row("runtime folder is a file", "hand-over: runtime-folder")
def runtime_file(live: Live) -> Iterator[Call]:
    live.runtime.write_text("")
    yield Call()


@FOLDER.row("runtime folder below a file", "hand-over: no-access")
def runtime_below_file(live: Live) -> Iterator[Call]:
    (live.root / "file").write_text("")
    yield Call(env={"LCC_RUNTIME_DIR": str(live.root / "file" / "run")})


@FOLDER.row("runtime folder not absolute", "hand-over: runtime-folder")
def runtime_relative(live: Live) -> Iterator[Call]:
    yield Call(env={"LCC_RUNTIME_DIR": "run"})


@FOLDER.row("runtime folder on no disk (/proc)", "hand-over: runtime-folder")
def runtime_proc(live: Live) -> Iterator[Call]:
    yield Call(env={"LCC_RUNTIME_DIR": "/proc/lcc/run"})


@FOLDER.row("name of the socket too long", "replaced")
def long_name(live: Live) -> Iterator[Call]:
    env = {"LCC_RUNTIME_DIR": str(live.root / ("deep-" * 30))}
    live.stack.callback(live.cli, "stop", **env)
    yield Call(env=env)


@FOLDER.row("state folder read-only", "hand-over: start-failed")
def state_read_only(live: Live) -> Iterator[Call]:
    live.state.mkdir(mode=0o500)
    yield Call(before=as_anybody)


@FOLDER.row("state folder is a file", "hand-over: start-failed")
def state_file(live: Live) -> Iterator[Call]:
    live.state.write_text("mine")
    yield Call()
    assert live.state.read_text() == "mine"


@FOLDER.row("reports' folder is a pipe", "replaced")
def reports_pipe(live: Live) -> Iterator[Call]:
    live.state.mkdir(mode=0o700)
    in_place("a pipe", live.state / "reports")
    yield Call()


@FOLDER.row("somebody else's daemon.log", "hand-over: start-failed")
def foreign_log(live: Live) -> Iterator[Call]:
    live.state.mkdir(mode=0o700)
    (live.state / "daemon.log").write_text("my notes\n")
    yield Call()


def in_our_place(kind: str, *suffixes: str) -> Callable[[Live], Iterator[Call]]:
    """What is no file, where our small files are expected."""

    def make(live: Live) -> Iterator[Call]:
        live.runtime.mkdir(mode=0o700)
        for suffix in suffixes:
            path = live.runtime / (f"d-1-{BUILD}.{suffix}" if suffix != "plugin-data" else suffix)
            in_place(kind, path)
        yield Call()

    return make


for _kind, _ends in (
    ("a folder", "hand-over: runtime-folder"),
    ("a pipe", "replaced"),
    ("a link to nowhere", "replaced"),
):
    _small = ("crashes", "pid", "failure", "plugin-data")
    FOLDER.row(f"{_kind} in the place of our small files", _ends)(in_our_place(_kind, *_small))
    FOLDER.row(f"{_kind} for what a start prints", "hand-over: runtime-folder")(in_our_place(_kind, "output"))
    FOLDER.row(f"{_kind} in the place of the daemon's lock", "hand-over: start-failed")(in_our_place(_kind, "lock"))
for _kind, _ends in (("a folder", "hand-over: runtime-folder"), ("a pipe", "replaced")):
    FOLDER.row(f"{_kind} in the place of the start's lock", _ends)(in_our_place(_kind, "start"))


@FOLDER.row("rubbish in our small files", "replaced")
def rubbish_in_place(live: Live) -> Iterator[Call]:
    live.runtime.mkdir(mode=0o700)
    for kind in ("crashes", "pid", "failure", "output", "lock", "start"):
        (live.runtime / f"d-1-{BUILD}.{kind}").write_bytes(b"nan 9" * 500 + b"\x00\xff")
    yield Call()


def set_times(live: Live, seconds: int) -> None:
    """Of everything in our folders but sockets; a running daemon may take a file away meanwhile."""
    for file in [*live.runtime.rglob("*"), *live.state.rglob("*")]:
        if not file.is_socket():
            with suppress(FileNotFoundError):
                os.utime(file, (seconds, seconds))


@FOLDER.row("times of our files in the future: the clock went back", "replaced")
def clock_went_back(live: Live) -> Iterator[Call]:
    live.plan(live.event)
    live.cli("stop")
    future = 4_000_000_000
    (live.runtime / f"d-1-{BUILD}.crashes").write_text(f"{future} {future} {future} {future}\n")
    set_times(live, future)
    yield Call()


@FOLDER.row("times of our files in 1970: the clock went ahead", "replaced")
def clock_went_ahead(live: Live) -> Iterator[Call]:
    live.plan(live.event)
    set_times(live, 0)
    yield Call()


# ---------------------------------------------------------------- limits of the process


@LIMIT.row("32 file descriptors", "replaced")
def few_descriptors(live: Live) -> Iterator[Call]:
    yield Call(before=limited(resource.RLIMIT_NOFILE, 32))


@LIMIT.row("5 file descriptors", "hand-over: runtime-folder")
def no_descriptors(live: Live) -> Iterator[Call]:
    yield Call(before=limited(resource.RLIMIT_NOFILE, 5))


@LIMIT.row("the daemon has used up its descriptors before", "replaced")
def used_up(live: Live) -> Iterator[Call]:
    pid = live.start()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (40, 40))
    lines = []
    for _ in range(200):
        try:
            lines.append(live.connect())
        except OSError:
            break
    for line in lines:
        line.close()
    yield Call()


@LIMIT.row("the client has 40 MB of memory for a session of 30", "hand-over: client-error")
def no_memory(live: Live) -> Iterator[Call]:
    live.start()
    yield Call(stdin=b"[" + b"0," * 15_000_000 + b"0]", before=limited(resource.RLIMIT_AS, 40_000_000))


@LIMIT.row("standard input never ends", "hand-over: out-of-time")
def endless_input(live: Live) -> Iterator[Call]:
    live.start()
    yield Call(env={"LCC_BUDGET_MS": "500"}, stays_open=True)


@LIMIT.row("the umask is 0777", "replaced")
def odd_umask(live: Live) -> Iterator[Call]:
    yield Call(before=lambda: os.umask(0o777))


# ---------------------------------------------------------------- the plugin's files and interpreters


def plugin(live: Live) -> Path:
    """A copy of the plugin's folder."""
    folder = live.root / "plugin"
    shutil.copytree(CHECKOUT / "hook", folder / "hook", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("lcc", "daemon"):
        (folder / name).symlink_to(CHECKOUT / name)
    return folder


@PLUGIN.row("whole, asked by the module", "replaced")
def whole(live: Live) -> Iterator[Call]:
    yield Call.of_module(live, plugin(live), transcript=live.transcript())


def without(file: str, text: str | None = None) -> Callable[[Live], Iterator[Call]]:
    """The module, without a file of the plugin or with another text in it."""

    def make(live: Live) -> Iterator[Call]:
        folder = plugin(live)
        path = folder / "hook" / "lcc_hook" / file
        path.unlink()
        if text is not None:
            path.write_text(text)
        yield Call.of_module(live, folder)

    return make


for _file in ("client.py", "unseen.py"):
    PLUGIN.row(f"{_file} is missing", "hand-over: told")(without(_file))
    PLUGIN.row(f"{_file} is empty", "hand-over: told")(without(_file, ""))
    PLUGIN.row(f"{_file} is no Python", "hand-over: told")(without(_file, "def (:\n"))
    PLUGIN.row(f"{_file} prints rubbish", "hand-over: told")(without(_file, "print('rubbish')\n"))
    PLUGIN.row(f"{_file} prints another version's answer", "hand-over: told")(without(_file, "print('{\"v\": 9}')\n"))
    PLUGIN.row(f"{_file} ends with 2", "hand-over: told")(without(_file, "raise SystemExit(2)\n"))
PLUGIN.row("starter.py is missing", "hand-over: told")(without("starter.py"))
PLUGIN.row("starter.py is no Python", "hand-over: told")(without("starter.py", "def (:\n"))


@PLUGIN.row("no python3 on the PATH, asked by the module", "hand-over: told")
def no_python(live: Live) -> Iterator[Call]:
    yield Call.of_module(live, env={"PATH": str(live.root)})


@PLUGIN.row("python3 is another program", "hand-over: told")
def other_python(live: Live) -> Iterator[Call]:
    folder = live.root / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to("/bin/echo")
    yield Call.of_module(live, env={"PATH": str(folder)})


@PLUGIN.row("a session start without python3", "hand-over: told")
def hook_without_python(live: Live) -> Iterator[Call]:
    yield Call.of_hook(live, "SessionStart", env={"PATH": str(live.root)})


@PLUGIN.row("hooks of a plugin whose folder is gone", "hand-over: silent")
def hooks_without_plugin(live: Live) -> Iterator[Call]:
    for event in ("PreCompact", "SessionEnd", "PreToolUse"):
        yield Call.of_hook(live, event, live.root / "gone")


@PLUGIN.row("hooks with a hung daemon", "hand-over: silent")
def hooks_of_a_hung_daemon(live: Live) -> Iterator[Call]:
    os.kill(live.start(), 19)
    yield Call.of_hook(live, "SessionEnd")
    yield Call.of_hook(live, "PreToolUse")


@PLUGIN.row("its folder has quotes, blanks and a $ in its name", "replaced")
def odd_plugin_name(live: Live) -> Iterator[Call]:
    folder = live.root / "a 'b' \"c\" $d #e"
    plugin(live).rename(folder)
    yield Call.of_module(live, folder, transcript=live.transcript())


@PLUGIN.row("LCC_PYTHON is not there", "hand-over: start-failed")
def no_interpreter(live: Live) -> Iterator[Call]:
    yield Call(env={"LCC_PYTHON": "/nowhere/python3"})


@PLUGIN.row("LCC_PYTHON is a folder", "hand-over: start-failed")
def folder_for_interpreter(live: Live) -> Iterator[Call]:
    yield Call(env={"LCC_PYTHON": str(live.root)})


@PLUGIN.row("environment: a link to nowhere", "replaced")
def broken_environment(live: Live) -> Iterator[Call]:
    data = live.root / "data"
    data.mkdir()
    (data / "venv").symlink_to("venv-gone")
    yield Call(env={"LCC_PYTHON": "-", "CLAUDE_PLUGIN_DATA": str(data), "LCC_NO_SETUP": "1"}, program=own(live))


@PLUGIN.row("environment: its python is a file of rubbish", "replaced")
def rubbish_environment(live: Live) -> Iterator[Call]:
    binaries = live.root / "data" / "venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").write_bytes(b"\x7fELF rubbish")
    (binaries / "python").chmod(0o755)
    env = {"LCC_PYTHON": "-", "CLAUDE_PLUGIN_DATA": str(live.root / "data"), "LCC_NO_SETUP": "1"}
    yield Call(env=env, program=own(live))


def own(live: Live) -> tuple[str | Path, ...]:
    """The hook client by the tests' interpreter, with the plugin's own sources beside it."""
    return (PYTHON, "-I", "-S", "-E", CLIENT)


# ---------------------------------------------------------------- the home


@HOME.row("HOME is no UTF-8", "replaced")
def odd_home(live: Live) -> Iterator[Call]:
    home = os.fsencode(live.root) + b"/caf\xe9\xff"
    os.mkdir(home)
    yield Call(env={"HOME": os.fsdecode(home), "LCC_STATE_DIR": "-"})


@HOME.row("HOME is not there", "replaced")
def no_home(live: Live) -> Iterator[Call]:
    yield Call(env={"HOME": str(live.root / "gone"), "LCC_STATE_DIR": "-"})


@HOME.row("HOME and the runtime folder are not set", "hand-over: no-home")
def unset_home(live: Live) -> Iterator[Call]:
    yield Call(env={"HOME": "-", "LCC_RUNTIME_DIR": "-"})


@HOME.row("HOME is read-only", "hand-over: runtime-folder")
def read_only_home(live: Live) -> Iterator[Call]:
    home = live.root / "closed"
    home.mkdir(mode=0o500)
    env = {"HOME": str(home), "LCC_RUNTIME_DIR": "-", "LCC_STATE_DIR": "-"}
    yield Call(env=env, before=as_anybody)


@HOME.row("the project's folder is gone", "skip: nothing-to-remove")
def no_project(live: Live) -> Iterator[Call]:
    shutil.rmtree(live.project)
    yield Call()
