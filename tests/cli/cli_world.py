"""Running the real `lcc` in its own process, and the sessions that it is run over."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "scripts" / "sample"


@dataclass(frozen=True)
class Ran:
    """What one run left behind."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


@dataclass(frozen=True)
class World:
    """A folder with the project's sample session in it, and `lcc` to run there without a network or a key."""

    folder: Path

    @property
    def session(self) -> Path:
        return self.folder / "session.jsonl"

    @property
    def workspace(self) -> Path:
        return self.folder / "ledger"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.folder / "home"),
            "LCC_STASH_DIR": str(self.folder / "stash"),
            "LCC_DISABLE_NETWORK": "1",
            **(more or {}),
        }

    def lcc(self, *arguments: str | Path, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> Ran:
        done = programs.run("lcc", *arguments, env=self.environment(env), cwd=self.folder, stdin=stdin or b"")
        return Ran(done.returncode, done.stdout, done.stderr.decode())

    def compact(self, *arguments: str | Path, mode: str = "recoverable", stdin: bytes | None = None) -> Ran:
        """A rules pass over the sample session."""
        return self.lcc(
            "compact", "session.jsonl", "--provider", "rules", "--rules-mode", mode, *arguments, stdin=stdin
        )

    def report(self, *arguments: str | Path, mode: str = "recoverable") -> dict[str, Any]:
        """The report of a rules pass over the sample session."""
        ran = self.compact("--dry-run", "-r", "-", *arguments, mode=mode)
        assert ran.code == 0, ran.err
        loaded: dict[str, Any] = json.loads(ran.out)
        return loaded

    def files(self) -> dict[str, bytes]:
        """Every file in the folder with its bytes."""
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}


def lay_out(folder: Path) -> World:
    """The sample session and a copy of the workspace that it is about."""
    workspace = folder / "ledger"
    shutil.copytree(SAMPLE / "workspace", workspace, ignore=shutil.ignore_patterns("__pycache__"))
    session = (SAMPLE / "session.jsonl").read_text().replace("/sample/ledger", json.dumps(str(workspace))[1:-1])
    (folder / "session.jsonl").write_text(session)
    (folder / "home").mkdir()
    return World(folder)
