"""The scripts that Codex's `exec` tool is given: which of them are one plain call of another tool, shown as it is.

Such a script is the usual one: a call of ``tools.exec_command`` with a literal for its arguments, and ``text`` of
its output. Any other may do anything, and stays what it is.
"""

from __future__ import annotations

import re
from functools import lru_cache

import orjson

from lcc.transcript import Json

_PLAIN = re.compile(
    r"\s*+(?://[^\n]*+\n\s*+)*+"  # a comment line may set options of the run
    r"(?:(?:const|let|var)\s++(?P<name>[A-Za-z_$][\w$]*+)\s*+=\s*+await\s++tools\.exec_command\(\s*+(?P<named>\{.*\})\s*+\)\s*+;?"
    r"\s*+text\(\s*+(?P=name)\.output\s*+\)"
    r"|text\(\s*+\(\s*+await\s++tools\.exec_command\(\s*+(?P<bare>\{.*\})\s*+\)\s*+\)\.output\s*+\))"
    r"\s*+;?\s*+",
    re.DOTALL,
)
_MEMBER = re.compile(
    r"\s*+(?:(?P<bare>[A-Za-z_$][\w$]*+)|(?P<key>\"(?:[^\"\\\n]|\\.)*+\"))\s*+:\s*+"
    r"(?:(?P<json>\"(?:[^\"\\\n]|\\.)*+\"|-?[0-9][0-9.eE+-]*+|true|false|null)"
    r"|'(?P<single>[^'\\\n]*+)'|`(?P<template>[^`\\$]*+)`)\s*+(?P<end>,\s*+\}|,|\})",
    re.DOTALL,
)


@lru_cache(maxsize=4096)
def plain_call(script: str) -> dict[str, Json] | None:
    """The arguments of the one ``exec_command`` whose output, and nothing else, a script shows; None for any other."""
    found = _PLAIN.fullmatch(script)
    return _members(found["named"] or found["bare"]) if found else None


def _members(literal: str) -> dict[str, Json] | None:
    """The members of an object literal of plain values; None for one that holds anything else."""
    members: dict[str, Json] = {}
    position = 1
    while True:
        member = _MEMBER.match(literal, position)
        if member is None:
            return None
        try:
            key = member["bare"] or orjson.loads(member["key"])
            members[key] = _value(member)
        except orjson.JSONDecodeError:
            return None
        position = member.end()
        if member["end"] != ",":
            return members if position == len(literal) else None


def _value(member: re.Match[str]) -> Json:
    if member["json"] is None:
        return member["single"] if member["single"] is not None else member["template"]
    value: Json = orjson.loads(member["json"])
    return value
