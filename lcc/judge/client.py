"""The System One client: one question set sent, retried where that is worth it, read within limits.

Nothing here logs. An error text never holds a key, a request or more than one line of the server's message.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from lcc.judge.answers import MalformedReplyError, Reply, parse_reply
from lcc.judge.attempt import Failure, Stop
from lcc.judge.route import ProxyUnreachableError, Route, RouteError
from lcc.judge.settings import Server

RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
REFUSED_STATUSES = frozenset({401, 403})
MAX_ATTEMPTS = 4
FIRST_BACKOFF = 0.5  # seconds; doubles with each attempt
LONGEST_SERVER_DELAY = 60.0  # seconds; a server that asks for more is not waited for
MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
WRITE_TIMEOUT = 10.0
PROBE_TIMEOUT = 2.0
KEEP_ALIVE = 120.0  # seconds that an idle connection is kept for the next pass
_LONGEST_MESSAGE = 200  # characters of a server's own words
_ROUTE_EXISTS = frozenset({200, 400, 401, 403, 405, 411, 415, 422, 429})


def build_client(environ: Mapping[str, str], connections: int = 8) -> httpx.Client:
    """A client for many passes of sessions with this environment: connections are kept, redirects not followed.

    The environment's proxy is used for remote hosts and never for this machine. No cookie is kept: what a server
    told one session does not come back with the next. Safe to use from several threads; whoever builds it closes it.
    """
    limits = httpx.Limits(
        max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=KEEP_ALIVE
    )
    return httpx.Client(
        transport=Route(environ, limits),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT, write=WRITE_TIMEOUT),
    )


class SystemOneClient:
    """Asks one server. One instance serves all threads of a pass."""

    def __init__(self, server: Server, client: httpx.Client, stop: Stop) -> None:
        self._server = server
        self._client = client
        self._stop = stop
        self._lock = threading.Lock()
        self.calls = 0
        """HTTP requests sent so far, retries included."""

    def ask(self, body: bytes) -> Reply | Failure:
        """Send one request body until it is answered, is refused for good, or the time is over."""
        failure = Failure("the time for the judge was over before the request was sent")
        for attempt in range(MAX_ATTEMPTS):
            if self._stop.remaining <= 0:
                return failure
            outcome = self._send(body)
            if not isinstance(outcome, _Retry):
                return outcome
            failure = outcome.failure
            delay = FIRST_BACKOFF * 2**attempt if outcome.delay is None else outcome.delay
            if delay > LONGEST_SERVER_DELAY:
                return _add(failure, f"the server asks to wait {delay:.0f} s, which is too long")
            if attempt + 1 < MAX_ATTEMPTS and not self._stop.wait(delay):
                return _add(failure, "there was no time to try again")
        return _add(failure, f"{MAX_ATTEMPTS} attempts")

    def is_reachable(self) -> bool:
        """Whether a System One route answers at the endpoint: nothing of a session is sent to find out.

        A GET on the route is refused by method (405) where the route exists, and not found (404) where some
        other program listens on that port.
        """
        timeout = min(PROBE_TIMEOUT, self._stop.remaining)
        try:
            with self._client.stream(
                "GET", self._server.endpoint, headers=self._headers(), timeout=timeout
            ) as response:
                return response.status_code in _ROUTE_EXISTS
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError):
            return False

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self._server.key:
            headers["Authorization"] = f"Bearer {self._server.key}"
        return headers

    def _send(self, body: bytes) -> Reply | Failure | _Retry:
        with self._lock:
            self.calls += 1
        remaining = self._stop.remaining
        timeout = httpx.Timeout(
            min(READ_TIMEOUT, remaining),
            connect=min(CONNECT_TIMEOUT, remaining),
            write=min(WRITE_TIMEOUT, remaining),
        )
        try:
            with self._client.stream(
                "POST", self._server.endpoint, content=body, headers=self._headers(), timeout=timeout
            ) as response:
                return self._read(response)
        except httpx.HTTPError as error:
            return self._of_exception(error)
        except (httpx.InvalidURL, RuntimeError, ValueError, OSError) as error:
            # A closed client is a RuntimeError; the other two come from addresses and sockets.
            return Failure(f"the request to {self._server.host} could not be sent ({type(error).__name__})")

    def _read(self, response: httpx.Response) -> Reply | Failure | _Retry:
        status = response.status_code
        if status == 200:
            data = self._body(response, MAX_ANSWER_BYTES)
            if data is None:
                return Failure(f"the answer of {self._server.host} is larger than {MAX_ANSWER_BYTES} bytes")
            try:
                return parse_reply(data)
            except MalformedReplyError as error:
                return Failure(str(error))
        message = self._message(self._body(response, MAX_ERROR_BYTES) or b"")
        text = f"HTTP {status} from {self._server.host}" + (f": {message}" if message else "")
        failure = Failure(text, refused=status in REFUSED_STATUSES)
        return _Retry(failure, server_delay(response.headers)) if status in RETRIED_STATUSES else failure

    def _body(self, response: httpx.Response, limit: int) -> bytes | None:
        """The body, or None when it is over ``limit`` bytes. A slow body ends with the time of the pass."""
        data = bytearray()
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) > limit:
                return None
            if self._stop.remaining <= 0:
                raise httpx.ReadTimeout("the time for the judge is over")
        return bytes(data)

    def _message(self, data: bytes) -> str:
        """The server's own words in one short line, without the key, should it repeat it."""
        try:
            parsed = json.loads(data)
        except (ValueError, RecursionError):
            return ""
        found = next(_messages(parsed), "")
        if self._server.key:
            found = found.replace(self._server.key, "[key]")
        line = " ".join("".join(c if c.isprintable() else " " for c in found[: 4 * _LONGEST_MESSAGE]).split())
        return line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + "…"

    def _of_exception(self, error: httpx.HTTPError) -> Failure | _Retry:
        host = self._server.host
        if isinstance(error, RouteError):
            return Failure(f"{host} cannot be reached: {error}", connected=False)
        if _is_tls_failure(error):
            return Failure(f"no secure connection to {host} could be made (TLS)", connected=False)
        if isinstance(error, ProxyUnreachableError):
            text = f"{host} cannot be reached through the proxy that {error} names"
            return _Retry(Failure(text, connected=False), None)
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            kind = "did not answer in time" if isinstance(error, httpx.ConnectTimeout) else "cannot be reached"
            return _Retry(Failure(f"{host} {kind}", connected=False), None)
        if isinstance(error, httpx.TimeoutException):
            return _Retry(Failure(f"{host} did not answer in time"), None)
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ProxyError):
            return _Retry(Failure(f"the connection to {host} broke off ({type(error).__name__})"), None)
        return Failure(f"the request to {host} failed ({type(error).__name__})")


@dataclass(frozen=True, slots=True)
class _Retry:
    """A failure that another attempt may mend, and the delay in seconds that the server asks for."""

    failure: Failure
    delay: float | None


def _add(failure: Failure, text: str) -> Failure:
    return replace(failure, text=f"{failure.text} ({text})")


def _messages(parsed: object) -> Iterator[str]:
    """The error message in the forms that servers use: ``error.message``, ``error``, ``detail``, ``message``."""
    if isinstance(parsed, dict):
        error = parsed.get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            field = error.get("field")
            yield f"{field}: {error['message']}" if isinstance(field, str) else error["message"]
        detail = parsed.get("detail")
        if isinstance(detail, list) and detail and isinstance(detail[0], dict):
            detail = detail[0].get("msg")
        for text in (error, detail, parsed.get("message")):
            if isinstance(text, str):
                yield text


def server_delay(headers: httpx.Headers) -> float | None:
    """Seconds that a server asks to wait: ``retry-after-ms``, or ``Retry-After`` as a number or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, (when - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def _is_tls_failure(error: BaseException) -> bool:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
