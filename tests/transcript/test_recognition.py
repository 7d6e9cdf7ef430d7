"""Which format an input is, and inputs that are none."""

from __future__ import annotations

import json

import pytest
from making import jsonl, session_files, user

from lcc.transcript import FORMATS, TranscriptError, read_transcript

PAYLOAD = b'{"messages":[{"role":"user","text":"x"}]}'
SESSION = jsonl(user("u1", None, "x"))
ROLLOUT = jsonl({"type": "response_item", "payload": {"type": "message", "role": "user", "content": "x"}})
REQUEST = b'[{"role":"user","content":"x"}]'


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        (PAYLOAD, "payload"),
        (PAYLOAD + b"\n\n", "payload"),
        (b"\n  " + PAYLOAD, "payload"),
        (json.dumps(json.loads(PAYLOAD), indent=2).encode(), "payload"),
        (b'{"type":"export","messages":[{"role":"user","text":"x"}]}', "payload"),
        (REQUEST, "messages-api"),
        (SESSION, "claude-code"),
        (b"\n" + SESSION.strip(), "claude-code"),
        (jsonl({"type": "summary", "summary": "s", "leafUuid": "l"}) + SESSION, "claude-code"),
        (SESSION.strip() + SESSION.replace(b'"u1"', b'"u2"'), "claude-code"),
        (jsonl({"type": "file-history-snapshot", "messageId": "m"}), "claude-code"),
        (ROLLOUT, "codex"),
        (jsonl({"type": "session_meta", "payload": {"id": "i"}}), "codex"),
    ],
)
def test_the_format_is_recognised_by_content(raw: bytes, form: str) -> None:
    transcript = read_transcript(raw)

    assert transcript.format.name == form
    assert read_transcript(raw, format=FORMATS[form]).messages == transcript.messages


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"5",
        b'"text"',
        b"null",
        b'{"message":[]}',
        b'{"a":1}\n{"b":2}\n',
        b'{"type":"log"}\n{"type":"log"}\n',
        b'{"type":5}\n',
        b'{"type":"log"}',
    ],
)
def test_an_unknown_format_is_never_an_empty_result(raw: bytes) -> None:
    with pytest.raises(TranscriptError, match=r"^notes\.txt: this is none of the known transcript formats"):
        read_transcript(raw, name="notes.txt")


@pytest.mark.parametrize(
    ("raw", "problem", "place"),
    [
        (b"", "empty", "notes.txt"),
        (b" \r\n\t", "empty", "notes.txt"),
        (b"\xef\xbb\xbf" + PAYLOAD, "byte order mark", "line 1, column 1"),
        (PAYLOAD.decode().encode("utf-16"), "UTF-16", "line 1, column 1"),
        (PAYLOAD.decode().encode("utf-16-le"), "UTF-16", "line 1, column 1"),
        (PAYLOAD.decode().encode("utf-16-be"), "UTF-16", "line 1, column 1"),
        (PAYLOAD.decode().encode("utf-32"), "UTF-32", "line 1, column 1"),
        (b"\x00\x01\x02", "binary", "line 1, column 1"),
        (b"\x1f\x8b\x08\x00", "binary", "line 1, column 1"),
        (b"Dear diary,", "not valid JSON", "line 1, column 1"),
        (PAYLOAD[:-2], "cut off", "line 1, column 40"),
        (PAYLOAD + b"x", "not valid JSON", "line 1, column 42"),
        (PAYLOAD + b"\n" + PAYLOAD, "not valid JSON", "line 2, column 1"),
        (b'{"messages":[{"role":"user","text":"\xff"}]}', "0xff", "line 1, column 37"),
        (b'{"messages":[{"role":"user",\n"text":"\\udc00"}]}', "surrogate", "line 2, column 9"),
        (b'{"messages":[{"role":"user","text":"x","n":NaN}]}', "not valid JSON", "line 1, column 44"),
        (b'{"messages":[{"role":"user","text":"x","n":-Infinity}]}', "not valid JSON", "line 1, column"),
        (b'{"messages":[{"role":"user","text":"x","n":1e999}]}', "not valid JSON", "line 1, column 44"),
        (b'{"messages":[{"role":"user","text":"a\nb"}]}', "not valid JSON", "line 1, column 38"),
        (b"[" * 5000 + b"]" * 5000, "depth", "line 1, column 1026"),
        (b'{"messages":{}}', "must be an array", "messages"),
    ],
)
def test_malformed_input_is_refused_with_its_place(raw: bytes, problem: str, place: str) -> None:
    with pytest.raises(TranscriptError) as refused:
        read_transcript(raw, name="notes.txt")

    assert problem in refused.value.problem
    assert refused.value.place.startswith(place)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("raw", [b"5", b"[5]", b'{"messages":5}', b"\x80", b'{"type":"user","message":5}'])
def test_a_named_format_is_held_to(raw: bytes, form: str) -> None:
    with pytest.raises(TranscriptError):
        read_transcript(raw, format=FORMATS[form])


@pytest.mark.parametrize("path", session_files() or [None], ids=lambda p: p.name if p else "none")
def test_the_shared_sessions_are_recognised(path: object) -> None:
    if path is None:
        pytest.skip("the shared sessions are not here")
    raw = path.read_bytes()  # type: ignore[attr-defined]

    assert read_transcript(raw).format.name == ("codex" if path.name.startswith("codex") else "claude-code")  # type: ignore[attr-defined]
