"""What an address of a server means: this machine or another one, and through which proxy it is reached."""

from __future__ import annotations

import ipaddress
import socket
import unicodedata
from collections.abc import Mapping
from urllib.parse import urlsplit

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""Each may be written in small letters too, which count first."""
USUAL_NAMES = ("localhost.localdomain", "ip6-localhost", "ip6-loopback")
"""What systems call this machine by default. Nothing forbids another meaning, so no key is sent there in clear."""


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine, by name or by address in any spelling, without asking a resolver."""
    name = _host(url)
    address = _address(name)
    return name == "localhost" or name.endswith(".localhost") or (address is not None and address.is_loopback)


def is_listening(url: str, seconds: float) -> bool:
    """Whether somebody takes a connection at a URL's host and port within ``seconds``. Nothing is sent."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((_host(url), port), seconds).close()
    except (OSError, ValueError):
        return False
    return True


def _host(url: str) -> str:
    """The host as it is compared; empty where there is none."""
    try:
        return unicodedata.normalize("NFKC", urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return ""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that ``host`` is when it is none by name; also 127.1, 0x7f000001 and ::ffff:127.0.0.1."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except (OSError, UnicodeError):
            return None
    return getattr(address, "ipv4_mapped", None) or address


def proxy_for(url: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable that names the proxy for ``url``, and its value; None where the server is reached directly."""
    parts = urlsplit(url)
    host = _host(url)
    address = _address(host)
    if is_loopback(url) or host in USUAL_NAMES or (address is not None and address.is_unspecified):
        return None
    excepted = _value(environ, "NO_PROXY")
    if excepted is not None and any(_is_meant(entry, host, parts.port) for entry in excepted[1].split(",")):
        return None
    found = _value(environ, f"{parts.scheme.upper()}_PROXY") or _value(environ, "ALL_PROXY")
    if found is None:
        return None
    name, value = found
    return name, value if "://" in value else f"http://{value}"


def _is_meant(entry: str, host: str, port: int | None) -> bool:
    """Whether an entry of NO_PROXY means the host: ``*``, a name and all below it, an address or a network."""
    entry = entry.strip().lower()
    if entry == "*":
        return True
    if not entry:
        return False
    network = _network(entry)
    if network is not None:
        address = _address(host)
        return address is not None and address in network
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal():
        if int(number) != port:
            return False
        entry = name
    entry = entry.removeprefix("*").lstrip(".").strip("[]")
    return entry == host or host.endswith(f".{entry}")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None


def _value(environ: Mapping[str, str], name: str) -> tuple[str, str] | None:
    for spelling in (name.lower(), name):
        value = environ.get(spelling, "").strip()
        if value:
            return spelling, value
    return None
