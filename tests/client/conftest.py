"""Fixtures for the tests that drive the real client, and the table of what they saw."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from client.claude_process import Lab, Turn, path_with

CHECKOUT = Path(__file__).parents[2]
PLUGIN = CHECKOUT
CURRENT, OLDER = "2.1.332", "2.1.197"
SETTLED = re.compile(r"hooks module lcc@\w+ session\.compact settled in ([\d.]+)ms")


def find_client(version: str) -> Path:
    """The client's program; skips where npm cannot bring it, and fails instead in CI."""
    asked = subprocess.run(
        [sys.executable, CHECKOUT / "scripts" / "install_client.py", version],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode == 0:
        return Path(asked.stdout.strip())
    reason = f"Claude Code {version} is not there: {asked.stderr.strip()}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def current_client() -> Path:
    return find_client(CURRENT)


@pytest.fixture(scope="session")
def older_client() -> Path:
    return find_client(OLDER)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A fresh lab. Its path is short: a socket's path has a limit, and pytest's own folders are long."""
    with lab_folder() as made:
        yield made


@contextmanager
def lab_folder() -> Iterator[Lab]:
    """A lab that ends its daemon and goes when it is left."""
    root = Path(tempfile.mkdtemp(prefix="lcc-e2e-"))
    patience = {"LCC_BUDGET_MS": "30000", "LCC_START_BUDGET_MS": "60000"}  # these tests are not about time
    made = Lab(root, path_with(), {"LCC_PYTHON": sys.executable, **patience})
    try:
        yield made
    finally:
        subprocess.run(
            [Path(sys.executable).parent / "lcc-daemon", "stop"],
            env=made.environment(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        shutil.rmtree(root, ignore_errors=True)


class Table:
    """One row for each scenario: what the model saw, what the user saw, how long the client waited."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str]] = []

    def add(self, scenario: str, model_sees: str, turn: Turn, lab: Lab) -> None:
        """Note what one compaction led to. The time is what the client's debug log says of the hook."""
        times = SETTLED.findall(lab.debug_log.read_text(encoding="utf-8", errors="replace"))
        shown = " / ".join(turn.said_to_user()) or "(nothing)"
        self.rows.append((scenario, model_sees, shown.replace(str(lab.root), "…"), times[-1] if times else "-"))


TABLE = Table()


@pytest.fixture(scope="session")
def table() -> Table:
    return TABLE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table that the scenarios filled."""
    if not TABLE.rows:
        return
    terminalreporter.section("scenario | the model sees | the user sees | ms inside session.compact")
    for row in sorted(TABLE.rows):
        terminalreporter.write_line(" | ".join(row))
