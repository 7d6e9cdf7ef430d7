"""What the user protects by name: tools and paths, as globs.

A glob is compared without case. ``*`` stands for any characters, slashes too. A path glob without a slash at its start
may begin at any folder, and one that matches a folder matches all that is in it. In doubt a result is protected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from os.path import expanduser

from lcc.relevance.evidence.mentions import fold
from lcc.relevance.reading.calls import (
    command_of,
    cwd_of,
    file_read_of,
    input_strings,
    kind_of,
    named_path,
    written_paths,
)
from lcc.relevance.reading.programs import runs_of
from lcc.transcript import Pair, ToolUse


def protected_tools(pairs: Iterable[Pair], globs: Sequence[str]) -> Iterator[str]:
    """The calls of a tool that one of ``globs`` matches, by id."""
    if globs:
        wanted = _any_of(fold(glob) for glob in globs)
        yield from (pair.use.id for pair in pairs if wanted.match(fold(pair.use.tool)))


def protected_paths(pairs: Iterable[Pair], globs: Sequence[str], session_cwd: str | None) -> Iterator[str]:
    """The calls that read, write, name or mention a path that one of ``globs`` matches, by id."""
    if globs:
        wanted = _any_of(
            form for glob in globs for form in _forms(fold(expanduser(glob)).rstrip("/").removesuffix("/**"))
        )
        for pair in pairs:
            folder = cwd_of(pair.use) or session_cwd or ""
            # A relative path is looked at as it is written, and where it leads.
            if any(wanted.match(form) for path in _paths(pair.use) for form in _places(fold(path), fold(folder))):
                yield pair.use.id


def _forms(glob: str) -> Iterator[str]:
    start = "" if glob.startswith(("/", "*")) or glob[1:2] == ":" else "*/"
    yield start + glob
    yield f"{start}{glob}/*"


def _places(path: str, folder: str) -> Iterator[str]:
    path = path.removeprefix("./").rstrip("/")
    yield path if path.startswith("/") or path[1:2] == ":" else f"{folder}/{path}"
    yield f"/{path}"


def _any_of(globs: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(glob) for glob in globs))


def _paths(use: ToolUse) -> Iterator[str]:
    """The paths that a call is about, and every word of its input that may be one."""
    yield from written_paths(use)
    path = named_path(use)
    if path:
        yield path
    read = file_read_of(use)
    if read is not None:
        yield read.path
    command = command_of(use)
    if command is not None:
        for run in runs_of(command):
            for word in run:
                yield from (word, word.rpartition("=")[2])
    elif kind_of(use.tool) not in ("edit", "write"):
        for text in input_strings(use.input):
            yield from text.split()
