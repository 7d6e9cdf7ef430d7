"""One line of a Claude Code session, as far as its place in the tree of lines goes."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from lcc.transcript.formats.messages_api import Content

Kind: TypeAlias = Literal["user", "assistant", "boundary", "other"]


class Kept(NamedTuple):
    """Lines ahead of a compact boundary that it kept: they now stand after the line ``anchor``.

    A boundary lists them (``uuids``), or names the first and the last of a walk (``head``, ``tail``).
    """

    anchor: str
    uuids: tuple[str, ...]
    head: str = ""
    tail: str = ""


class Checkpoint(NamedTuple):
    """A rewind without a new prompt yet: the conversation ends at the line ``leaf``, as of document ``document``."""

    document: int
    leaf: str


class Entry(NamedTuple):
    """One line that stands in the tree."""

    document: int
    uuid: str
    parent: str | None
    kind: Kind
    sidechain: bool
    message_id: str | None
    source: str | None
    """``sourceToolAssistantUUID``: for a result, the line that holds its call."""
    content: Content | None
    """For user and assistant lines."""
    kept: Kept | None
    """For a boundary, where it names the lines that it kept."""
    time: str | None
    """``timestamp``, as written."""
    by_client: bool = False
    """Whether the client wrote it, and not the user whose line it is."""
