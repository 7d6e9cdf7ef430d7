"""Where a user's folders are, by an environment that is not always this process's own.

The daemon serves sessions with other homes than its own, so nothing here asks the process: ``~`` is the home of the
environment that is given, and, where that has none, the account's.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path


def home_folder(env: Mapping[str, str]) -> Path:
    """``$HOME`` where that is absolute, else the account's home."""
    home = env.get("HOME", "")
    if home.startswith("/"):
        return Path(home)
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:  # an account that the system does not list, as in some containers
        return Path("/")


def named_place(text: str, env: Mapping[str, str]) -> Path:
    """An absolute path from what a user wrote: ``~`` is their home, a relative one is under the working folder."""
    first, slash, rest = text.partition("/")
    if first == "~":
        return home_folder(env) / rest if slash else home_folder(env)
    return Path(text).expanduser().absolute()


def xdg_folder(env: Mapping[str, str], variable: str, default: str) -> Path:
    """``variable``'s folder where it is absolute, as the XDG specification asks, else ``default`` in the home."""
    base = env.get(variable, "")
    return Path(base) if base.startswith("/") else home_folder(env) / default
