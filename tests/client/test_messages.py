"""The module's pure functions, by Node's own test runner."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = [Path(__file__).with_name(f"{name}.test.mjs") for name in ("messages", "room")]


@pytest.mark.client
def test_what_the_module_makes_of_an_event() -> None:
    """Every case of the two files passes."""
    node = shutil.which("node")
    if node is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Node.js is missing")
        pytest.skip("Node.js is missing")
    done = subprocess.run([node, "--test", *TESTS], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "fail 0\n" in done.stdout, done.stdout
