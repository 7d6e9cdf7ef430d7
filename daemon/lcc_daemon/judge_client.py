"""The one HTTP client for judges, whose connections stay open between compactions."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


class JudgeClient:
    """Built when it is first asked for: loading httpx takes longer than a pass without a judge."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._client: httpx.Client | None = None

    def get(self) -> httpx.Client:
        with self._guard:
            if self._client is None:
                from lcc.judge.client import build_client

                self._client = build_client()
            return self._client

    def close(self) -> None:
        """Drop its connections. A pass that still uses it gets an error and decides without the judge."""
        with self._guard:
            if self._client is not None:
                self._client.close()
