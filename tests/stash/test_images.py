"""Images in old results: stashed as images, and put back byte for byte."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from making import SessionFile, text, use

from lcc.compaction.compact import compact
from lcc.compaction.images import restore_images, stash_images
from lcc.contract.options import PassOptions
from lcc.recovery.recall import recall
from lcc.recovery.restore import removed_by, restore, restored_bytes
from lcc.relevance.ports import Ports
from lcc.sessions.fork import fork_bytes, new_session_id
from lcc.stash import Stash
from lcc.transcript import read_transcript

Row = dict[str, Any]


def png(width: int, height: int) -> bytes:
    """A real picture, all black."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    rows = zlib.compress(b"".join(b"\x00" + bytes(width) for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


PICTURE = png(900, 750)


def image(content: bytes = PICTURE, kind: str = "image/png") -> Row:
    data = base64.b64encode(content).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n" * 200 + b"%%EOF\n"


def document(content: bytes = PDF) -> Row:
    """What a Read of a PDF shows beside a line of text."""
    return {**image(content, "application/pdf"), "type": "document"}


def session(*contents: Any, later: int = 40, flag: bool | None = None) -> bytes:
    """A session with a result for each of ``contents``, and ``later`` answers behind them."""
    made = SessionFile()
    made.user("look")
    for index, content in enumerate(contents):
        made.assistant(use(f"t{index}", "Screenshot"))
        made.result(f"t{index}", content, flag=flag, toolUseResult=content)
    made.talk(later)
    return made.raw()


class Made:
    """What `stash_images` makes of a file that a pass has looked at: its result, and the file's new bytes."""

    def __init__(self, raw: bytes, stash: Stash | None, preserve_recent: int = 6) -> None:
        options = PassOptions(provider="rules", rules_mode="lossless", preserve_recent=preserve_recent)
        kept = compact(read_transcript(raw), options, rendered=False).result.kept_images
        self.images = stash_images(read_transcript(raw), stash, kept)
        self.content = self.images.noted(raw)
        self.stashed = len(self.images.notes)
        self.calls = self.images.calls


@pytest.fixture
def stash(tmp_path: Path) -> Stash:
    return Stash(tmp_path / "stash", "s")


@pytest.mark.parametrize(
    "content", [[image()], [text("Screenshot ok"), image()], [image(), text("and"), image(png(2, 2)), text("end")]]
)
def test_an_old_image_becomes_a_note_and_comes_back_byte_for_byte(stash: Stash, content: list[Row]) -> None:
    """Alone or among texts; every other byte of the file stands; recall gives the image."""
    raw = session(content)
    made = Made(raw, stash, 6)
    images = [part for part in content if part["type"] == "image"]
    assert made.stashed == len(images)
    assert made.calls == {"t0"}
    row = json.loads(made.content.splitlines()[2])
    notes = [
        part["text"]
        for part, old in zip(row["message"]["content"][0]["content"], content, strict=True)
        if old in images
    ]
    for note, old in zip(notes, images, strict=True):
        found = recall(stash, note[-13:-1])
        assert found.image == "png"
        assert found.content == base64.b64decode(old["source"]["data"])
    assert notes[0].startswith("[removed: 900 tokens" if content[0] == image() else "[removed: ")
    assert row["toolUseResult"] == content
    back, count, problems = restore_images(made.content, stash)
    assert (back, count, problems) == (raw, len(images), [])


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}],
        [image(b"no picture at all")],
        [image(PICTURE, "image/jpeg")],
        [image() | {"cache_control": {"type": "ephemeral"}}],
        [{"source": image()["source"], "type": "image"}],
        [{"type": "image", "source": image()["source"] | {"data": image()["source"]["data"] + "\n"}}],
        [text("no image")],
        "a plain text",
    ],
)
def test_what_could_not_be_rebuilt_exactly_is_not_touched(stash: Stash, content: Any) -> None:
    """Other forms of the block, other data, no image at all."""
    raw = session(content)
    assert Made(raw, stash, 6).content == raw


def test_a_pdf_becomes_a_note_and_comes_back_byte_for_byte(stash: Stash) -> None:
    """The document goes, the line that names the file stays; recall gives the bytes."""
    raw = session([text("PDF file read: /w/a.pdf (9 KB)"), document()])
    made = Made(raw, stash)
    assert made.stashed == 1
    line, note = json.loads(made.content.splitlines()[2])["message"]["content"][0]["content"]
    assert line == text("PDF file read: /w/a.pdf (9 KB)")
    assert note["text"].startswith("[removed: ")
    back, count, problems = restore_images(made.content, stash)
    assert (back, count, problems) == (raw, 1, [])
    found = recall(stash, note["text"][-13:-1])
    assert (found.content, found.text) == (PDF, None)


def test_a_text_that_begins_as_a_pdf_is_a_text(stash: Stash, tmp_path: Path) -> None:
    """What a command printed of one is restored into its result, as the report says."""
    shown = "%PDF-1.7\n" + "1 0 obj<</Type/Catalog>>endobj\n" * 200
    made = SessionFile()
    made.user("look")
    made.assistant(use("t0", "Bash", command="make pdf"))
    made.result("t0", shown)
    made.talk(40)
    raw = made.raw()
    done = compact(
        read_transcript(raw),
        PassOptions(provider="rules", rules_mode="stashed"),
        Ports(stash_folder=stash.folder, can_recall=True),
    )
    assert shown[:40].encode() not in (done.content or b"")
    removed = removed_by([done.report])
    transcript = read_transcript(done.content or b"")
    found = restore(transcript, removed, stash)
    assert found.failures == ()
    assert restored_bytes(transcript, found.edits, removed) == raw


def test_images_that_are_written_otherwise_are_not_touched(stash: Stash) -> None:
    """A file with spaces in its JSON could not be restored byte for byte."""
    spaced = b"".join(json.dumps(json.loads(line)).encode() + b"\n" for line in session([image()]).splitlines())
    assert Made(spaced, stash, 6).content == spaced


def test_images_obey_the_guards_of_results(stash: Stash) -> None:
    """The first message, the newest ones, what the goal names and what is protected: the image stays with its text."""

    def stashed(raw: bytes, **options: Any) -> int:
        asked = PassOptions(**{"provider": "rules", "rules_mode": "stashed", **options})
        answer = compact(read_transcript(raw), asked, Ports(stash_folder=stash.folder))
        count = answer.report["images_stashed"]
        assert (answer.content == raw) is (count == 0)
        assert isinstance(count, int)
        return count

    shot = session([text("Screenshot ok"), image()])
    assert stashed(shot) == 1
    assert stashed(shot, protect_tools=("screen*",)) == 0
    assert stashed(shot, question="look at t0 again") == 0
    assert stashed(shot, preserve_recent=100) == 0
    rows = [json.loads(line) for line in shot.splitlines()][1:]
    rows[0]["parentUuid"] = None
    first = b"".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in rows)
    assert stashed(first) == 0


def test_recent_images_and_failed_results_stay(stash: Stash) -> None:
    """By the caller's number and by the policy's."""
    assert Made(session([image()], later=5), stash, 6).stashed == 0
    assert Made(session([image()], later=40), stash, 100).stashed == 0
    assert Made(session([image()], later=40, flag=True), stash, 6).stashed == 0


def test_a_dry_run_says_the_same_and_writes_nothing(stash: Stash) -> None:
    """The same bytes without a stash."""
    raw = session([image()])
    dry = Made(raw, None, 6)
    assert not stash.folder.exists()
    made = Made(raw, stash, 6)
    assert (dry.images, dry.content) == (made.images, made.content)


def test_an_image_that_cannot_be_stored_is_kept(tmp_path: Path) -> None:
    """With a warning that says why."""
    (tmp_path / "file").write_text("in the way")
    raw = session([image()])
    made = Made(raw, Stash(tmp_path / "file" / "stash"), 6)
    assert (made.content, made.stashed) == (raw, 0)
    assert made.images.warnings == ("stash_write_failed:ENOTDIR: 1 images were kept",)


def test_a_fork_does_not_carry_the_second_copy(stash: Stash) -> None:
    """The image is nowhere in the fork, and its note is."""
    made = Made(session([text("shot"), image()]), stash, 6)
    forked = fork_bytes(made.content, made.calls, new_session_id())
    assert base64.b64encode(PICTURE)[:200] not in forked
    assert b"lcc recall" in forked


def test_images_of_a_messages_request_go_and_come_back(stash: Stash) -> None:
    """The Messages API's own form."""
    messages: list[Row] = [{"role": "user", "content": "look"}]
    messages.append({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Shot", "input": {}}]})
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [image()]}]})
    for index in range(20):
        messages += [{"role": "assistant", "content": f"step {index}"}, {"role": "user", "content": "go on"}]
    raw = json.dumps({"messages": messages}, separators=(",", ":")).encode()
    made = Made(raw, stash, 6)
    assert made.stashed == 1
    assert read_transcript(made.content).messages[2].tool_results[0].text.startswith("[removed: 900 tokens")
    assert restore_images(made.content, stash)[0] == raw


def test_a_lost_image_is_said(stash: Stash) -> None:
    """Its note stays."""
    made = Made(session([image()]), stash, 6)
    for pack in (stash.folder / "packs").iterdir():
        pack.unlink()
    back, count, problems = restore_images(made.content, stash)
    assert (back, count) == (made.content, 0)
    assert "no object" in problems[0][1]
