"""The socket server: reads requests, has them worked on off the event loop, and always answers `status`.

One task for each connection, one request a connection, a deadline on every read and write. One slow or broken
peer never delays another: nothing here waits for it outside of its own task.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from lcc_daemon.logs import failure_of
from lcc_daemon.protocol import (
    FRAME_LIMIT,
    HEADER_LIMIT,
    Answer,
    ProtocolError,
    Request,
    failure,
    greeting,
    parse_header,
    parse_lent,
    read_frame,
    send,
)
from lcc_daemon.stats import Stats
from lcc_daemon.workers import SLOW_SECONDS, Workers
from lcc_hook.client import peer_uid

MOST_CONNECTIONS = 1024
OVERLOADED = failure("overloaded", "the daemon has too much to do just now: try again, or run lcc-daemon restart")
SELDOM_SECONDS = 60.0
BODY_BYTES_A_SECOND = 8 * 1024 * 1024
"""A body may take this long on top of the deadline; a local peer is a hundred times faster."""
SEND_SECONDS = 30.0
LEND_SECONDS = 5.0
GRACE_SECONDS = 10.0


@dataclass(eq=False)
class Call:
    """One request being served, as its handler sees it."""

    command: str
    started: float = field(default_factory=time.monotonic)
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when whoever asked has gone: nobody waits for the answer any more."""
    more_time: Callable[[int], None] = lambda milliseconds: None
    """Asks the client to wait so many ms from now; may be called from any thread."""
    borrow: Callable[[Collection[str]], Mapping[str, str]] = lambda names: {}
    """Asks the client for variables that it lends. Called in a worker thread; waits for them, within a limit."""


Handler = Callable[[Request, Call], Answer]
"""Runs in a worker thread. Whatever it raises becomes an `internal` error for that one client."""


class Server:
    """Serves one listening socket until it is stopped."""

    def __init__(
        self,
        handler: Handler,
        status: Callable[[], dict[str, Any]],
        stats: Stats,
        log: logging.Logger,
        *,
        receive_seconds: float = 5.0,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self._handler = handler
        self._status = status
        self._stats = stats
        self._log = log
        self._workers: Workers[Answer] = Workers()
        self._receive_seconds = receive_seconds
        self._most_connections = most_connections
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent: dict[asyncio.Task[None], None] = {}
        """Connections that have not asked for anything yet, the oldest first."""
        self._said_seldom = -SELDOM_SECONDS
        self._stopping = asyncio.Event()
        self.calls: set[Call] = set()
        self.last_active = time.monotonic()
        self.stop_reason = ""

    def stop(self, reason: str) -> None:
        """Take no more connections, finish what is being served, and return from `serve`."""
        if not self._stopping.is_set():
            self.stop_reason = reason
            self._stopping.set()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def serve(self, listener: socket.socket, closed: Callable[[], None]) -> None:
        """Accept until `stop`. ``closed`` is called when no new connection can come, before the last are served."""
        accepting = asyncio.create_task(self._accept(listener))
        await self._stopping.wait()
        accepting.cancel()
        closed()
        listener.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GRACE_SECONDS)
        for task in self._tasks:
            task.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                line, _ = await loop.sock_accept(listener)
                self._admit(line)
            except OSError as error:  # out of file descriptors: let some go first
                self._seldom(f"accept failed: {error.strerror}")
                self._drop_the_longest_silent()
                await asyncio.sleep(0.1)
            except Exception as error:  # whatever it is, who comes next is served
                self._seldom(f"accept failed: {failure_of(error)}")
                await asyncio.sleep(0.1)

    def _admit(self, line: socket.socket) -> None:
        """Have a connection served. Where there are too many, the one that has said nothing for longest gives way."""
        line.setblocking(False)
        peer = peer_uid(line)
        if peer != os.geteuid():
            self._refuse(f"a client of another user ({'unknown' if peer is None else peer})")
            line.close()
            return
        if len(self._tasks) >= self._most_connections and not self._drop_the_longest_silent():
            self._refuse(f"more than {self._most_connections} clients at once")
            with contextlib.suppress(OSError):  # it fits into the socket's buffer, or nobody reads
                line.send(greeting(os.getpid()) + b"".join(OVERLOADED.frames()))
            line.close()
            return
        task = asyncio.create_task(self._connection(line))
        self._tasks.add(task)
        self._silent[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._silent.pop(task, None)

    def _drop_the_longest_silent(self) -> bool:
        """End the oldest connection that has not asked for anything. False where each has."""
        for task in self._silent:
            self._seldom("too many clients: one that asked for nothing had to go")
            self._forget(task)
            task.cancel()
            return True
        return False

    def _seldom(self, what: str) -> None:
        """Refuse, and say so in the log once in a while: this comes a thousand times or never."""
        self._stats.refused += 1
        now = time.monotonic()
        if now - self._said_seldom >= SELDOM_SECONDS:
            self._said_seldom = now
            self._log.warning("refused: %s", what)

    async def _connection(self, line: socket.socket) -> None:
        """Greet, read one request, serve it, answer. Whatever goes wrong ends here."""
        try:
            header = await self._header(line)
            task = asyncio.current_task()
            if task is not None:
                self._silent.pop(task, None)
            if header is None:
                return
            try:
                request = parse_header(bytes(header))
                body = await self._body(line)
            except ProtocolError as error:
                self._refuse(f"{error.reason} from a client")
                await self._send(line, failure(error.reason, error.say))
                return
            await self._serve(line, replace(request, body=body))
        except EOFError:
            self._refuse("a client left before its request was whole")
        except TimeoutError:
            self._refuse("a client was too slow")
        except ProtocolError as error:
            self._refuse(f"{error.reason} from a client")
        except OSError as error:
            self._refuse(f"a client was lost: {error.strerror}")
        except Exception as error:
            self._stats.failed += 1
            self._stats.error(type(error).__name__)
            self._log.error("connection failed: %s", failure_of(error))
        finally:
            line.close()

    async def _header(self, line: socket.socket) -> bytearray | None:
        """Greet, and read the header; None for a peer that only looked whether somebody is there."""
        async with asyncio.timeout(self._receive_seconds):
            try:
                await asyncio.get_running_loop().sock_sendall(line, greeting(os.getpid()))
                return await read_frame(line, HEADER_LIMIT, "a header")
            except BrokenPipeError:
                return None
            except EOFError as left:
                if left.args == (0,):
                    return None
                raise

    def _refuse(self, why: str) -> None:
        self._stats.refused += 1
        self._log.warning("refused: %s", why)

    async def _body(self, line: socket.socket) -> bytearray:
        async with asyncio.timeout(self._receive_seconds + FRAME_LIMIT / BODY_BYTES_A_SECOND):
            return await read_frame(line, FRAME_LIMIT, "a request")

    async def _send(self, line: socket.socket, answer: Answer) -> None:
        async with asyncio.timeout(SEND_SECONDS):
            await send(line, answer)

    async def _serve(self, line: socket.socket, request: Request) -> None:
        if request.command == "status":
            await self._send(line, Answer(orjson.dumps(self._status())))
            return
        if request.command == "stop":
            try:
                await self._send(line, Answer())
            finally:  # also when whoever asked does not wait for the answer
                self.stop("asked to")
            return
        self.last_active = time.monotonic()
        call = Call(request.command)
        self.calls.add(call)
        try:
            answer = await self._work(line, request, call)
            if answer is None:
                return
            await self._send(line, answer)
            took = (time.monotonic() - call.started) * 1000
            self._stats.served(took)
            outcome = answer.status if answer.status == "ok" else answer.text.partition("\n")[0]
            self._log.info(
                "%s %s in %.1f ms, %d bytes in, %d out",
                call.command,
                outcome,
                took,
                len(request.body),
                len(answer.body),
            )
        finally:
            self.calls.discard(call)
            self.last_active = time.monotonic()

    async def _work(self, line: socket.socket, request: Request, call: Call) -> Answer | None:
        """The handler's answer, or None when the client went away meanwhile."""
        asides = Asides(line, self._send)
        call.more_time, call.borrow = asides.more_time, asides.borrow
        job = self._workers.submit(lambda: self._handler(request, call))
        later = asyncio.get_running_loop().call_later(1.1 * SLOW_SECONDS, self._workers.look_after)
        work = asyncio.wrap_future(job)
        gone = asyncio.create_task(asides.listen())
        waits = asyncio.create_task(asides.pass_on())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self._abandon(call, job)
                return None
            return work.result()
        except Exception as error:
            self._stats.failed += 1
            self._stats.error(f"{call.command}: {type(error).__name__}")
            self._log.error("%s failed: %s", call.command, failure_of(error))
            return failure("internal", f"{type(error).__name__} in the daemon: see lcc-daemon logs")
        finally:
            later.cancel()
            for task in (gone, waits):
                task.cancel()
            await asyncio.gather(gone, waits, return_exceptions=True)

    def _abandon(self, call: Call, job: Future[Answer]) -> None:
        """Nobody waits for this work any more."""
        call.cancelled.set()
        job.cancel()
        self._refuse(f"the client of {call.command} went away while it was served")


class Asides:
    """What daemon and client say to each other while a request is being worked on."""

    def __init__(self, line: socket.socket, send: Callable[[socket.socket, Answer], Awaitable[None]]) -> None:
        self._line = line
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._said = asyncio.Queue[Answer]()
        self._asked = False
        self._lent = queue.SimpleQueue[bytes]()

    def more_time(self, milliseconds: int) -> None:
        """Ask the client to wait longer. From any thread."""
        self._say(Answer(status="wait", number=milliseconds))

    def borrow(self, names: Collection[str]) -> Mapping[str, str]:
        """Ask the client for variables, and wait for them; none where it does not answer. From a worker's thread."""
        if not names:
            return {}
        self._asked = True
        self._say(Answer(status="lend", text=" ".join(sorted(names))))
        try:
            lent = parse_lent(self._lent.get(timeout=LEND_SECONDS))
        except queue.Empty:
            return {}
        return {name: lent[name] for name in names if name in lent}

    def _say(self, answer: Answer) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self._said.put_nowait, answer)

    async def listen(self) -> None:
        """Returns when the peer has closed its end. What it says without being asked is nothing we know."""
        with contextlib.suppress(OSError, EOFError):
            with contextlib.suppress(ProtocolError):
                while True:
                    lent = await read_frame(self._line, HEADER_LIMIT, "what is lent")
                    if self._asked:
                        self._asked = False
                        self._lent.put(bytes(lent))
            while await asyncio.get_running_loop().sock_recv(self._line, 4096):
                pass

    async def pass_on(self) -> None:
        """Send what the worker has to say, until cancelled."""
        while True:
            await self._send(self._line, await self._said.get())
