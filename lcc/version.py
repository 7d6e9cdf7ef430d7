"""The version of this package, found without importing more than it takes."""

from __future__ import annotations

from pathlib import Path


def our_version() -> str:
    """The version of the sources where they run in place, as a plugin's do; that of the installed package otherwise.

    Raises ``PackageNotFoundError`` where neither is to be found.
    """
    try:
        described = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        from importlib.metadata import version

        return version("lcc-claude-code")
    import tomllib

    return str(tomllib.loads(described)["project"]["version"])
