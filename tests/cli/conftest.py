"""A world for each test of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.cli_world import World, lay_out


@pytest.fixture
def world(tmp_path: Path) -> World:
    return lay_out(tmp_path)
