"""Compacts the sample session that the project carries, and shows what was kept and what was removed.

Usage: python3 scripts/demo.py [--keep FOLDER]

Sets up .venv first where that is needed. The sample is copied to a temporary folder, so nothing of yours is
read or written; --keep leaves the compacted session, the report and the page in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from set_up import PYTHON, set_up

SAMPLE = Path(__file__).resolve().parent / "sample"
ROOT_IN_SAMPLE = "/sample/ledger"


def lay_out(folder: Path) -> Path:
    """A copy of the sample's workspace in ``folder``, and its session with that copy as its folder."""
    workspace = folder / "ledger"
    shutil.copytree(SAMPLE / "workspace", workspace, ignore=shutil.ignore_patterns("__pycache__"))
    inside_json = json.dumps(str(workspace))[1:-1]
    session = folder / "session.jsonl"
    session.write_text((SAMPLE / "session.jsonl").read_text().replace(ROOT_IN_SAMPLE, inside_json))
    return session


def run(folder: Path, *arguments: str) -> None:
    """Runs lcc on the sample as a person would, and shows the command."""
    print(f"\n$ lcc {' '.join(arguments)}", flush=True)
    environment = {**os.environ, "LCC_STASH_DIR": str(folder / "stash")}
    done = subprocess.run(
        [str(PYTHON.parent / "lcc"), *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL, timeout=300
    )
    if done.returncode != 0:
        raise SystemExit(f"lcc {arguments[0]} ended with exit code {done.returncode}")


def show_one_note(folder: Path) -> None:
    """Prints one result as it stands before and after."""
    report = json.loads((folder / "report.json").read_text())
    removed = [record for record in report["decisions"] if record["decision"] == "replace"]
    largest = max(removed, key=lambda record: record["chars"] - record["chars_after"])
    print(f"\nFor example, the result of {largest['tool']} {Path(largest['recover']['path']).name} was", end=" ")
    print(f"{largest['chars']:,} characters with its call. Now it reads:\n  {largest['note']}")


def demonstrate(folder: Path, *, page: bool) -> None:
    lay_out(folder)
    compact = ("compact", "session.jsonl", "--provider", "rules", "--rules-mode", "recoverable")
    run(folder, *compact, "-o", "compacted.jsonl", "-r", "report.json")
    run(folder, "explain", "report.json", "--limit", "5")
    if page:
        run(folder, "explain", "report.json", "--html", "page.html")
    show_one_note(folder)


def not_to_keep_in(folder: Path) -> str | None:
    """Makes the folder; why nothing can be kept in it, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return "it holds files already; name a new folder" if any(folder.iterdir()) else None
    except OSError as error:
        return str(error.strerror).lower()


def main() -> int:
    parser = argparse.ArgumentParser(description="Compact the sample session and show what was kept and removed.")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the files in this folder, which must be new or empty")
    keep = parser.parse_args().keep
    if keep and (problem := not_to_keep_in(Path(keep))):
        parser.error(f"--keep {keep}: {problem}")
    set_up(dev=False)
    if keep:
        folder = Path(keep).absolute()
        demonstrate(folder, page=True)
        print(f"\nThe files are in {keep}; open page.html in a browser.")
    else:
        with tempfile.TemporaryDirectory(prefix="lcc-demo-") as name:
            demonstrate(Path(name), page=False)
        print("\nThe files were temporary and are gone; --keep FOLDER leaves them, with a page for the browser.")
    print(f"lcc itself is {PYTHON.parent / 'lcc'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
