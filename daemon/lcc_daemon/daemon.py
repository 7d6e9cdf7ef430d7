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
from typing import Any, TextIO

from lcc.config import state_folder
from lcc_daemon.dispatch import Dispatcher
from lcc_daemon.lifecycle import Instance, StartError, TakenError, other_sockets, refuses, take_place
from lcc_daemon.logs import failure_of, open_fault_log, open_log, write_behind
from lcc_daemon.lookout import Lookout
from lcc_daemon.process import end_within, fall_silent, forbid_core_dumps, raise_file_limit
from lcc_daemon.protocol import BUILD, PROTOCOL
from lcc_daemon.server import MOST_CONNECTIONS, Server
from lcc_daemon.services import build_services
from lcc_daemon.stats import Stats
from lcc_hook.client import name_of

END_SECONDS = 14.0
"""From the moment that no new call comes: the last calls, what is written behind them, and whatever hangs."""
FLUSH_SECONDS = 2.0
LONGEST_UNASKED_LIFE = 12 * 3600.0
"""Live sessions keep an idle daemon up only for so long after the last request."""
SWITCH_SECONDS = 0.001
"""How soon a worker gives way to the event loop: `status` must not wait for a pass."""


def run(folder: bytes, env: Mapping[str, str], ready_fd: int | None = None) -> int:
    """Serve until stopped. ``ready_fd`` is a pipe that is told `ready`, `taken`, or why it cannot be.

    Does not return once it serves: the process ends where it stands.
    """
    os.umask(0o077)
    forbid_core_dumps()
    connections = raise_file_limit()
    try:
        log = open_log(log_file(env))
    except OSError as error:
        return _tell(ready_fd, f"the log {log_file(env)} cannot be written: {error.strerror}", 1)
    sys.excepthook = lambda kind, error, tb: log.critical("crashed: %s", failure_of(error))
    threading.excepthook = lambda args: log.error("a thread ended: %s", failure_of(args.exc_value or Exception()))
    try:
        instance = take_place(folder)
    except TakenError:
        return _tell(ready_fd, "taken" if ready_fd is not None else "already running; see lcc-daemon status", 0)
    except StartError as error:
        log.error("not started: %s", error)
        return _tell(ready_fd, str(error), 1)
    faults = None
    try:
        faults = open_fault_log(log_file(env).with_name("daemon-fault.log"))
        faulthandler.enable(faults)
    except OSError as error:
        log.warning("no fault log: %s", error.strerror)
    sys.setswitchinterval(SWITCH_SECONDS)
    written = write_behind(log)
    daemon = Daemon(instance, env, log, connections, faults)
    code = 0
    try:
        # Not asyncio.run: that waits for every thread, and one may hang on a dead disk.
        asyncio.new_event_loop().run_until_complete(daemon.live(ready_fd))
    except Exception as error:
        log.critical("crashed: %s", failure_of(error))
        code = 1
    written.flush(FLUSH_SECONDS)
    os._exit(code)


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

    def __init__(
        self, instance: Instance, env: Mapping[str, str], log: logging.Logger, connections: int, faults: TextIO | None
    ) -> None:
        self._instance = instance
        self._log = log
        self._log_file = log_file(env)
        self._faults = faults
        self._stats = Stats()
        self._services = build_services(instance.folder, env, self._stats, log)
        self._dispatcher = Dispatcher(self._services)
        self._lookout = Lookout(instance, env, self._dispatcher.tidy, log)
        self._started = time.monotonic()
        self._server = Server(
            self._dispatcher.handle, self.status, self._stats, log, most_connections=min(connections, MOST_CONNECTIONS)
        )

    async def live(self, ready_fd: int | None) -> None:
        server = self._server
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop, signal.Signals(number).name)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        loop.set_exception_handler(self._on_loop_error)
        self._lookout.begin()
        background = [asyncio.create_task(self._tick()), asyncio.create_task(self._services.sessions.watch())]
        for task in background:
            task.add_done_callback(self._on_background_end)
        self._log.info(
            "started: build %s, protocol %d, Python %s, %s",
            BUILD, PROTOCOL, platform.python_version(), name_of(self._instance.path),
        )  # fmt: skip
        serving = asyncio.create_task(server.serve(self._instance.listener, self._leave))
        if ready_fd is not None:
            _tell(ready_fd, "ready", 0)
            fall_silent()
        threading.Thread(target=self._after_start, name="lcc-warm", daemon=True).start()
        await serving
        for task in background:
            task.cancel()
        self._dispatcher.close()
        self._log.info("stopped: %s", server.stop_reason)

    def _leave(self) -> None:
        """No new client comes from here on: a successor may take the place while the last ones are served."""
        end_within(END_SECONDS, lambda: self._log.warning("stopped: what was left did not end"), self._faults)
        self._lookout.end()
        self._instance.leave()

    def _after_start(self) -> None:
        """Off the event loop: load the tokenizer, and clear up after daemons of other builds.

        One that listens serves sessions of its build, and ends by itself once it is idle or its program is gone.
        """
        for path in other_sockets(self._instance.folder):
            if refuses(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        self._dispatcher.warm_up()
        gc.collect()
        gc.freeze()  # what is loaded now stays; the collector need not look at it with every pass

    async def _tick(self) -> None:
        """Now and then: is there a reason to stop? Asks no disk, so it always comes."""
        while True:
            await asyncio.sleep(self._lookout.interval)
            self._services.background.look_after()
            if self._services.outdated.is_set():
                self._server.stop("a session has begun whose plugin has other sources")
            elif self._lookout.reason_to_stop is not None:
                self._server.stop(self._lookout.reason_to_stop)
            elif self.idle_left() == 0.0:
                self._server.stop("idle")

    def idle_left(self) -> float | None:
        """Seconds until the daemon stops for want of work; None while it does not count down."""
        limit = self._lookout.idle_limit
        if not limit or self._server.calls:
            return None
        idle = time.monotonic() - self._server.last_active
        if self._services.sessions.is_any_live() and idle < max(limit, LONGEST_UNASKED_LIFE):
            return None
        return max(0.0, limit - idle)

    def _on_background_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("a task in the background ended: %s", failure_of(error))

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._log.error("event loop: %s", failure_of(error) if error else context.get("message"))

    def status(self) -> dict[str, Any]:
        """Everything that `lcc-daemon status --json` shows of a daemon that answers. Asks no disk."""
        server = self._server
        now = time.monotonic()
        busy = sorted(
            ({"command": call.command, "seconds": round(now - call.started, 3)} for call in list(server.calls)),
            key=lambda each: -float(str(each["seconds"])),
        )
        left = self.idle_left()
        return {
            "state": "stopping" if server.stopping else "busy" if busy else "running",
            "pid": os.getpid(),
            "build": BUILD,
            "protocol": PROTOCOL,
            "python": platform.python_version(),
            "interpreter": name_of(os.fsencode(sys.executable)),
            "socket": name_of(self._instance.path),
            "runtime_folder": name_of(self._instance.folder),
            "log": name_of(os.fsencode(self._log_file)),
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
