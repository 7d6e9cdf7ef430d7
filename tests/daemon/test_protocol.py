"""Headers and frames: whatever comes, it is a request or a refusal."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_daemon.protocol import (
    BUILD,
    COMMANDS,
    HEADER_LIMIT,
    MANAGING,
    PROTOCOL,
    Answer,
    ProtocolError,
    Request,
    failure,
    frame,
    parse_header,
    read_frame,
)
from lcc_hook.client import header_for, peer_uid


def fields(**values: str) -> bytes:
    given_ = {"protocol": str(PROTOCOL), "build": BUILD, "command": "compact", **values}
    return b"\0".join(f"{key}={value}".encode() for key, value in given_.items())


@given(st.binary(max_size=2000))
def test_any_bytes_are_a_request_or_a_refusal(data: bytes) -> None:
    """Nothing else is ever raised."""
    refused = None
    try:
        assert parse_header(data).command in COMMANDS
    except ProtocolError as error:
        refused = error
    assert refused is None or (refused.reason and "\n" not in refused.say)


@given(st.dictionaries(st.binary(min_size=1, max_size=20), st.binary(max_size=50), max_size=30))
def test_what_the_client_writes_the_daemon_reads(env: dict[bytes, bytes]) -> None:
    """Any variable that an environment can hold, bytes that are no UTF-8 too, arrives as it was."""
    clean = {
        b"LCC_" + key.replace(b"\0", b"").replace(b"=", b""): value.replace(b"\0", b"") for key, value in env.items()
    }
    request = parse_header(header_for("compact", {**clean, b"AWS_SECRET": b"no"}))
    back = {
        key.encode("utf-8", "surrogateescape"): v.encode("utf-8", "surrogateescape") for key, v in request.env.items()
    }
    assert back == clean


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_another_build_may_only_manage(command: str) -> None:
    """A client of another build can ask how it is and stop it, and nothing else."""
    data = fields(command=command, build="0.0.1")
    if command in MANAGING:
        assert parse_header(data).command == command
    else:
        with pytest.raises(ProtocolError, match="build"):
            parse_header(data)


def test_a_request_never_shows_what_it_carries() -> None:
    """Should one ever be logged or shown in a traceback: no key and no session."""
    request = Request("compact", {"TYPESAFE_API_KEY": "secret"}, b"the session")
    assert "secret" not in repr(request)
    assert "the session" not in repr(request)


@given(st.text(), st.text())
def test_an_error_is_a_word_and_one_line(reason: str, say: str) -> None:
    """However many lines a reason has, the client gets two."""
    word = "".join(reason.split()) or "x"
    text = failure(word, say).text
    first, _, rest = text.partition("\n")
    assert first == word
    assert len(rest.splitlines()) <= 1


@given(st.text(max_size=100_000), st.binary(max_size=100))
def test_an_answer_stays_under_the_clients_limit(text: str, body: bytes) -> None:
    """A header that would be refused is cut; the body's length stands before the body."""
    head, out = Answer(body, text).frames()
    size = int.from_bytes(head[:4], "big")
    assert size <= HEADER_LIMIT
    assert head[4 + size :] == len(body).to_bytes(4, "big")
    assert out == body


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 40))
def test_frames_are_read_whole_however_they_come(parts: list[bytes], step: int) -> None:
    """Cut anywhere, sent in any pieces."""

    async def go() -> list[bytes]:
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        loop = asyncio.get_running_loop()
        data = b"".join(map(frame, parts))

        async def feed() -> None:
            for start in range(0, len(data), step):
                await loop.sock_sendall(far, data[start : start + step])

        feeding = asyncio.create_task(feed())
        found = [bytes(await read_frame(near, 300, "a frame")) for _ in parts]
        await feeding
        near.close()
        far.close()
        return found

    assert asyncio.run(go()) == parts


@pytest.mark.parametrize("size", [101, 2**31, 2**32 - 1])
def test_a_length_over_the_limit_is_refused_before_anything_is_read(size: int) -> None:
    """The four bytes alone decide."""

    async def go() -> None:
        near, far = socket.socketpair()
        near.setblocking(False)
        with near, far:
            far.sendall(size.to_bytes(4, "big"))
            await read_frame(near, 100, "a header")

    with pytest.raises(ProtocolError, match=f"a header of {size} bytes is over the limit of 100 bytes"):
        asyncio.run(go())


def test_the_peers_user_is_known_and_a_closed_line_has_none() -> None:
    """Who cannot be identified is refused: None is nobody's uid."""
    import os

    near, far = socket.socketpair()
    assert peer_uid(near) == os.geteuid()
    near.close()
    far.close()
    assert peer_uid(near) is None
