"""The options that stand before a command of `lcc`."""

from __future__ import annotations

from typing import Annotated

import typer


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lcc {our_version()}")
        raise typer.Exit


def our_version() -> str:
    """The package's version, or that of the sources where they run without being installed, as a plugin's do."""
    import tomllib
    from importlib.metadata import PackageNotFoundError, version
    from pathlib import Path

    try:
        return version("lcc-claude-code")
    except PackageNotFoundError:
        described = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
        return str(described["project"]["version"])


def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """The options that stand before a command."""
