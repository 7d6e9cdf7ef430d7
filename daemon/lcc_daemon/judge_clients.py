"""The HTTP clients for judges, whose connections stay open between compactions."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

CLIENTS_KEPT = 4


class JudgeClients:
    """One client for each way to the servers: sessions with other proxies or certificates never share one.

    Built when it is first asked for: loading httpx takes longer than a pass without a judge.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._clients: dict[frozenset[tuple[str, str]], httpx.Client] = {}

    def get(self, env: Mapping[str, str]) -> httpx.Client:
        """The client for a session with this environment."""
        from lcc.judge.addresses import PROXY_VARIABLES
        from lcc.judge.client import build_client
        from lcc.judge.route import CERTIFICATE_VARIABLES

        names = (*CERTIFICATE_VARIABLES, *PROXY_VARIABLES, *map(str.lower, PROXY_VARIABLES))
        settings = frozenset((name, env[name]) for name in names if name in env)
        with self._guard:
            client = self._clients.pop(settings, None) or build_client(dict(settings))
            self._clients[settings] = client
            while len(self._clients) > CLIENTS_KEPT:  # a pass may still use it: it is closed when that lets it go
                del self._clients[next(iter(self._clients))]
            return client

    def close(self) -> None:
        """Drop all connections. A pass that still uses one gets an error and decides without the judge."""
        with self._guard:
            for client in self._clients.values():
                client.close()
