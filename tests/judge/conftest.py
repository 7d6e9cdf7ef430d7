"""The waits between attempts are shortened for every test here; what decides about them stays as it is."""

from __future__ import annotations

import pytest

from lcc.judge import client


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_BACKOFF", 0.01)
