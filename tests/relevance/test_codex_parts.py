"""Codex from 0.144 on: every output is a list of texts, and each text goes and comes back by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lcc.compaction.compact import compact
from lcc.contract.options import PassOptions
from lcc.recovery.restore import removed_by, restore, restored_bytes
from lcc.stash import Stash, stash_folder
from lcc.transcript import read_transcript

HEADER = "Script completed\nWall time 0.2 seconds\nOutput:\n"
CONTENT = "".join(f"def function_{n}(value): return value + {n}\n" for n in range(40))
Item = dict[str, Any]


def text(words: str) -> Item:
    return {"type": "input_text", "text": words}


class Rollout:
    """A rollout in the making, in a workspace of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.items: list[Item] = []
        (folder / "a.py").write_text(CONTENT)
        self.say("user", "Make it faster.")

    def say(self, role: str, words: str) -> None:
        self.items.append({"type": "message", "role": role, "content": [text(words)]})

    def exec(self, command: str, *parts: Item, header: str = HEADER) -> str:
        """A script that is one plain call of ``exec_command``, and what it printed."""
        given = json.dumps({"cmd": command, "workdir": str(self.folder)})
        script = f"const r = await tools.exec_command({given});\ntext(r.output);"
        call_id = f"call_{len(self.items)}"
        self.items.append({"type": "custom_tool_call", "name": "exec", "call_id": call_id, "input": script})
        output = [text(header), *parts]
        self.items.append({"type": "custom_tool_call_output", "call_id": call_id, "output": output})
        return call_id

    def raw(self) -> bytes:
        meta = {"type": "session_meta", "payload": {"id": "s", "cwd": str(self.folder), "cli_version": "0.147.0"}}
        lines = [meta, *({"type": "response_item", "payload": item} for item in self.items)]
        return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def passed(rollout: Rollout, mode: str, **options: Any) -> tuple[dict[str, Item], bytes, Any]:
    """The records by call, the compacted bytes, and the report."""
    for n in range(14):
        rollout.say("assistant" if n % 2 else "user", f"Go on, {n}.")
    given = PassOptions(provider="rules", rules_mode=mode, **options)
    compacted = compact(read_transcript(rollout.raw()), given)
    records = {str(record["id"]): dict(record) for record in compacted.report["decisions"]}
    return records, compacted.content or b"", compacted.report


def outputs(raw: bytes) -> dict[str, Any]:
    items = [json.loads(line)["payload"] for line in raw.splitlines()]
    return {item["call_id"]: item["output"] for item in items if "output" in item}


@pytest.fixture
def rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rollout:
    monkeypatch.setenv("LCC_STASH_DIR", str(tmp_path / "stash"))
    folder = tmp_path / "project"
    folder.mkdir()
    return Rollout(folder)


def test_a_file_that_a_script_printed_is_proven_on_disk_and_comes_back(rollout: Rollout) -> None:
    """The header stays in its part; the report is not needed to restore, for nothing of the header went."""
    call = rollout.exec("cat a.py", text(CONTENT))
    raw = rollout.raw()

    records, new, report = passed(rollout, "recoverable")

    note = "[removed: re-read a.py to recover; content verified on disk at compaction time]"
    assert outputs(new)[call] == [text(HEADER), text(note)]
    record = records[call]
    assert (record["decision"], record["reason"], record["note"]) == ("replace", "replace_disk_verified", note)
    assert [(part["part"], part["reason"]) for part in record["parts"]] == [
        (1, "read_range_empty"),
        (2, "replace_disk_verified"),
    ]
    assert record["chars"] - record["chars_after"] == len(CONTENT) - len(note)
    transcript = read_transcript(new)
    for removed in (removed_by([report]), None):
        restored = restore(transcript, removed, Stash(stash_folder()), str(rollout.folder))
        assert not restored.failures
        assert restored_bytes(transcript, restored.edits).startswith(raw)
        assert restored.proven == ({f"{call} part 2"} if removed is not None else set())


def test_repeats_point_at_the_part_that_stays(rollout: Rollout) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    first = rollout.exec("make", image, text(CONTENT))
    within = rollout.exec("make head", text("\n".join(CONTENT.split("\n")[3:9])))
    last = rollout.exec("make", text("Building.\n"), text(CONTENT))

    _, new, report = passed(rollout, "lossless")

    assert outputs(new)[first] == [text(HEADER), image, text(f"[identical output kept at {last} part 3]")]
    assert outputs(new)[within] == [text(HEADER), text(f"[output = lines 4-9 of {last} part 3]")]
    assert outputs(new)[last] == [text(HEADER), text("Building.\n"), text(CONTENT)]
    assert report["tool_calls_deduped"] == 2
    transcript = read_transcript(new)
    restored = restore(transcript, None, Stash(stash_folder()))
    assert restored_bytes(transcript, restored.edits) == rollout.raw()


def test_a_later_pass_keeps_what_an_older_note_points_at(rollout: Rollout) -> None:
    first = rollout.exec("./build.sh", text(CONTENT))
    last = rollout.exec("./build.sh", text(CONTENT), text("step done\n" * 200))
    _, once, _ = passed(rollout, "lossless")
    assert outputs(once)[first] == [text(HEADER), text(f"[identical output kept at {last} part 2]")]

    options = PassOptions(provider="rules", rules_mode="stashed")
    twice = compact(read_transcript(once), options).content or b""

    assert outputs(twice)[first] == outputs(once)[first]
    assert outputs(twice)[last][1] == text(CONTENT)
    assert outputs(twice)[last][2]["text"].startswith("[removed: ")


def test_old_outputs_and_their_images_go_to_the_stash_and_come_back(rollout: Rollout) -> None:
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{png}"}
    noise = "".join(f"{n}: something happened at step {n * n}\n" for n in range(200))
    call = rollout.exec("make all", text(noise), image)

    records, new, report = passed(rollout, "stashed")

    header, words, picture = outputs(new)[call]
    assert header == text(HEADER)
    assert words["text"].startswith("[removed: ")
    assert picture["type"] == "input_text"
    assert picture["text"].startswith("[removed: ")
    assert records[call]["parts"][1]["stash"]["bytes"] == len(noise)
    assert report["images_stashed"] == 1
    from lcc.compaction.images import restore_images

    transcript = read_transcript(new)
    stash = Stash(stash_folder())
    restored = restore(transcript, removed_by([report]), stash)
    assert not restored.failures
    back, count, problems = restore_images(restored_bytes(transcript, restored.edits), stash)
    assert (back, count, problems) == (rollout.raw(), 1, [])


@pytest.mark.parametrize(
    ("parts", "header", "reason"),
    [
        ([text(CONTENT)], HEADER, "recoverable_file_read"),
        ([text(CONTENT), text("and more of it " * 30)], HEADER, "read_range_unknown"),
        ([text(CONTENT)], "Script running with cell ID 7\nWall time 10.0 seconds\nOutput:\n", "not_recoverable"),
        ([text(CONTENT + "…1200 tokens truncated…\n")], HEADER, "read_range_unknown"),
    ],
    ids=["plain", "two bodies", "still running", "cut"],
)
def test_what_a_script_printed_by_the_transcript_alone(
    rollout: Rollout, parts: list[Item], header: str, reason: str
) -> None:
    call = rollout.exec("cat a.py", *parts, header=header)

    records, new, _ = passed(rollout, "recoverable", disk_check=False)

    found = records[call]
    reasons = [part["reason"] for part in found["parts"]][1:] if "parts" in found else [found["reason"]]
    assert set(reasons) == {reason}
    assert (outputs(new)[call] != [text(header), *parts]) == (reason == "recoverable_file_read")


def test_a_process_that_still_runs_may_write_any_time(rollout: Rollout) -> None:
    rollout.exec("npm run watch", header="Script running with cell ID 7\nWall time 10.0 seconds\nOutput:\n")
    call = rollout.exec("cat a.py", text(CONTENT))

    records, new, _ = passed(rollout, "recoverable", disk_check=False)

    assert records[call]["reason"] == "file_written_later"
    assert outputs(new)[call] == [text(HEADER), text(CONTENT)]


def test_a_script_that_failed_is_the_latest_error(rollout: Rollout) -> None:
    rollout.exec("cat a.py", text(CONTENT))
    failed = rollout.exec("cat a.py", text("Script error:\nboom " * 30), header=HEADER.replace("completed", "failed"))

    records, _, _ = passed(rollout, "recoverable")

    assert records[failed]["reason"] == "latest_error_result"


@pytest.mark.parametrize("mode", ["lossy", "lossless"])
def test_no_part_is_cut(rollout: Rollout, mode: str) -> None:
    """What is trimmed is one text; a result of several is kept or goes whole."""
    long = "".join(f"{n} words that nobody needs\n" for n in range(600))
    call = rollout.exec("make", text(long))
    for n in range(30):
        rollout.exec(f"make {n}", text(f"ok {n}"))

    records, new, _ = passed(rollout, mode)

    assert records[call]["decision"] == "keep"
    assert outputs(new)[call] == [text(HEADER), text(long)]
