"""What holds for all tests: in CI, tests are skipped only where the shared sessions are missing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from odd_files import Holder, holders, never_waits

ALLOWED_SKIP = "shared session"
SLOW_FOLDERS = ("client", "daemon")
"""Their files take longest: they come first, so that no processor waits at the end for the last of them."""

# A run that was started in the background of a shell ignores Ctrl-C, and so would every program that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def hold() -> Iterator[Holder]:
    """Has another process hold a lock until the test ends, or kills it."""
    with holders() as holder:
        yield holder


@pytest.fixture
def in_time() -> Iterator[None]:
    """The test fails where it waits for what never comes."""
    with never_waits():
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files of the slow folders first, in whatever order they are otherwise run."""
    items.sort(key=lambda item: item.path.parent.name not in SLOW_FOLDERS)


def _unexpected_skips(reporter: pytest.TerminalReporter) -> Iterator[str]:
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if ALLOWED_SKIP not in reason.lower():
            yield f"{report.nodeid}: {reason}"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true, a skip that nothing allows fails the run: a check that did not run has not passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or not isinstance(reporter, pytest.TerminalReporter):
        return
    skipped = list(_unexpected_skips(reporter))
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line("")
        for line in skipped:
            reporter.write_line(f"skipped in CI: {line}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
