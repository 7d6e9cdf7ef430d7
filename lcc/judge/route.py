"""How a judge's server is reached: directly, or through the proxy that an environment names.

The environment is the asking session's, never this process's: the daemon serves sessions with different ones.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import certifi
import httpx

from lcc.judge.addresses import proxy_for
from lcc.private_files import read_bounded

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
MAX_CERTIFICATE_BYTES = 16 * 1024 * 1024


class RouteError(httpx.TransportError):
    """The environment names a way to the server that cannot be gone. The text names the variable, not its value."""


class ProxyUnreachableError(httpx.TransportError):
    """The proxy that the environment names is not there, or lets nothing through. The text names its variable."""


class Route(httpx.BaseTransport):
    """A transport for every server: direct to this machine, through the environment's proxy to others.

    TLS settings are loaded when a server first needs them. Safe to use from several threads.
    """

    def __init__(self, environ: Mapping[str, str], limits: httpx.Limits) -> None:
        self._environ = environ
        self._limits = limits
        self._ways: dict[tuple[str, str], httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises RouteError for a proxy or certificates that cannot be used, ProxyUnreachableError for a proxy that
        does not answer or refuses, and what `httpx.HTTPTransport` raises."""
        proxy = proxy_for(str(request.url), self._environ)
        key = request.url.scheme, proxy[1] if proxy else ""
        way = self._ways.get(key)
        if way is None:  # built twice at worst, when two threads come at once
            way = self._ways.setdefault(key, self._build(request.url.scheme, proxy))
        try:
            return way.handle_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, UnicodeError) as error:
            if proxy is None:
                raise
            raise ProxyUnreachableError(proxy[0]) from error

    def close(self) -> None:
        for way in list(self._ways.values()):
            way.close()

    def _build(self, scheme: str, proxy: tuple[str, str] | None) -> httpx.HTTPTransport:
        verify: ssl.SSLContext | bool = self._certificates() if scheme == "https" else False
        if proxy is None:
            return httpx.HTTPTransport(verify=verify, trust_env=False, limits=self._limits)
        name, url = proxy
        try:
            context = self._certificates() if url.startswith("https:") else None
            through = httpx.Proxy(url, ssl_context=context)
            return httpx.HTTPTransport(verify=verify, trust_env=False, limits=self._limits, proxy=through)
        except ImportError:
            raise RouteError(f"{name} names a SOCKS proxy, for which the package socksio is missing") from None
        except (ValueError, httpx.InvalidURL):
            raise RouteError(f"{name} names no proxy that can be used") from None

    def _certificates(self) -> ssl.SSLContext:
        """Those that the environment names, else the ones that come with httpx.

        Made by hand: ``ssl.create_default_context`` would have the keys of every connection written to the file that
        this process's own ``SSLKEYLOGFILE`` names.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for name in CERTIFICATE_VARIABLES:
            path = self._environ.get(name)
            if path:
                try:
                    if name.endswith("DIR"):
                        _load_folders(context, path)
                    else:
                        context.load_verify_locations(cadata=_pem(path))
                except (OSError, ValueError):
                    raise RouteError(f"{name} names no certificates that can be read: {path}") from None
                return context
        context.load_verify_locations(certifi.where())
        return context


def _load_folders(context: ssl.SSLContext, paths: str) -> None:
    """The folders of a list such as OpenSSL takes. Raises OSError when none of them is there."""
    there = [path for path in paths.split(os.pathsep) if os.path.isdir(path)]
    if not there:
        raise NotADirectoryError(paths)  # OpenSSL itself says nothing of a folder that is not there
    for path in there:
        context.load_verify_locations(capath=path)


def _pem(path: str) -> str:
    """The certificates in a file, read without waiting; what is not ASCII stands in comments alone."""
    return read_bounded(path, MAX_CERTIFICATE_BYTES).decode("ascii", "replace").replace("\ufffd", "?")
