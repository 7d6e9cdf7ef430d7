"""What the tests that ask the real client need: the client of today, and a lab for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from client.claude_process import Lab
from client.conftest import CURRENT, find_client, lab_folder


@pytest.fixture(scope="session")
def client() -> Path:
    return find_client(CURRENT)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with lab_folder() as made:
        yield made
