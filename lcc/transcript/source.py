"""An input's bytes, and what a format is recognised by. Nothing of them is parsed twice."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Final

import orjson

from lcc.transcript.document import BOM, loads
from lcc.transcript.splice import skip_value
from lcc.transcript.values import Json

_ONLY_SPACE: Final = re.compile(rb"[ \t\r\n]*+\Z")


class Source:
    """One input. ``name`` stands for it where an error has no place inside it; ``strict``: damage is an error."""

    def __init__(self, raw: bytes, name: str = "input", *, strict: bool = False) -> None:
        self.raw = raw
        self.name = name
        self.strict = strict

    @cached_property
    def first(self) -> Json:
        """The first line's value; of a line that holds several, the first. None where it does not start with one.

        Where that is damaged, and the input is no document that goes over several lines: that of the first line
        that is an object with a type, as every line of a session file is.
        """
        first, is_whole = self._first
        if self.strict or is_whole or isinstance(first, dict) or self._goes_over_lines():
            return first
        found = self._first_typed_line()
        return first if found is None or self._is_json() else found

    @cached_property
    def fields(self) -> dict[str, Json]:
        """``first`` where it is an object, else nothing."""
        return self.first if isinstance(self.first, dict) else {}

    @cached_property
    def document(self) -> Json:
        """All of the input as one JSON document. Raises TranscriptError where it is none."""
        first, is_whole = self._first
        return first if is_whole else loads(self.raw)

    @cached_property
    def is_one_document(self) -> bool:
        """Whether it is no file of lines: each of those is an object, and none of them holds ``messages``."""
        return not isinstance(self.first, dict) or "messages" in self.first

    def _goes_over_lines(self) -> bool:
        """Whether the first line ends as one of a document does that goes on in the next."""
        return self.raw.lstrip().partition(b"\n")[0].rstrip().endswith((b"{", b"[", b","))

    def _first_typed_line(self) -> dict[str, Json] | None:
        for line in self.raw.split(b"\n"):
            if line[:1] == b"{":
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(value, dict) and isinstance(value.get("type"), str):
                    return value
        return None

    def _is_json(self) -> bool:
        try:
            orjson.loads(self.raw)
        except orjson.JSONDecodeError:
            return False
        return True

    @cached_property
    def _first(self) -> tuple[Json, bool]:
        """The first line's value, and whether it is all there is: a document on one line is parsed here alone."""
        raw = self.raw
        start = len(BOM) if raw.startswith(BOM) else 0
        while raw[start : start + 1] in (b" ", b"\t", b"\r", b"\n"):
            start += 1
        line_end = raw.find(b"\n", start)
        end = line_end if line_end >= 0 else len(raw)
        value: Json
        try:
            value = orjson.loads(memoryview(raw)[start:end])
        except orjson.JSONDecodeError:
            if end - start < 2:
                return None, False
            try:
                return orjson.loads(memoryview(raw)[start : skip_value(raw, start)]), False
            except ValueError:
                return None, False
        return value, raw[:3] != BOM and _ONLY_SPACE.match(raw, end) is not None
