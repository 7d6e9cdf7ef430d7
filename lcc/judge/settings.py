"""Which server may be asked, with which model and key: read from the environment and a private key file.

The names are those of the System One API page. A key is held in one field that no representation shows.
Also reading the key file: its owner's editor, nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from lcc.contract.modes import JudgeName
from lcc.contract.options import DEFAULT_JEV_MODEL
from lcc.folders import named_place, xdg_folder
from lcc.judge.addresses import is_loopback
from lcc.private_files import (
    ExposedFileError,
    ForeignFileError,
    NotRegularError,
    TooLargeError,
    read_bounded,
)

DEFAULT_JEV_BASE = "https://api.typesafe.ai"
DEFAULT_LAYA_BASE = "http://127.0.0.1:8000"
DEFAULT_LAYA_MODEL = "laya-latest"
SYSTEM_ONE_PATH = "/v1/systemone"
KEY_FILE_VARIABLE = "TYPESAFE_API_KEY_FILE"
NETWORK_OFF = "the network is switched off (LCC_DISABLE_NETWORK)"
_NO = frozenset(("", "0", "false", "no", "off"))
_LONGEST_KEY = 4096  # characters, and bytes of the key file


@dataclass(frozen=True, slots=True)
class Server:
    """A System One server to ask. ``key`` goes into one header and nowhere else."""

    provider: JudgeName
    endpoint: str
    model: str
    key: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """Host and port as a person may see them: without user, password, path or query."""
        parts = urlsplit(self.endpoint)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No server may be asked. ``why`` is one sentence for each thing that was looked for."""

    provider: JudgeName
    why: tuple[str, ...]


def network_allowed(environ: Mapping[str, str]) -> bool:
    """Whether ``LCC_DISABLE_NETWORK`` is unset, empty or a plain no. Else no client is built, for any host.

    A switch for emergencies is on in doubt: ``true`` and ``yes`` are as good as ``1``, and so is any other word.
    """
    return environ.get("LCC_DISABLE_NETWORK", "").strip().lower() in _NO


def jev_server(environ: Mapping[str, str], model: str, key_file: str | None = None) -> Server | Unavailable:
    """Jev as the environment describes it; ``Unavailable`` without a key, a network or a usable address.

    ``model`` is the one asked for; ``TYPESAFE_MODEL``, then ``TYPESAFE_DEFAULT_MODEL``, take the place of
    ``jev-latest`` only. ``key_file`` is a path, read when ``TYPESAFE_API_KEY`` is not set.
    """
    if not network_allowed(environ):
        return Unavailable("jev", (NETWORK_OFF,))
    key, missing = _find_key(environ, key_file)
    if key is None:
        return Unavailable("jev", (missing,))
    named = environ.get("TYPESAFE_ENDPOINT") or environ.get("TYPESAFE_BASE_URL") or DEFAULT_JEV_BASE
    variable = "TYPESAFE_ENDPOINT" if environ.get("TYPESAFE_ENDPOINT") else "TYPESAFE_BASE_URL"
    problem = _address_problem(named)
    if problem is None and urlsplit(named).scheme == "http" and not is_loopback(named):
        problem = "a key is sent over https only, or to this machine"
    if problem:
        return Unavailable("jev", (f"{variable} is not usable: {problem}",))
    if model == DEFAULT_JEV_MODEL:
        model = environ.get("TYPESAFE_MODEL") or environ.get("TYPESAFE_DEFAULT_MODEL") or model
    endpoint = named if environ.get("TYPESAFE_ENDPOINT") else _endpoint(named)
    return Server("jev", endpoint, model, key)


def laya_server(environ: Mapping[str, str], model: str | None) -> Server | Unavailable:
    """The Laya server that ``LAYA_BASE_URL`` names, by default the one on this machine's port 8000.

    Jev's key is never sent to it; ``LAYA_API_KEY``, the variable of ``laya[serve]`` itself, is.
    """
    if not network_allowed(environ):
        return Unavailable("laya", (NETWORK_OFF,))
    base = environ.get("LAYA_BASE_URL") or DEFAULT_LAYA_BASE
    problem = _address_problem(base)
    if problem:
        return Unavailable("laya", (f"LAYA_BASE_URL is not usable: {problem}",))
    key = environ.get("LAYA_API_KEY", "").strip() or None
    if key is not None and not _sendable(key):
        return Unavailable("laya", ("LAYA_API_KEY holds characters that a header cannot carry",))
    return Server("laya", _endpoint(base), model or DEFAULT_LAYA_MODEL, key)


def default_key_file(environ: Mapping[str, str]) -> Path:
    """Where a key is looked for when nothing names a file: ``lcc/typesafe.key`` in the XDG config folder."""
    return xdg_folder(environ, "XDG_CONFIG_HOME", ".config") / "lcc" / "typesafe.key"


def read_key_file(path: str | Path) -> tuple[str | None, str]:
    """The key in a private file, or None and what is wrong; the file's content is in no message.

    The file must be a regular one of this user, no link, and closed to everybody else (mode 0600).
    """
    no_key = f"the key file {path} does not hold one key on one line"
    try:
        data = read_bounded(path, _LONGEST_KEY, follow=False, own=True, private=True)
    except NotRegularError as error:
        return None, f"the key file {path} is {error.kind}, not a regular file of yours"
    except ForeignFileError:
        return None, f"the key file {path} is not a regular file of yours"
    except ExposedFileError:
        return None, f"the key file {path} can be read by others; run: chmod 600 {path}"
    except TooLargeError:
        return None, no_key
    except OSError as error:
        return None, f"the key file {path} cannot be opened ({error.strerror})"
    key = data.decode("ascii", "replace").strip()
    return (key, "") if key and _sendable(key) else (None, no_key)


def _find_key(environ: Mapping[str, str], key_file: str | None) -> tuple[str | None, str]:
    key = environ.get("TYPESAFE_API_KEY", "").strip()
    if key:
        return (key, "") if _sendable(key) else (None, "TYPESAFE_API_KEY holds characters that a header cannot carry")
    named = key_file or environ.get(KEY_FILE_VARIABLE)
    if named:
        return read_key_file(named_place(named, environ))
    standard = default_key_file(environ)
    if standard.is_file():
        return read_key_file(standard)
    return None, f"there is no key: neither TYPESAFE_API_KEY nor {standard} holds one"


def _sendable(key: str) -> bool:
    return len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key


def _endpoint(base: str) -> str:
    trimmed = base.rstrip("/")
    return trimmed if trimmed.endswith(SYSTEM_ONE_PATH) else trimmed + SYSTEM_ONE_PATH


def _address_problem(url: str) -> str | None:
    """What is wrong with an address; the address itself is not repeated, it may hold a password."""
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        return "it is no URL"
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok:
        return "it is no http or https URL with a host"
    if parts.username or parts.password:
        return "it holds a user or a password, which would end up in logs"
    return None
