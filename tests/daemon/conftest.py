"""A private world for each test, ended with everything that it started."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon.daemon_world import World


@pytest.fixture
def world() -> Iterator[World]:
    root = Path(tempfile.mkdtemp(prefix="lcc-", dir="/tmp"))
    for name in ("home", "project"):
        (root / name).mkdir()
    made = World(root)
    yield made
    made.end()
    shutil.rmtree(root, ignore_errors=True)
