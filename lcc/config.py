"""The one configuration: a TOML file of the user, the plugin's options, and LCC_* variables.

The file is ``$LCC_CONFIG``, else ``lcc/config.toml`` under ``$XDG_CONFIG_HOME`` (default ``~/.config``). A value is
taken from the first of these that has it: an LCC_* variable, the file, the plugin's options, the default. The
options come last because a client passes its defaults as if they had been chosen. ``enabled`` is off when any of
them says so.
"""

from __future__ import annotations

import difflib
import math
import os
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from lcc.contract.modes import Provider, RulesMode

MAX_FILE_BYTES: Final = 256 * 1024
_TRUE: Final = frozenset(("1", "true", "yes", "on"))
_FALSE: Final = frozenset(("0", "false", "no", "off", ""))


class ConfigError(ValueError):
    """A value that cannot be used. The text names the source, the key, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Config:
    """What a live session is compacted with. The defaults are the seed's recommendation for one (section 5)."""

    enabled: bool = True
    provider: Provider = "rules"
    rules_mode: RulesMode = "recoverable"
    min_reduction: float = 0.25
    """The share of the session that must go, 0 to 1; below it the built-in summary runs."""
    preserve_recent: int = 6
    """The newest messages, which are never touched."""
    threshold: float = 0.5
    trim_head_chars: int = 300
    allow_command_pointers: bool = False
    disk_check: bool = True
    model: str | None = None
    """The model whose tokens are counted."""
    jev_model: str = "jev-latest"
    laya_model: str | None = None
    judge_timeout_s: float = 15.0
    """How long a compaction may wait for a judge, in seconds."""
    stash_dir: str | None = None
    request_log: bool = False
    """Whether each pass of a live session adds a line without content to the request log."""
    idle_minutes: float = 30.0
    """The daemon stops after so long without a request or a live session; 0: never."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each value that is not the default came from."""


def config_file(env: Mapping[str, str]) -> Path:
    """Where the configuration file is looked for; it need not exist."""
    named = env.get("LCC_CONFIG")
    if named:
        return Path(named).expanduser().absolute()
    return _xdg(env, "XDG_CONFIG_HOME", ".config") / "lcc" / "config.toml"


def state_folder(env: Mapping[str, str]) -> Path:
    """Where logs, figures, reports and the guide's copies are kept: ``$LCC_STATE_DIR``, else XDG's state folder."""
    named = env.get("LCC_STATE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    return _xdg(env, "XDG_STATE_HOME", ".local/state") / "lcc"


def load_config(
    env: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    path: Path | None = None,
) -> Config:
    """The configuration for one call.

    ``env`` is the environment of whoever asks (default: this process's), ``options`` the plugin's, ``path``
    replaces the usual file. Raises ConfigError; a file that does not exist counts as empty.
    """
    env = os.environ if env is None else env
    file = path or config_file(env)
    named = path is not None or "LCC_CONFIG" in env
    layers = [
        ("the plugin's options", dict(_from_options(options or {}))),
        (str(file), dict(_from_file(file, named))),
        ("the environment", dict(_from_env(env))),
    ]
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, layer in layers:
        for key, value in layer.items():
            if key == "enabled" and values.get("enabled") is False:
                continue
            values[key], sources[key] = value, source
    return Config(**values, sources=sources)


def _xdg(env: Mapping[str, str], variable: str, default: str) -> Path:
    base = env.get(variable, "")
    return Path(base) if base.startswith("/") else Path(env.get("HOME") or "~").expanduser() / default


def _from_file(file: Path, named: bool) -> Iterator[tuple[str, object]]:
    try:
        # Not blocked by a pipe that stands where the file should, and nothing but a file is read.
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise ConfigError(f"{file}: not a regular file")
            raw = opened.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        if named:
            raise ConfigError(f"{file}: there is no such file") from None
        return
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError(f"{file}: over {MAX_FILE_BYTES} bytes")
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: no valid TOML: {error}") from None
    for key, value in document.items():
        if key not in _RULES:
            near = difflib.get_close_matches(key, _RULES, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(_RULES))}"
            raise ConfigError(f"{file}: {key}: no such setting{hint}")
        yield key, _checked(key, value, str(file))


def _from_options(options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The plugin's options, typed or as text; one that is not ours (a newer plugin's) or not set is passed over."""
    for key, value in options.items():
        if key in _RULES and value is not None and value != "":
            typed = _from_text(key, value) if isinstance(value, str) else value
            yield key, _checked(key, typed, "the plugin's options")


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    for key in _RULES:
        name = f"LCC_{key.upper()}"
        text = env.get(name)
        if text is not None and text != "":
            yield key, _checked(key, _from_text(key, text), name)


def _from_text(key: str, text: str) -> object:
    """A variable's text as the setting's type; left as it is, for the check to refuse, where it is none."""
    kind = _RULES[key][0]
    if kind is bool:
        word = text.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else text
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def _checked(key: str, value: object, source: str) -> object:
    kind, allowed, is_allowed = _RULES[key]
    if callable(allowed):
        allowed = allowed()
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not kind or not is_allowed(value):
        raise ConfigError(f"{source}: {key}: {value!r} is not {allowed}")
    if key == "stash_dir":
        return str(Path(str(value)).expanduser())
    return value


def providers() -> tuple[Provider, ...]:
    """What ``provider`` may be. Imported only when it is asked for: `lcc-daemon status` needs no pass."""
    from lcc.contract.modes import PROVIDERS

    return PROVIDERS


def live_rules_modes() -> tuple[RulesMode, ...]:
    """What ``rules_mode`` may be in a live session: not `lossy`, which failed its audits (the seed's section 5)."""
    from lcc.contract.modes import LIVE_MODES

    return LIVE_MODES


def _text(value: Any) -> bool:
    return 0 < len(value) <= 4096 and value.isprintable()


def _between(low: float, high: float) -> Callable[[Any], bool]:
    return lambda value: math.isfinite(value) and low <= value <= high


_ANY: Final = "true or false", lambda value: True
_Rule: TypeAlias = "tuple[type, str | Callable[[], str], Callable[[Any], bool]]"
_RULES: Final[Mapping[str, _Rule]] = {
    "enabled": (bool, *_ANY),
    "provider": (str, lambda: f"one of {', '.join(providers())}", lambda value: value in providers()),
    "rules_mode": (
        str,
        lambda: f"one of {', '.join(live_rules_modes())}",
        lambda value: value in live_rules_modes(),
    ),
    "min_reduction": (float, "a number from 0 to 1", _between(0, 1)),
    "preserve_recent": (int, "a whole number from 0 to 100000", _between(0, 100_000)),
    "threshold": (float, "a number from 0 to 1", _between(0, 1)),
    "trim_head_chars": (int, "a whole number from 0 to 1000000", _between(0, 1_000_000)),
    "allow_command_pointers": (bool, *_ANY),
    "disk_check": (bool, *_ANY),
    "model": (str, "a model's name", _text),
    "jev_model": (str, "a model's name", _text),
    "laya_model": (str, "a model's name", _text),
    "judge_timeout_s": (float, "a number of seconds from 1 to 300", _between(1, 300)),
    "stash_dir": (
        str,
        "an absolute path (or one that begins with ~/)",
        lambda value: _text(value) and value.startswith(("/", "~/")),
    ),
    "request_log": (bool, *_ANY),
    "idle_minutes": (float, "a number of minutes from 0 to 10080", _between(0, 10_080)),
}

if set(_RULES) != {f.name for f in fields(Config)} - {"sources"}:
    raise AssertionError("every setting has exactly one rule")
