"""What holds for all tests: in CI, tests are skipped only where the shared sessions are missing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

ALLOWED_SKIP = "shared session"


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
