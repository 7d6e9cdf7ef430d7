"""One life of the daemon: take its place, serve, watch itself, and end in good order."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import logging
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lcc.config import Config, ConfigError, config_file, load_config, state_folder
from lcc_daemon.dispatch import Dispatcher
from lcc_daemon.lifecycle import Instance, StartError, TakenError, other_sockets, refuses, take_place
from lcc_daemon.logs import failure_of, open_fault_log, open_log
from lcc_daemon.manage import ask_to_stop
from lcc_daemon.protocol import BUILD, PROTOCOL
from lcc_daemon.server import Server
from lcc_daemon.services import build_services
from lcc_daemon.stats import Stats
from lcc_hook.client import name_of

TICK_SECONDS = 2.0
LONGEST_UNASKED_LIFE = 12 * 3600.0
"""Live sessions keep an idle daemon up only for so long after the last request."""
SWITCH_SECONDS = 0.001
"""How soon a worker gives way to the event loop: `status` must not wait for a pass."""


def run(folder: bytes, env: Mapping[str, str], ready_fd: int | None = None) -> int:
    """Serve until stopped. ``ready_fd`` is a pipe that is told `ready`, `taken`, or why it cannot be."""
    os.umask(0o077)
    try:
        log = open_log(log_file(env))
    except OSError as error:
        return _tell(ready_fd, f"the log {log_file(env)} cannot be written: {error.strerror}", 1)
    sys.excepthook = lambda kind, error, tb: log.critical("crashed: %s", failure_of(error))
    try:
        instance = take_place(folder)
    except TakenError:
        return _tell(ready_fd, "taken" if ready_fd is not None else "already running; see lcc-daemon status", 0)
    except StartError as error:
        log.error("not started: %s", error)
        return _tell(ready_fd, str(error), 1)
    try:
        faults = open_fault_log(log_file(env).with_name("daemon-fault.log"))
        faulthandler.enable(faults)
    except OSError as error:
        log.warning("no fault log: %s", error.strerror)
    sys.setswitchinterval(SWITCH_SECONDS)
    code = 0
    try:
        asyncio.run(Daemon(instance, env, log).live(ready_fd))
    except Exception as error:
        log.critical("crashed: %s", failure_of(error))
        code = 1
    if code == 0:
        instance.leave()
    logging.shutdown()
    os._exit(code)  # a worker that hangs on a dead disk must not hold the process


def log_file(env: Mapping[str, str]) -> Path:
    return state_folder(env) / "daemon.log"


def _tell(ready_fd: int | None, word: str, code: int) -> int:
    if ready_fd is None:
        print(f"lcc-daemon: {word}", file=sys.stderr)
    else:
        with contextlib.suppress(OSError):
            os.write(ready_fd, f"{' '.join(word.split())}\n".encode())
            os.close(ready_fd)
    return code


class Daemon:
    """Ties the server to the work, and decides when to end."""

    def __init__(self, instance: Instance, env: Mapping[str, str], log: logging.Logger) -> None:
        self._instance = instance
        self._env = env
        self._log = log
        self._stats = Stats()
        self._services = build_services(instance.folder, env, self._stats, log)
        self._dispatcher = Dispatcher(self._services)
        self._started = time.monotonic()
        self._sources = _newest_source()
        self._server: Server | None = None

    async def live(self, ready_fd: int | None) -> None:
        server = self._server = Server(self._dispatcher.handle, self.status, self._stats, self._log)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop, signal.Signals(number).name)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        loop.set_exception_handler(self._on_loop_error)
        background = [
            asyncio.create_task(self._tick(server)),
            asyncio.create_task(self._services.sessions.watch()),
        ]
        background[1].add_done_callback(self._on_watch_end)
        self._log.info(
            "started: build %s, protocol %d, Python %s, %s",
            BUILD, PROTOCOL, platform.python_version(), name_of(self._instance.path),
        )  # fmt: skip
        serving = asyncio.create_task(server.serve(self._instance.listener, self._instance.close_door))
        _tell(ready_fd, "ready", 0) if ready_fd is not None else None
        threading.Thread(target=self._after_start, name="lcc-warm", daemon=True).start()
        await serving
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await asyncio.to_thread(self._dispatcher.close)
        self._log.info("stopped: %s", server.stop_reason)

    def _after_start(self) -> None:
        """Off the event loop: load the tokenizer, and ask daemons of other builds to finish and go."""
        for path in other_sockets(self._instance.folder):
            if refuses(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
            else:
                self._log.info("asked another build's daemon to stop: %s", ask_to_stop(path))
        self._dispatcher.warm_up()
        gc.collect()
        gc.freeze()  # what is loaded now stays; the collector need not look at it with every pass

    async def _tick(self, server: Server) -> None:
        """Now and then: is the socket still ours, is the program on disk still this one, has anybody asked?"""
        while True:
            await asyncio.sleep(min(TICK_SECONDS, self._idle_limit() / 4 or TICK_SECONDS))
            self._dispatcher.tidy()
            if not self._instance.is_still_ours():
                server.stop("its socket is gone")
            elif _newest_source() != self._sources:
                server.stop("the program on disk is another one now")
            elif self.idle_left() == 0.0:
                server.stop("idle")

    def _idle_limit(self) -> float:
        return self._config().idle_minutes * 60

    def _config(self) -> Config:
        try:
            return load_config(self._env)
        except ConfigError:
            return Config()

    def idle_left(self) -> float | None:
        """Seconds until the daemon stops for want of work; None while it does not count down."""
        limit = self._idle_limit()
        server = self._server
        if not limit or server is None or server.calls:
            return None
        idle = time.monotonic() - server.last_active
        if self._services.sessions.is_any_live() and idle < max(limit, LONGEST_UNASKED_LIFE):
            return None
        return max(0.0, limit - idle)

    def _on_watch_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert error is not None
            self._log.error("following sessions ended: %s", failure_of(error))

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._log.error("event loop: %s", failure_of(error) if error else context.get("message"))

    def status(self) -> dict[str, Any]:
        """Everything that `lcc-daemon status --json` shows of a daemon that answers."""
        server = self._server
        assert server is not None
        now = time.monotonic()
        busy = sorted(
            ({"command": call.command, "seconds": round(now - call.started, 3)} for call in list(server.calls)),
            key=lambda each: -float(str(each["seconds"])),
        )
        try:
            load_config(self._env)
            problem = None
        except ConfigError as error:
            problem = str(error)
        left = self.idle_left()
        return {
            "state": "stopping" if server.stopping else "busy" if busy else "running",
            "pid": os.getpid(),
            "build": BUILD,
            "protocol": PROTOCOL,
            "python": platform.python_version(),
            "interpreter": sys.executable,
            "socket": name_of(self._instance.path),
            "runtime_folder": name_of(self._instance.folder),
            "log": str(log_file(self._env)),
            "config": str(config_file(self._env)),
            "config_problem": problem,
            "uptime_s": round(now - self._started, 1),
            "requests": self._stats.requests,
            "refused": self._stats.refused,
            "failed": self._stats.failed,
            "latency_ms": self._stats.latency(),
            "busy": busy,
            "sessions": self._services.sessions.listing(),
            "last_error": self._stats.last_error,
            "memory_mb": _memory_mb(),
            "cpu_s": round(time.process_time(), 3),
            "warm": self._dispatcher.is_warm,
            "idle_stop_in_s": None if left is None else round(left),
        }


def _memory_mb() -> float:
    """Resident memory now where the system tells, else the most there ever was."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return round(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6, 1)
    except OSError:
        import resource

        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1)


def _newest_source() -> float:
    """When a file of the program was last written: after an upgrade in place the daemon must not go on."""
    import lcc
    import lcc_hook

    newest = 0.0
    for package in (lcc.__file__, lcc_hook.__file__, __file__):
        for path in Path(package or "").parent.rglob("*.py"):
            with contextlib.suppress(OSError):
                newest = max(newest, path.stat().st_mtime)
    return newest
