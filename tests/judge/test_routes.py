"""How a judge's server is reached: never through a proxy to this machine, and never by another session's settings."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import certifi
import httpx
import pytest
from judge.system_one_server import always, closed_port, http, system_one

from lcc.judge.addresses import is_loopback, proxy_for
from lcc.judge.attempt import Failure, Stop
from lcc.judge.client import SystemOneClient, build_client
from lcc.judge.settings import Server, jev_server, laya_server

PROXIES = {"HTTP_PROXY": "http://proxy.example:3128", "https_proxy": "secure.example:3129"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "017700000001",
        "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost",
        "LocalHost", "localhost.", "judge.localhost", "\uff11\uff12\uff17.0.0.1",
    ],
)  # fmt: skip
def test_this_machine_in_any_spelling(host: str) -> None:
    """By name or address, however it is written: no proxy comes between, whatever the environment says."""
    url = f"http://{host}:8000/v1/systemone"
    assert is_loopback(url)
    assert proxy_for(url, {**PROXIES, "ALL_PROXY": "http://all.example"}) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "ip6-localhost", "localhost.localdomain"])
def test_what_mostly_is_this_machine_uses_no_proxy_and_gets_no_key_in_clear(host: str) -> None:
    """A proxy would ask itself there; but only what must be this machine counts as it."""
    assert proxy_for(f"http://{host}:8000", PROXIES) is None
    assert not is_loopback(f"http://{host}:8000")


@pytest.mark.parametrize("host", ["judge.example", "10.0.0.1", "127.0.0.1.example", "notlocalhost", "[fe80::1]"])
def test_other_machines_use_the_proxy(host: str) -> None:
    """Small letters count first; a proxy without a scheme is an http one."""
    assert proxy_for(f"http://{host}", PROXIES) == ("HTTP_PROXY", "http://proxy.example:3128")
    assert proxy_for(f"https://{host}", PROXIES) == ("https_proxy", "http://secure.example:3129")
    assert proxy_for(f"https://{host}", {"ALL_PROXY": "http://a.example"}) == ("ALL_PROXY", "http://a.example")


@pytest.mark.parametrize(
    ("entries", "direct"),
    [
        ("*", True),
        ("judge.example", True),
        (".example", True),
        ("*.example", True),
        ("EXAMPLE", True),
        ("judge.example:8443", True),
        ("judge.example:1", False),
        ("other.example, judge.example ,x", True),
        ("udge.example", False),
        (", ,", False),
        ("10.0.0.0/8", False),
    ],
)
def test_the_exceptions_of_no_proxy(entries: str, direct: bool) -> None:
    """Names and all below them, a port where one is named."""
    found = proxy_for("https://judge.example:8443/v1", {**PROXIES, "NO_PROXY": entries})
    assert (found is None) is direct


def test_networks_in_no_proxy() -> None:
    """An address is excepted by its network too."""
    assert proxy_for("http://10.1.2.3", {**PROXIES, "no_proxy": "10.0.0.0/8"}) is None
    assert proxy_for("http://11.1.2.3", {**PROXIES, "no_proxy": "10.0.0.0/8"}) is not None


def asked(url: str, environ: dict[str, str]) -> object:
    """One question through a client of this environment."""
    with build_client(environ) as client:
        server = Server("jev", url, "m", "the-key")
        return SystemOneClient(server, client, Stop(0)).is_reachable() or client.post(url, content=b"{}").status_code


def test_only_the_environment_that_is_given_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of this process's own environment is not used, one of the session's is."""
    with system_one(always()) as own, system_one(lambda asked: http(418, {})) as sessions:
        for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
            monkeypatch.setenv(name, own.url)
        assert asked("http://judge.example/v1/systemone", {"HTTP_PROXY": sessions.url}) == 418
        assert own.asked == []
        assert [each.path for each in sessions.asked] == ["http://judge.example/v1/systemone"]


def test_a_spelling_that_resolves_to_this_machine_is_really_reached_directly() -> None:
    """Not only the rule: the connection itself."""
    with system_one(lambda asked: http(418, {})) as server, system_one(always()) as proxy:
        port = server.url.rpartition(":")[2]
        for host in ("127.1", "2130706433", "0x7f000001", "localhost"):
            assert asked(f"http://{host}:{port}/v1/systemone", {"ALL_PROXY": proxy.url}) == 418
        assert proxy.asked == []


def test_no_cookie_goes_from_one_pass_to_the_next() -> None:
    """What a server set for one session is not sent with another's."""
    with system_one(lambda asked: http(200, {}, Set_Cookie="who=first; Path=/")) as server, build_client({}) as client:
        for _ in range(2):
            client.post(f"{server.url}/v1/systemone", content=b"{}")
        assert len(server.asked) == 2
        assert all("cookie" not in each.headers for each in server.asked)


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"ALL_PROXY": "socks5://user:word@127.0.0.1:1"}, "ALL_PROXY"),
        ({"HTTPS_PROXY": "ftp://user:word@h"}, "HTTPS_PROXY"),
        ({"https_proxy": "http://user:word@[::"}, "https_proxy"),
        ({"SSL_CERT_FILE": "/nowhere/word.pem"}, "SSL_CERT_FILE"),
        ({"SSL_CERT_FILE": "/dev/null"}, "SSL_CERT_FILE"),
        ({"SSL_CERT_DIR": "/nowhere/word"}, "SSL_CERT_DIR"),
    ],
)
def test_settings_that_cannot_be_used_are_a_failure_that_names_them(environ: dict[str, str], named: str) -> None:
    """Nothing is raised; the variable is named, and a password in it is not."""
    with build_client(environ) as client:
        server = Server("jev", "https://judge.example/v1/systemone", "m", "the-key")
        found = SystemOneClient(server, client, Stop(float("inf"))).ask(b"{}")
    assert isinstance(found, Failure)
    assert named in found.text
    assert "user:word" not in found.text
    assert not found.connected


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "http://user:word@[::1]:{closed}"), ("https_proxy", ":"), ("ALL_PROXY", "https://127.0.0.1:{closed}"),
     ("HTTPS_PROXY", "http://user:word@\u00e9.{long}:1")],
)  # fmt: skip
def test_a_proxy_that_is_not_there_is_the_one_that_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The culprit is the proxy, by its variable, and not the judge's server."""
    monkeypatch.setattr("lcc.judge.client.FIRST_BACKOFF", 0.001)
    with build_client({name: value.format(closed=closed_port(), long="x" * 70)}) as client:
        server = Server("jev", "https://judge.example/v1/systemone", "m", "the-key")
        found = SystemOneClient(server, client, Stop(float("inf"))).ask(b"{}")
    assert isinstance(found, Failure)
    assert f"through the proxy that {name} names" in found.text or f"{name} names no proxy" in found.text
    assert "user:word" not in found.text
    assert not found.connected


def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that opens no tunnel: the server was never asked."""
    monkeypatch.setattr("lcc.judge.client.FIRST_BACKOFF", 0.001)
    with system_one(lambda asked: http(403, {})) as proxy, build_client({"HTTPS_PROXY": proxy.url}) as client:
        server = Server("jev", "https://judge.example/v1/systemone", "m", "the-key")
        found = SystemOneClient(server, client, Stop(float("inf"))).ask(b"{}")
    assert isinstance(found, Failure)
    assert "HTTPS_PROXY" in found.text
    assert not found.connected


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "no certificates", "bytes", "endless"])
def test_certificates_that_are_none(kind: str, tmp_path: Path) -> None:
    """No pipe is waited for and no device read on and on; the variable is named."""
    path = tmp_path / "certificates"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case "folder":
            path.mkdir()
        case "endless":
            path.touch()
            os.truncate(path, 1 << 40)
        case _:
            path.write_bytes(b"no certificates" if kind == "no certificates" else bytes(range(256)))
    with build_client({"SSL_CERT_FILE": str(path)}) as client:
        server = Server("jev", "https://judge.example/v1/systemone", "m", "the-key")
        found = SystemOneClient(server, client, Stop(float("inf"))).ask(b"{}")
    assert isinstance(found, Failure)
    assert "SSL_CERT_FILE" in found.text


def test_certificates_with_comments_in_any_script_and_lists_of_folders_are_loaded(tmp_path: Path) -> None:
    """What OpenSSL takes is taken: words between the certificates, and several folders of which one is there."""
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes("# Körperschaft\n".encode() + Path(certifi.where()).read_bytes())
    folders = os.pathsep.join((str(tmp_path / "gone"), str(tmp_path)))
    for environ in ({"SSL_CERT_FILE": str(bundle)}, {"SSL_CERT_DIR": folders}):
        with build_client(environ) as client, pytest.raises(httpx.ConnectError):
            client.get(f"https://127.0.0.1:{closed_port()}/", timeout=5)


def test_no_keys_of_connections_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file for them that this process's environment names is not opened, and one that cannot be is no failure."""
    for keys in (tmp_path / "keys", tmp_path / "gone" / "keys"):
        monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
        with build_client({}) as client, pytest.raises(httpx.ConnectError):
            client.get(f"https://127.0.0.1:{closed_port()}/", timeout=5)
        assert not keys.exists()


@pytest.mark.parametrize(
    ("word", "allowed"),
    [("1", False), ("true", False), ("TRUE", False), (" yes ", False), ("on", False), ("2", False), ("disable", False),
     ("", True), ("0", True), ("false", True), ("No", True), ("off", True)],
)  # fmt: skip
def test_the_kill_switch_is_on_in_doubt(word: str, allowed: bool) -> None:
    """Whoever writes `true` means it: no judge is to be had, neither Jev nor Laya."""
    environ = {"TYPESAFE_API_KEY": "sk-test", "HOME": "/nonexistent", "LCC_DISABLE_NETWORK": word}
    assert isinstance(jev_server(environ, "jev-latest"), Server) is allowed
    assert isinstance(laya_server(environ, None), Server) is allowed


def test_an_empty_folder_of_certificates_trusts_nobody(tmp_path: Path) -> None:
    """No fall-back to other certificates than those that were named."""
    with build_client({"SSL_CERT_DIR": str(tmp_path)}) as client, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.listen()
        with pytest.raises(httpx.TransportError):
            client.get(f"https://127.0.0.1:{listener.getsockname()[1]}/", timeout=0.5)
