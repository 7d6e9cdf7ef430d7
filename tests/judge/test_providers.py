"""Which server is asked, and with which key and model (the seed's section 5, the System One API page)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import httpx
import pytest
from judge.judge_world import KEY, jev_at, judge, laya_at, session
from judge.system_one_server import Asked, Step, always, answers, closed_port, http, system_one

from lcc.contract.options import RequestError
from lcc.contract.reasons import JEV_UNAVAILABLE_FAIL_SAFE, LAYA_UNAVAILABLE_FAIL_SAFE
from lcc.contract.request import TranscriptCompactionRequest
from lcc.judge.addresses import is_loopback
from lcc.judge.settings import Server, Unavailable, default_key_file, jev_server, laya_server
from lcc.transcript import parse_payload

SESSION = parse_payload(session(12))


def test_mechanical_is_refused_with_its_reason() -> None:
    """A lexical scorer cannot answer a semantic question honestly."""
    with pytest.raises(RequestError, match="semantic question"):
        TranscriptCompactionRequest(payload=None, provider="mechanical")


def test_jev_gets_the_key_in_one_header() -> None:
    """The key is a bearer token and is nowhere else in the request."""
    with system_one(always()) as server:
        judge(SESSION, jev_at(server.url))

    for asked in server.asked:
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert asked.headers["content-type"] == "application/json"
        assert asked.path == "/v1/systemone"
        assert KEY.encode() not in asked.body


def test_laya_never_gets_jevs_key() -> None:
    """A local server is asked without a key, or with its own."""
    with system_one(always()) as server:
        judge(SESSION, laya_at(server.url) | {"TYPESAFE_API_KEY": KEY}, provider="laya")
        judge(SESSION, laya_at(server.url) | {"TYPESAFE_API_KEY": KEY, "LAYA_API_KEY": "own"}, provider="laya")

    sent = [asked.headers.get("authorization") for asked in server.asked]
    assert set(sent) == {None, "Bearer own"}


def test_laya_judges() -> None:
    """A judged pass by Laya says laya everywhere."""
    with system_one(always(0.1)) as server:
        outcome = judge(SESSION, laya_at(server.url), provider="laya")

    assert (outcome.provider_used, outcome.semantic_guarantee, outcome.degraded) == ("laya", "judged", False)
    assert {d.source for d in outcome.decisions.values()} == {"laya"}
    assert server.asked[0].json["model"] == "laya-latest"


@pytest.mark.parametrize("calls", [12, 100])
def test_laya_that_is_not_there(calls: int) -> None:
    """Like a missing key: provider_used laya, no guarantee, every call kept as laya_unavailable_fail_safe."""
    outcome = judge(parse_payload(session(calls)), laya_at(f"http://127.0.0.1:{closed_port()}"), provider="laya")

    assert (outcome.provider_used, outcome.degraded, outcome.semantic_guarantee) == ("laya", True, "none")
    assert outcome.degradation_reason == LAYA_UNAVAILABLE_FAIL_SAFE
    assert {(d.action, d.reason.code, d.source) for d in outcome.decisions.values()} == {
        ("keep", "laya_unavailable_fail_safe", "fail_safe")
    }


def test_laya_with_a_missing_answer_says_laya() -> None:
    """The reasons of a Laya pass are in the style of Jev's."""
    with system_one(lambda asked: http(200, answers(asked, lambda n: 7 if n == "keep_call_t1" else 0.9))) as server:
        outcome = judge(SESSION, laya_at(server.url), provider="laya")

    assert outcome.warnings == ("laya_answer_out_of_range:keep_call_t1",)


def test_laya_half_failed() -> None:
    """A part that failed is laya+partial_fail_safe."""

    def respond(asked: Asked) -> list[Step]:
        return http(200, answers(asked)) if "keep_call_t1" in asked.questions else http(400, b"")

    with system_one(respond) as server:
        outcome = judge(SESSION, laya_at(server.url), provider="laya")

    assert (outcome.provider_used, outcome.semantic_guarantee) == ("laya+partial_fail_safe", "partial")


class TestAuto:
    """``auto`` prefers Jev, then a reachable Laya, else the fail-safe."""

    def test_prefers_jev(self) -> None:
        """With a key, Jev is asked and Laya is not."""
        with system_one(always()) as jev, system_one(always()) as laya:
            outcome = judge(SESSION, laya_at(laya.url) | jev_at(jev.url), provider="auto")

        assert outcome.provider_used == "jev"
        assert jev.asked
        assert not laya.asked

    def test_laya_without_a_key(self) -> None:
        """Without a key the local server judges, after a question that holds nothing of the session."""
        with system_one(always()) as laya:
            outcome = judge(SESSION, laya_at(laya.url), provider="auto")

        assert outcome.provider_used == "laya"
        assert outcome.semantic_guarantee == "judged"
        assert (laya.asked[0].method, laya.asked[0].body) == ("GET", b"")

    def test_neither(self) -> None:
        """With neither, everything is kept and both reasons are told."""
        port = closed_port()
        outcome = judge(SESSION, laya_at(f"http://127.0.0.1:{port}"), provider="auto")

        assert (outcome.provider_used, outcome.degradation_reason) == ("jev", JEV_UNAVAILABLE_FAIL_SAFE)
        assert "there is no key" in outcome.warnings[0]
        assert f"no Laya server answers at 127.0.0.1:{port}" in outcome.warnings[0]

    def test_another_program_on_the_port_gets_no_session(self) -> None:
        """A web server that knows no such route is not sent a session."""
        import functools
        import http.server
        import threading

        posted: list[str] = []

        class Web(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_error(404)

            def do_POST(self) -> None:
                posted.append(self.path)
                self.send_error(404)

            log_message = functools.partialmethod(lambda self, *words: None)  # type: ignore[assignment]

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web) as web:
            threading.Thread(target=web.serve_forever, daemon=True).start()
            outcome = judge(SESSION, laya_at(f"http://127.0.0.1:{web.server_port}"), provider="auto")
            web.shutdown()

        assert outcome.degradation_reason == JEV_UNAVAILABLE_FAIL_SAFE
        assert posted == []

    def test_laya_elsewhere_is_not_asked(self) -> None:
        """A Laya server on another host has to be asked for by name."""
        outcome = judge(SESSION, laya_at("http://192.0.2.7:8000"), provider="auto")

        assert outcome.degradation_reason == JEV_UNAVAILABLE_FAIL_SAFE
        assert "is not on this machine" in outcome.warnings[0]

    def test_jev_that_fails_is_not_replaced_by_laya(self) -> None:
        """One pass has one judge: a failing Jev is a fail-safe, not a mix of verdicts."""
        with system_one(lambda asked: http(422, b"")) as jev, system_one(always()) as laya:
            outcome = judge(SESSION, laya_at(laya.url) | jev_at(jev.url), provider="auto")

        assert outcome.semantic_guarantee == "none"
        assert not laya.asked


class TestAddresses:
    """Environment names as others use them."""

    BASE: ClassVar = {"TYPESAFE_API_KEY": KEY, "HOME": "/nonexistent"}

    def server(self, **environ: str) -> Server:
        found = jev_server(self.BASE | environ, "jev-latest")
        assert isinstance(found, Server)
        return found

    def test_default(self) -> None:
        """Without a name Jev is where its maker serves it."""
        assert self.server().endpoint == "https://api.typesafe.ai/v1/systemone"

    def test_base_url(self) -> None:
        """TYPESAFE_BASE_URL is completed by the route, with or without a slash at its end."""
        assert self.server(TYPESAFE_BASE_URL="https://j.example/x/").endpoint == "https://j.example/x/v1/systemone"

    def test_endpoint(self) -> None:
        """TYPESAFE_ENDPOINT is the whole address and wins over the base."""
        found = self.server(TYPESAFE_ENDPOINT="https://o.example/api/decide", TYPESAFE_BASE_URL="https://j.example")
        assert found.endpoint == "https://o.example/api/decide"

    @pytest.mark.parametrize("name", ["TYPESAFE_MODEL", "TYPESAFE_DEFAULT_MODEL"])
    def test_model(self, name: str) -> None:
        """Another default model, which a model asked for by name overrules."""
        assert self.server(**{name: "jev-1.12"}).model == "jev-1.12"
        named = jev_server(self.BASE | {name: "jev-1.12"}, "jev-preview")
        assert isinstance(named, Server)
        assert named.model == "jev-preview"

    @pytest.mark.parametrize("base", ["http://gateway.example", "http://10.0.0.1:80", "http://[2001:db8::1]"])
    def test_key_is_not_sent_in_the_clear(self, base: str) -> None:
        """Plain http to another machine is refused: it would show the key to the network."""
        found = jev_server(self.BASE | {"TYPESAFE_BASE_URL": base}, "jev-latest")
        assert isinstance(found, Unavailable)
        assert "https" in found.why[0]

    @pytest.mark.parametrize(
        "base", ["nonsense", "ftp://x.example", "https://", "http://[::1", "https://h:port", "https://u:secret@h"]
    )
    def test_unusable_address(self, base: str) -> None:
        """An address that is none is named by its variable, and not repeated."""
        for found in (
            jev_server(self.BASE | {"TYPESAFE_BASE_URL": base}, "jev-latest"),
            laya_server({"LAYA_BASE_URL": base}, None),
        ):
            assert isinstance(found, Unavailable)
            assert "BASE_URL is not usable" in found.why[0]
            assert "secret" not in found.why[0]

    def test_laya_default_is_port_8000_of_this_machine(self) -> None:
        """Without LAYA_BASE_URL the server of ``laya[serve]`` on this machine is meant."""
        found = laya_server({}, None)
        assert isinstance(found, Server)
        assert found.endpoint == "http://127.0.0.1:8000/v1/systemone"

    @pytest.mark.parametrize(
        ("url", "here"),
        [
            ("http://127.0.0.1:8000", True),
            ("http://127.9.9.9", True),
            ("http://localhost:1", True),
            ("http://[::1]:8000", True),
            ("http://localhost.example", False),
            ("http://127.0.0.1.example", False),
            ("http://0.0.0.0:8000", False),
            ("http://10.0.0.1", False),
        ],
    )
    def test_loopback(self, url: str, here: bool) -> None:
        """This machine is recognised by name and address, and not by what looks like them."""
        assert is_loopback(url) is here

    def test_no_proxy_for_this_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A proxy of the environment does not come between lcc and a server on this machine."""
        with system_one(always()) as proxy, system_one(always()) as server:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("ALL_PROXY", proxy.url)
            outcome = judge(SESSION, laya_at(server.url), provider="laya")

        assert outcome.semantic_guarantee == "judged"
        assert proxy.asked == []


class TestKeyFile:
    """A key in a private file, for a daemon that does not have the shell's environment."""

    def write(self, folder: Path, content: str = KEY + "\n", mode: int = 0o600) -> Path:
        file = folder / "typesafe.key"
        file.write_text(content)
        file.chmod(mode)
        return file

    def key(self, found: Server | Unavailable) -> str | None:
        return found.key if isinstance(found, Server) else None

    def test_standard_place(self, tmp_path: Path) -> None:
        """``lcc/typesafe.key`` in the config folder is read without being named."""
        (tmp_path / "lcc").mkdir()
        self.write(tmp_path / "lcc")

        environ = {"XDG_CONFIG_HOME": str(tmp_path)}

        assert default_key_file(environ) == tmp_path / "lcc" / "typesafe.key"
        assert self.key(jev_server(environ, "jev-latest")) == KEY

    def test_named_by_option_or_variable(self, tmp_path: Path) -> None:
        """The request's file comes before the variable's."""
        file = self.write(tmp_path)
        environ = {"HOME": "/nonexistent"}

        assert self.key(jev_server(environ, "jev-latest", str(file))) == KEY
        assert self.key(jev_server(environ | {"TYPESAFE_API_KEY_FILE": str(file)}, "jev-latest")) == KEY

    def test_environment_comes_first(self, tmp_path: Path) -> None:
        """A key in the environment is the one that is used."""
        file = self.write(tmp_path, "other")
        assert self.key(jev_server({"TYPESAFE_API_KEY": KEY}, "jev-latest", str(file))) == KEY

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
    def test_file_that_others_can_read_is_refused(self, tmp_path: Path, mode: int) -> None:
        """The message says what to run."""
        file = self.write(tmp_path, mode=mode)
        found = jev_server({"HOME": "/nonexistent"}, "jev-latest", str(file))
        assert isinstance(found, Unavailable)
        assert f"chmod 600 {file}" in found.why[0]

    @pytest.mark.parametrize("content", ["", "\n", "two\nlines", "with space", "schlüssel", "x" * 5000])
    def test_content_that_is_no_key_is_refused(self, tmp_path: Path, content: str) -> None:
        """What a header cannot carry is not sent, and not shown."""
        file = self.write(tmp_path, content)
        found = jev_server({"HOME": "/nonexistent"}, "jev-latest", str(file))
        assert isinstance(found, Unavailable)
        assert "one key on one line" in found.why[0]

    def test_link_folder_and_pipe_are_refused(self, tmp_path: Path) -> None:
        """Only a regular file is read, and nothing waits for a pipe's writer."""
        file = self.write(tmp_path)
        link, pipe = tmp_path / "link", tmp_path / "pipe"
        link.symlink_to(file)
        os.mkfifo(pipe, 0o600)

        for path in (link, pipe, tmp_path, tmp_path / "missing"):
            assert isinstance(jev_server({"HOME": "/nonexistent"}, "jev-latest", str(path)), Unavailable)

    def test_the_pass_uses_the_requests_file(self, tmp_path: Path) -> None:
        """``judge_key_file`` of the request reaches the server as a bearer token."""
        file = self.write(tmp_path)
        with system_one(always()) as server:
            environ = {"TYPESAFE_BASE_URL": server.url, "HOME": "/nonexistent"}
            outcome = judge(SESSION, environ, judge_key_file=str(file))

        assert outcome.semantic_guarantee == "judged"
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["a b", "a\r\nX-Evil: 1", "ключ", "x" * 5000])
def test_key_that_no_header_can_carry(key: str) -> None:
    """A broken key is a missing key; it is not repeated."""
    with system_one(always()) as server:
        outcome = judge(SESSION, jev_at(server.url) | {"TYPESAFE_API_KEY": key})

    assert server.asked == []
    assert outcome.degradation_reason == JEV_UNAVAILABLE_FAIL_SAFE
    assert key not in repr(outcome)


def test_representations_hide_the_key() -> None:
    """A server in a log or a traceback shows no key."""
    assert KEY not in repr(Server("jev", "https://j.example/v1/systemone", "jev-latest", KEY))


def test_redirects_are_not_followed() -> None:
    """A redirect could carry the key and the session to another host; it is an error."""
    with system_one(always()) as target, system_one(lambda a: http(307, b"", Location=target.url)) as server:
        outcome = judge(SESSION, jev_at(server.url), client=httpx.Client(follow_redirects=False))

    assert target.asked == []
    assert "HTTP 307" in outcome.warnings[0]
