"""The options that stand before a command of `lcc`."""

from __future__ import annotations

from typing import Annotated

import typer

from lcc.version import our_version


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lcc {our_version()}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """The options that stand before a command."""
