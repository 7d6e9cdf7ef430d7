"""Sessions that the whole ladder compacts, and the way back from what it made: a kind of input of `scripts/fuzz.py`.

Results become pointers and notes of the stash, some with a line of what they hold; long inputs of old calls become
notes too. A restore that reports no failure must give the original back, byte for byte; from a damaged compacted
session whatever is called proven must have the bytes that the report names.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from making import MadeSession, SessionFile, numbered, use

from lcc.compaction.compact import Compacted, compact
from lcc.compaction.images import restore_images
from lcc.contract.options import PassOptions
from lcc.contract.report import Report
from lcc.recovery.inputs import restore_inputs
from lcc.recovery.restore import RestoreError, removed_by, restore, restored_bytes
from lcc.relevance.ports import Ports
from lcc.stash import Stash
from lcc.transcript import TranscriptError, read_transcript

Outputs = tuple[tuple[str, str], ...]
Damage = Callable[[bytes, random.Random], bytes]

_WORDS = ("parser", "reader", "Überlauf", "解析器", "🙂", "a\u0301", "src/app.py", "deadbeef0123", "\\n", '"', "\u2028")


def _body(chosen: random.Random, lines: int) -> str:
    """Lines that are not the same twice, with words of many scripts and marks, paths and ids."""
    odd = chosen.choice(("", " src/part_{0}/of_{0}.py", " {0:010x}a"))
    return "".join(
        f"{chosen.choice(_WORDS)} {number} {chosen.randrange(10**6)} {chosen.choice(_WORDS)}"
        f"{odd.format(chosen.randrange(10**9)) if number < 9 else ''}\n"
        for number in range(lines)
    )


def _calls(chosen: random.Random, outputs: Outputs, folder: Path) -> list[tuple[str, dict[str, Any], str]]:
    """Calls with their inputs and results: reads of real files, a real shell's output, long inputs, repeats."""
    paths = [folder / f"part-{number}.txt" for number in range(4)]
    for path in paths:
        path.unlink(missing_ok=True)  # an input is the same whatever came before it
    found: list[tuple[str, dict[str, Any], str]] = []
    for number in range(chosen.randint(6, 22)):
        path = chosen.choice(paths)
        match chosen.randrange(6):
            case 0:
                if not path.exists() or chosen.random() < 0.5:
                    path.write_text(_body(chosen, chosen.randint(1, 60)), encoding="utf-8")
                shown = numbered(path.read_text(encoding="utf-8"), form=chosen.choice(("{}\t{}", "{:>6}→{}")))
                found.append(("Read", {"file_path": str(path)}, shown))
            case 1:
                command, output = chosen.choice(outputs)
                found.append(("Bash", {"command": command}, output))
            case 2:
                content = _body(chosen, chosen.randint(1, 40))
                if chosen.random() < 0.5:
                    path.write_text(content, encoding="utf-8")
                found.append(("Write", {"file_path": str(path), "content": content}, "ok"))
            case 3:
                given = {"file_path": str(path), "old_string": _body(chosen, 9), "new_string": _body(chosen, 12)}
                found.append(("Edit", given, "ok"))
            case 4:
                given = {"prompt": _body(chosen, 14), "description": "Look", "depth": {"list": [1, _body(chosen, 9)]}}
                found.append(("Task", given, _body(chosen, chosen.choice((0, 50, 400)))))
            case _ if found and chosen.random() < 0.5:
                found.append(chosen.choice(found))
            case _:
                found.append(("Grep", {"pattern": f"x{number}"}, _body(chosen, chosen.choice((30, 400)))))
    return found


def _payload(calls: list[tuple[str, dict[str, Any], str]], chosen: random.Random, folder: Path) -> bytes:
    session = MadeSession("Go on with the work", cwd=str(folder))
    for tool, given, output in calls:
        session.call(tool, given, output, chosen.choice((None, False)))
    for _ in range(22):
        session.say("further", chosen.choice(("user", "assistant")))
    return session.raw()


def _claude(calls: list[tuple[str, dict[str, Any], str]], chosen: random.Random, folder: Path) -> bytes:
    """A session file of Claude Code, now and then with a branch that was left, or with escapes."""
    session = SessionFile(folder)
    session.user("Go on with the work")
    left = chosen.randrange(len(calls)) if chosen.random() < 0.3 else None
    for number, (tool, given, output) in enumerate(calls):
        before = session.last
        session.assistant(use(f"toolu_{number}", tool, **given))
        session.result(f"toolu_{number}", output if chosen.random() < 0.8 else [{"type": "text", "text": output}])
        if number == left:
            session.user("No, otherwise", parentUuid=before)
    session.talk(22)
    if chosen.random() < 0.2:
        return b"".join(json.dumps(row).encode() + b"\n" for row in session.rows)
    return session.raw()


def _codex(calls: list[tuple[str, dict[str, Any], str]], chosen: random.Random, folder: Path) -> bytes:
    """A rollout: commands with their header."""
    items: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": "s", "cwd": str(folder)}}]

    def add(**payload: Any) -> None:
        items.append({"type": "response_item", "payload": payload})

    def say(role: str, words: str) -> None:
        add(type="message", role=role, content=[{"type": "input_text", "text": words}])

    say("user", "Go on with the work")
    for number, (tool, given, output) in enumerate(calls):
        command = f"cat {given['file_path']}" if tool == "Read" else str(given.get("command", "true"))
        shown = Path(str(given["file_path"])).read_text(encoding="utf-8") if tool == "Read" else output
        arguments = json.dumps(
            {"command": ["bash", "-lc", command], "workdir": str(folder), "note": given.get("prompt")}
        )
        header = f"Exit code: 0\nWall time: 0.{number} seconds\nOutput:\n"
        add(type="function_call", name="shell", arguments=arguments, call_id=f"call_{number}")
        add(type="function_call_output", call_id=f"call_{number}", output=header + shown)
    for number in range(22):
        say(("assistant", "user")[number % 2], "further")
    escaped = chosen.random() < 0.2
    return b"".join(json.dumps(item, ensure_ascii=escaped).encode() + b"\n" for item in items)


def _second_writer(chosen: random.Random, folder: Path) -> Callable[[Compacted], None]:
    def write(_: Compacted) -> None:
        if chosen.random() < 0.2:
            path = folder / f"part-{chosen.randrange(4)}.txt"
            if chosen.random() < 0.3:
                path.unlink(missing_ok=True)
            else:
                path.write_text(f"somebody else's {chosen.randrange(10**6)}\n")

    return write


def _way_back(compacted: bytes, report: Report, stash: Stash) -> tuple[bytes, bool]:
    """What `lcc restore --report` makes, and whether every note was followed and proven."""
    transcript = read_transcript(compacted)
    removed = removed_by([report])
    found = restore(transcript, removed, stash)
    for text_id in found.proven:
        held = hashlib.sha256(found.edits.texts[text_id].encode("utf-8", "surrogatepass")).hexdigest()
        assert text_id not in removed or held == removed[text_id].sha256, f"{text_id} is called proven"
    inputs = restore_inputs(transcript, [report], stash)
    edits = found.edits.__class__(found.edits.texts, inputs=inputs.strings)
    content, _, lost = restore_images(restored_bytes(transcript, edits, removed), stash)
    return content, not (found.failures or found.unproven or inputs.failures or lost)


def ladder(chosen: random.Random, folder: Path, outputs: Outputs, damage: Damage) -> str:
    """One session through the ladder and back, or damaged on its way."""
    make = chosen.choice((_payload, _claude, _claude, _codex))
    raw = make(_calls(chosen, outputs, folder), chosen, folder)
    shutil.rmtree(folder / "stash", ignore_errors=True)
    stash = Stash(folder / "stash")
    ports = Ports(stash_folder=folder / "stash")
    options = PassOptions(
        provider="rules", rules_mode="auto", min_reduction=chosen.choice((0.0, 0.25, 0.9)),
        target=chosen.choice((None, 100.0)), question=chosen.choice(("", "part-1.txt", "parser")),
    )  # fmt: skip
    answer = compact(read_transcript(raw), options, ports, stage=_second_writer(chosen, folder))
    assert answer.content is not None
    assert not answer.report["lossless_violations"]
    if chosen.random() < 0.4:
        try:
            _way_back(damage(answer.content, chosen), answer.report, stash)
        except (TranscriptError, RestoreError):
            return "damaged, and refused"
        return "damaged, and restored as far as it went"
    back, complete = _way_back(answer.content, answer.report, stash)
    assert back == raw or not complete, "restored without a failure, and not the original"
    if not complete:
        return "told what is gone"
    inputs = sum(len(record["inputs"] or ()) for record in answer.report["decisions"])
    held = any(record.get("excerpt") for record in answer.report["decisions"])
    if not answer.changed:
        return "nothing to remove"
    return f"back byte for byte{', inputs too' if inputs else ''}{', with a line of what a note holds' if held else ''}"
