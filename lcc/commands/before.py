"""The options that stand before a command of `lcc`."""

from __future__ import annotations

from typing import Annotated

import typer


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"lcc {version('lcc-claude-code')}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """The options that stand before a command."""
