"""A format that nobody has heard of: one file and one line make it read, edited, written, restored and offered."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lcc

REGISTRY = "lcc/transcript/formats/__init__.py"
MODULE = '''
"""Diaries: a line of JSON for everything that was said, asked or answered."""

from typing import Final

from lcc.transcript.building import MessageBuilder, duplicate_ids
from lcc.transcript.formats.many_lines import ManyLines
from lcc.transcript.lines import split
from lcc.transcript.model import ToolResult, ToolUse, Transcript
from lcc.transcript.values import Path
from lcc.transcript.source import Source


class Diary(ManyLines):
    name = "diary"
    what = "a diary"

    def recognises(self, source: Source) -> bool:
        return "diary" in source.fields

    def begins(self, source: Source) -> bool:
        return self.recognises(source)

    def read(self, source: Source) -> Transcript:
        offsets, messages = [], []
        for start, end, _, value, _ in split(source.raw):
            index = len(offsets)
            offsets.append((start, end))
            message = MessageBuilder("user" if "said" in value or "answer" in value else "assistant")
            message.documents.append(index)
            if "said" in value:
                message.texts.append(str(value["said"]))
            if "ask" in value:
                message.uses.append(ToolUse(str(value["id"]), str(value["ask"]), value["with"], None, (index,)))
            if "answer" in value:
                path: Path = (index, "answer")
                message.results.append(ToolResult(str(value["id"]), str(value["answer"]), None, (index,), path))
            messages.append(message.build())
        return Transcript(self, tuple(messages), None, None, None, frozenset(), duplicate_ids(messages),
                          source.raw, tuple(offsets))

    def is_own_line(self, path: Path) -> bool:
        return len(path) == 1


FORMAT: Final = Diary()
'''
OUTPUT = "\n".join(f"line {n} of the first output" for n in range(20))
LINES = [
    {"diary": 1, "said": "read it"},
    {"id": "c1", "ask": "Read", "with": {"file_path": "/none/a.py"}},
    {"id": "c1", "answer": OUTPUT},
    {"id": "c2", "ask": "Read", "with": {"file_path": "/none/a.py"}},
    {"id": "c2", "answer": OUTPUT},
    *({"diary": 1, "said": f"word {n}"} for n in range(8)),
]
RAW = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in LINES)


@pytest.fixture(scope="module")
def with_diary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of lcc with the new file and the new line in it, and nothing else."""
    home = tmp_path_factory.mktemp("copy")
    shutil.copytree(Path(lcc.__file__).parent, home / "lcc", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "lcc/transcript/formats/diary.py").write_text(MODULE)
    registry = home / REGISTRY
    listed = registry.read_text()
    assert listed.count('    "codex",\n') == 1
    registry.write_text(listed.replace('    "codex",\n', '    "diary",\n    "codex",\n'))
    (home / "session.jsonl").write_bytes(RAW)
    return home


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A program of the copy."""
    environment = {"PYTHONPATH": str(home), "HOME": str(home), "PATH": os.environ["PATH"], "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-P", *words], cwd=home, env=environment, capture_output=True, text=True, timeout=60
    )


def lcc_of(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(home, "-c", "from lcc.cli import main; main()", *words)


@pytest.mark.parametrize("named", [[], ["--format", "diary"]])
def test_it_is_compacted_and_restored(with_diary: Path, named: list[str]) -> None:
    wanted = ["--provider", "rules", "--rules-mode", "lossless", "--preserve-recent", "2"]
    done = lcc_of(with_diary, "compact", "session.jsonl", *wanted, *named, "-o", "out.jsonl", "-r", "report.json")
    assert done.returncode == 0, done.stderr
    report = json.loads((with_diary / "report.json").read_text())
    assert (report["format"], report["messages_before"], report["tool_calls_deduped"]) == ("diary", 13, 1)
    compacted = [json.loads(line) for line in (with_diary / "out.jsonl").read_text().splitlines()]
    assert compacted[2] == {"id": "c1", "answer": "[identical output kept at c2]"}

    restored = lcc_of(with_diary, "restore", "out.jsonl", "--report", "report.json", "-o", "back.jsonl")
    assert restored.returncode == 0, restored.stderr
    assert (with_diary / "back.jsonl").read_bytes() == RAW


def test_its_calls_are_dropped_with_their_lines(with_diary: Path) -> None:
    program = (
        "import sys; from lcc.transcript import Edits, read_transcript, render\n"
        "out = render(read_transcript(open('session.jsonl', 'rb').read()), Edits({}, frozenset(['c1'])))\n"
        "sys.stdout.write(out.decode())"
    )
    lines = RAW.decode().splitlines(keepends=True)

    assert run(with_diary, "-c", program).stdout == "".join(lines[:1] + lines[3:])


def test_it_is_offered_and_checked_by_name(with_diary: Path) -> None:
    assert "diary" in lcc_of(with_diary, "compact", "--help").stdout
    wrong = lcc_of(with_diary, "compact", "session.jsonl", "--format", "dairy", "--dry-run")
    assert wrong.returncode == 2
    assert "--format dairy: none of auto, messages-api, payload, diary, codex, claude-code" in wrong.stderr
    held = lcc_of(with_diary, "compact", "session.jsonl", "--format", "codex", "--dry-run")
    assert held.returncode == 2
    assert "a Codex rollout, a Claude Code session)" in held.stderr
    assert "a diary" in held.stderr
    forked = lcc_of(with_diary, "compact", "session.jsonl", "--format", "diary", "--fork")
    assert forked.returncode == 2
    assert "only a Claude Code session can be forked" in forked.stderr
