"""Sets up the project in its own environment, `.venv` beside this folder. Standard library only.

Usage: python3 scripts/set_up.py [--dev]

What is there already and fits is left alone, so this costs nothing the second time. --dev adds what the tests
and checks need.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"

_STEP_SECONDS = 900
_NOT_A_TERMINAL_SECONDS = 15.0


def set_up(*, dev: bool) -> Path:
    """Makes the environment where it is missing or out of date; returns its interpreter."""
    if sys.platform == "win32":
        raise SystemExit("lcc needs Linux or macOS; on Windows install and run it in WSL")
    if sys.version_info < (3, 11):  # noqa: UP036
        raise SystemExit("lcc needs Python 3.11 or newer; run this with a newer python3")
    wanted = _fingerprint(dev)
    stamp = _stamp(dev)
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return PYTHON
    if not PYTHON.exists():
        _step("making .venv", [sys.executable, "-m", "venv", str(ENVIRONMENT)])
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
    _step("installing lcc" + (" with what the tests need" if dev else ""), [*pip, *_requirements(dev)])
    stamp.write_text(wanted)
    if dev:  # it has all that a run needs
        _stamp(False).write_text(_fingerprint(False))
    return PYTHON


def _stamp(dev: bool) -> Path:
    return ENVIRONMENT / f"lcc-set-up-{'dev' if dev else 'run'}"


def _project() -> dict[str, object]:
    import tomllib  # not above: an older Python must get as far as the message about it

    with (ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def _requirements(dev: bool) -> list[str]:
    if not dev:
        return ["--editable", str(ROOT)]
    groups = _project().get("dependency-groups", {})
    needed = groups.get("dev", []) if isinstance(groups, dict) else []
    # The extras are tested too. Older versions of pip do not know dependency groups.
    return ["--editable", f"{ROOT}[{','.join(_extras())}]" if _extras() else str(ROOT), *map(str, needed)]


def _extras() -> list[str]:
    project = _project().get("project", {})
    extras = project.get("optional-dependencies", {}) if isinstance(project, dict) else {}
    return [name for name in extras if name == "mcp"]


def _fingerprint(dev: bool) -> str:
    seen = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    seen.update(f"{sys.version_info[:2]} {dev} {ROOT}".encode())
    return seen.hexdigest()


def _step(doing: str, command: Sequence[str]) -> None:
    """Runs one step and shows that it goes on. What it printed is shown when it fails."""
    started = time.monotonic()
    terminal = sys.stderr.isatty()
    print(f"{doing} …", end="" if terminal else "\n", file=sys.stderr, flush=True)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=_quiet_environment()
    ) as process:
        said = _wait(process, started, terminal)
    if terminal:
        print(f"\r{doing} … {time.monotonic() - started:.0f} s", file=sys.stderr)
    if process.returncode != 0:
        print(said.decode(errors="replace"), file=sys.stderr)
        raise SystemExit(f"{doing}: failed with exit code {process.returncode}; is there a network?")


def _wait(process: subprocess.Popen[bytes], started: float, terminal: bool) -> bytes:
    while True:
        try:
            return process.communicate(timeout=1.0 if terminal else _NOT_A_TERMINAL_SECONDS)[0]
        except subprocess.TimeoutExpired:
            elapsed = time.monotonic() - started
            if elapsed > _STEP_SECONDS:
                process.kill()
                return process.communicate()[0] + b"\nstopped: it took too long"
            print("\r" * terminal + f"  … {elapsed:.0f} s", end="" if terminal else "\n", file=sys.stderr, flush=True)


def _quiet_environment() -> dict[str, str]:
    # A PYTHONPATH or an active environment of the caller must not leak into ours.
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Set up lcc in .venv.")
    parser.add_argument("--dev", action="store_true", help="with what the tests and checks need")
    set_up(dev=parser.parse_args().dev)


if __name__ == "__main__":
    main()
