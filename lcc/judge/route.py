"""How a judge's server is reached: directly, or through the proxy that an environment names.

The environment is the asking session's, never this process's: the daemon serves sessions with different ones.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import httpx

from lcc.judge.addresses import proxy_for

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class RouteError(httpx.TransportError):
    """The environment names a way to the server that cannot be gone. The text names the variable, not its value."""


class Route(httpx.BaseTransport):
    """A transport for every server: direct to this machine, through the environment's proxy to others.

    TLS settings are loaded when a server first needs them. Safe to use from several threads.
    """

    def __init__(self, environ: Mapping[str, str], limits: httpx.Limits) -> None:
        self._environ = environ
        self._limits = limits
        self._ways: dict[tuple[str, str], httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Raises RouteError for a proxy or certificates that cannot be used, and what `httpx.HTTPTransport` raises."""
        proxy = proxy_for(str(request.url), self._environ)
        key = request.url.scheme, proxy[1] if proxy else ""
        way = self._ways.get(key)
        if way is None:  # built twice at worst, when two threads come at once
            way = self._ways.setdefault(key, self._build(request.url.scheme, proxy))
        return way.handle_request(request)

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
        """Those that the environment names, else the ones that come with httpx."""
        for name in CERTIFICATE_VARIABLES:
            path = self._environ.get(name)
            if path:
                try:
                    if name.endswith("DIR"):
                        os.listdir(path)  # OpenSSL itself says nothing of a folder that is not there
                        return ssl.create_default_context(capath=path)
                    return ssl.create_default_context(cafile=path)
                except (OSError, ValueError):
                    raise RouteError(f"{name} names no certificates that can be read: {path}") from None
        return httpx.create_ssl_context(trust_env=False)
