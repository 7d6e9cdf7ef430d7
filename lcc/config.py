"""The one configuration: a TOML file of the user, the plugin's options, and LCC_* variables.

The file is ``$LCC_CONFIG``, else ``lcc/config.toml`` under ``$XDG_CONFIG_HOME`` (default ``~/.config``). A value is
taken from the first of these that has it: an LCC_* variable, the file, the plugin's options, the default. The
options come last because a client passes its defaults as if they had been chosen. ``enabled`` is off when any of
them says so.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lcc.contract.option import RequestError, Row
from lcc.contract.options import LiveOptions, config_rows
from lcc.folders import named_place, xdg_folder
from lcc.private_files import NotRegularError, TooLargeError, read_bounded

MAX_FILE_BYTES: Final = 256 * 1024


class ConfigError(ValueError):
    """A value that cannot be used. The text names the source, the key, and what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(LiveOptions):
    """What a live session is compacted with: its options, and where each came from."""

    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each value that is not the default came from."""


def config_file(env: Mapping[str, str]) -> Path:
    """Where the configuration file is looked for; it need not exist."""
    named = env.get("LCC_CONFIG")
    if named:
        return named_place(named, env)
    return xdg_folder(env, "XDG_CONFIG_HOME", ".config") / "lcc" / "config.toml"


def state_folder(env: Mapping[str, str]) -> Path:
    """Where logs, figures, reports and the guide's copies are kept: ``$LCC_STATE_DIR``, else XDG's state folder."""
    named = env.get("LCC_STATE_DIR")
    if named:
        return named_place(named, env)
    return xdg_folder(env, "XDG_STATE_HOME", ".local/state") / "lcc"


def reports_folder(state: Path) -> Path:
    """Where reports of live sessions stand, by time and session: ``20260101T000000-000000-SESSION.json``."""
    return state / "reports"


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
    if "stash_dir" in values:
        values["stash_dir"] = str(named_place(values["stash_dir"], env))
    return Config(**values, sources=sources)


def _from_file(file: Path, named: bool) -> Iterator[tuple[str, object]]:
    try:
        raw = read_bounded(file, MAX_FILE_BYTES)
    except NotRegularError as error:
        raise ConfigError(f"{file}: cannot be read ({error.kind}, not a regular file)") from None
    except TooLargeError:
        raise ConfigError(f"{file}: over {MAX_FILE_BYTES} bytes") from None
    except FileNotFoundError:
        if named:
            raise ConfigError(f"{file}: there is no such file") from None
        return
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except RecursionError:
        raise ConfigError(f"{file}: no valid TOML: nested too deeply") from None
    except ValueError as error:  # also one for a number of more digits than Python reads
        raise ConfigError(f"{file}: no valid TOML: {error}") from None
    rows = config_rows()
    for key, value in document.items():
        if key not in rows:
            near = difflib.get_close_matches(key, rows, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(rows))}"
            raise ConfigError(f"{file}: {key}: no such setting{hint}")
        yield key, _checked(rows[key], value, str(file))


def _from_options(options: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The plugin's options, typed or as text; one that is not ours (a newer plugin's) or not set is passed over."""
    for key, row in config_rows().items():
        value = options.get(key)
        if value is not None and value != "":
            typed = row.from_text(value) if isinstance(value, str) else value
            yield key, _checked(row, typed, "the plugin's options")


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    for key, row in config_rows().items():
        name = f"LCC_{key.upper()}"
        text = env.get(name, "")
        if text:
            yield key, _checked(row, row.from_text(text), name)


def _checked(row: Row, value: object, source: str) -> object:
    """The value as the option takes it; a whole number may be written for any number, and 8.0 for a whole one."""
    if row.kind == "number" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if row.kind == "whole" and isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return row.checked(value)
    except RequestError as error:
        raise ConfigError(f"{source}: {row.name}: {error.problem}") from None
