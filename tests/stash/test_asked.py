"""What an agent's tool asks of the stash: each field checked and named, and a bounded answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lcc.contract.notes import stash_note
from lcc.log.recalls import Recall, note_recall, recalls_in
from lcc.recovery.asked import MAX_IMAGE_BYTES, MOST_PAGE_CHARS, Asked, give, read_asked
from lcc.recovery.recall import Part, RecallError
from lcc.stash import Stash
from lcc.transcript import Json

ID = "0123456789ab"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"id": ID}, Asked(ID)),
        ({"id": stash_note(812, ID)}, Asked(ID)),
        ({"id": f" {ID}\n", "lines": "", "grep": None}, Asked(ID)),
        ({"id": ID, "lines": 120}, Asked(ID, Part((120, 120)))),
        ({"id": ID, "lines": "3-", "grep": "a|b", "offset": "7"}, Asked(ID, Part((3, None), "a|b", 7))),
        ({"id": ID, "limit": 10**9}, Asked(ID, limit=MOST_PAGE_CHARS)),
    ],
)
def test_what_a_model_may_write(given: Json, asked: Asked) -> None:
    """A pasted note, a number for a text and a text for a number are what they mean."""
    assert read_asked(given) == asked


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, "id"),
        ([], "id"),
        ({}, "id is missing"),
        ({"id": {}}, "id is no text"),
        ({"id": ID, "lines": "9-3"}, "lines '9-3'"),
        ({"id": ID, "grep": True}, "grep is no text"),
        ({"id": ID, "grep": "x" * 1001}, "grep has 1001 characters"),
        ({"id": ID, "offset": -1}, "offset is -1"),
        ({"id": ID, "offset": 1.5}, "offset is 1.5"),
        ({"id": ID, "limit": 0}, "limit is 0"),
    ],
)
def test_what_is_wrong_is_named(given: Json, named: str) -> None:
    """The model can mend its own call."""
    with pytest.raises(RecallError, match=named):
        read_asked(given)


def test_what_is_given(tmp_path: Path) -> None:
    """The whole, a page that names the next one, an image, and bytes that no answer can hold."""
    stash = Stash(tmp_path, "s")
    text, image, large, other = (
        stash.put(content).sha256[:12]
        for content in ("é\n".encode() * 1000, PNG, PNG + bytes(MAX_IMAGE_BYTES), b"\xff\xfe")
    )
    whole = give(stash, Asked(text))
    assert (whole.text, whole.about, whole.given_bytes, whole.of_bytes) == ("é\n" * 1000, "", 3000, 3000)
    page = give(stash, Asked(text, limit=100))
    assert (page.text, page.given_bytes) == ("é\n" * 50, 150)
    assert page.about == "[characters 0-100 of 2000, 1000 lines; for the next page add offset=100]"
    assert (give(stash, Asked(image)).image, give(stash, Asked(image)).image_type) == (PNG, "png")
    for unfit in (large, other):
        with pytest.raises(RecallError, match=f"lcc recall {unfit} -o FILE"):
            give(stash, Asked(unfit))
    with pytest.raises(RecallError, match="has no object"):
        give(stash, Asked(ID))


def test_recalls_are_noted_by_session(tmp_path: Path) -> None:
    """Each in its order; a damaged line is left out."""
    path = tmp_path / "recalls.jsonl"
    for session, given in (("one", 5), ("two", 7), ("one", 9)):
        note_recall(Recall(session, ID, given, 9, "shell"), path)
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"v":1,"session":"one"}\n{"v":1,"torn')
    assert [recall.given_bytes for recall in recalls_in(path, "one")] == [5, 9]
    assert [recall.session for recall in recalls_in(path)] == ["one", "two", "one"]
    assert json.loads(path.read_text().splitlines()[0])["time"].endswith("Z")
    assert path.stat().st_mode & 0o777 == 0o600
