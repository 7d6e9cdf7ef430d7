"""Follows every pointer of a compacted transcript, and gets back every byte that was removed.

Written from the specification alone. It shares nothing with lcc: it walks the payload itself, reads the notes
with its own expressions, and fetches what they name the way a reader of the session would.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
FileOf = Callable[[str, str], bytes]
"""From a call id and an absolute path to the bytes that the file held when the call's note was written."""

READ_TOOLS = {"Read", "read_file", "view"}
SHELLS = {"Bash", "exec_command", "shell_command"}
CODEX_TOOLS = {"exec_command", "shell_command", "write_stdin", "shell", "apply_patch"}
STUBS = ("File unchanged since last read.", "Wasted call — file unchanged since your last Read.")

_IDENTICAL = re.compile(r"\[identical output kept at (\S+(?: part \d+)?)\]")
_LINES = re.compile(r"\[output = lines (\d+)-(\d+) of (\S+(?: part \d+)?)\]")
_REREAD = re.compile(r"\[removed: re-read (.*?) to recover(; content verified on disk at compaction time)?\]")
_RANGE = re.compile(r"(.*) \(lines (\d+)-(\d+)\)")
_STASHED = re.compile(r"\[removed: [0-9]+ tokens · lcc recall ([0-9a-f]{12})\]")
_HOLDS = re.compile(r"\n\[it holds(?: ([0-9]+) lines)?(?:: ([^\]\n]+))?\]")
_REMINDER = re.compile(r"\n\n<system-reminder>.*</system-reminder>\n*", re.DOTALL)
_CODEX_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Exit code|Process exited|Original token count)[^\n]*\n)+Output:\n"
)
_IGNORED_IN_HEADER = ("Chunk ID:", "Wall time:", "Original token count:")


class BrokenPointerError(AssertionError):
    """A pointer, or something that had to be left alone, is not as the specification says."""


@dataclass
class Result:
    """A text of a result with its call, as found in a payload. ``raw["parts"]`` are those of a result of several.

    The id is the call's, or that and the part, which counts all parts from 1.
    """

    id: str
    raw: dict[str, Any]
    use: dict[str, Any]
    order: int
    part: int | None = None

    @property
    def call(self) -> str:
        return call_id(self.raw)

    @property
    def text(self) -> str:
        return str(self.raw["text"] if self.part is None else self.raw["parts"][self.part - 1]["text"])

    @property
    def failed(self) -> bool:
        return bool(self.raw.get("is_error", self.raw.get("isError", False)))

    @property
    def tool(self) -> str:
        return str(self.use.get("tool", self.use.get("name")))


def uses_of(message: Message) -> list[dict[str, Any]]:
    """The calls of a message, in either spelling."""
    return list(message.get("toolUses", message.get("tool_calls", [])))


def results_of(message: Message) -> list[dict[str, Any]]:
    """The results of a message, in either spelling."""
    return list(message.get("toolResults", message.get("tool_results", [])))


def call_id(item: Mapping[str, Any]) -> str:
    """The id of a call or a result, in either spelling."""
    return str(item["tool_use_id"] if "tool_use_id" in item else item["id"])


def results(messages: list[Message]) -> list[Result]:
    """Every text of a result in order, with its call."""
    uses = {call_id(use): use for message in messages for use in uses_of(message)}
    found = []
    for message in messages:
        for raw in results_of(message):
            if call_id(raw) not in uses:
                raise BrokenPointerError(f"{call_id(raw)}: a result without its call")
            call, use = call_id(raw), uses[call_id(raw)]
            if "parts" not in raw:
                found.append(Result(call, raw, use, len(found)))
            for number, part in enumerate(raw.get("parts", ()), 1):
                if part["type"] == "text":
                    found.append(Result(f"{call} part {number}", raw, use, len(found), number))
    return found


def follow(
    original: list[Message],
    compacted: list[Message],
    *,
    file_of: FileOf | None = None,
    session_cwd: str | None = None,
    root: str | None = None,
    verified: bool | None = None,
    recall: Callable[[str], str] | None = None,
    inputs: bool = False,
) -> dict[str, str]:
    """Check that nothing but results changed and that every note gives back what it stands for.

    ``inputs``: strings in the inputs of calls may have become notes too; they are followed likewise, and are in the
    answer by the call's id and their path in the input.

    ``file_of`` None: no pointer to a file may occur. ``verified`` says which of the two forms of a file pointer
    must be used. ``recall`` gives back what is stashed under an id. Returns the new texts of replaced results by id.
    """
    require_rest_untouched(original, compacted, inputs=inputs)
    before = results(original)
    after = {result.id: result for result in results(compacted)}
    kept = {result.id for result in before if after[result.id].text == result.text}
    by_id = {result.id: result for result in before}
    replaced = {}
    for old in before:
        new = after[old.id].text
        if old.id in kept:
            continue
        replaced[old.id] = new
        if len(new) >= len(old.text):
            raise BrokenPointerError(f"{old.id}: the note is not shorter than what it replaces")
        if recall is not None and (stashed := _STASHED.match(new)):
            _check_stashed(old.text, new, stashed, recall)
            continue
        note, rest = _split_note(old, new)
        removed = old.text[: len(old.text) - len(rest)] if rest else old.text
        if found := _IDENTICAL.fullmatch(note):
            _check_same(old, removed, rest, _target(found[1], old, by_id, kept))
        elif found := _LINES.fullmatch(note):
            target = _target(found[3], old, by_id, kept)
            _require(not rest, old, "something stands behind a pointer to lines")
            _require(removed == _lines(target.text, int(found[1]), int(found[2])), old, f"{note} is not true")
        elif found := _REREAD.fullmatch(note):
            if file_of is None:
                raise BrokenPointerError(f"{old.id}: {note!r} where no file may be pointed at")
            _require(verified is None or verified == bool(found[2]), old, f"{note!r} has the wrong form")
            _check_file(old, removed, found[1], file_of, session_cwd, root)
        else:
            raise BrokenPointerError(f"{old.id}: {new[:200]!r} is no note")
    if inputs:
        for name, use, old_text, new in changed_inputs(original, compacted):
            replaced[name] = new
            if len(new) >= len(old_text):
                raise BrokenPointerError(f"{name}: the note is not shorter than what it replaces")
            if recall is not None and (stashed := _STASHED.fullmatch(new)):
                _check_stashed(old_text, new, stashed, recall)
            elif file_of is not None and (found := _REREAD.fullmatch(new)) and found[2]:
                held = file_of(name, resolve(use, str(use["input"]["file_path"]), session_cwd, root))
                if found[1] != use["input"]["file_path"] or held != old_text.encode():
                    raise BrokenPointerError(f"{name}: the file does not hold what {new!r} stands for")
            else:
                raise BrokenPointerError(f"{name}: {new[:200]!r} is no note")
    return replaced


def changed_inputs(original: list[Message], compacted: list[Message]) -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """Every string of an input that differs: its name, its call as it was, what it was and what it is."""
    for before, after in zip(original, compacted, strict=True):
        for old, new in zip(uses_of(before), uses_of(after), strict=True):
            old_strings, new_strings = dict(_strings(old["input"])), dict(_strings(new["input"]))
            for path, text in old_strings.items():
                if new_strings[path] != text:
                    yield f"{call_id(old)} {'.'.join(map(str, path))}", old, text, new_strings[path]


def _strings(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield above, value
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _strings(inner, (*above, key))


def _check_stashed(removed: str, new: str, note: re.Match[str], recall: Callable[[str], str]) -> None:
    """The stash holds exactly what went, and what stands behind the note is true of it."""
    if recall(note[1]) != removed or not hashlib.sha256(removed.encode()).hexdigest().startswith(note[1]):
        raise BrokenPointerError(f"{new!r} is not what was removed")
    behind = new[note.end() :]
    holds = _HOLDS.fullmatch(behind)
    if behind and not holds:
        raise BrokenPointerError(f"{behind!r} stands behind a note of the stash")
    if holds and holds[1] and int(holds[1]) != len(removed.removesuffix("\n").split("\n")):
        raise BrokenPointerError(f"{behind!r} gives another number of lines")
    if holds and holds[2] and not all(token in removed for token in holds[2].split(" ")):
        raise BrokenPointerError(f"{behind!r} names what was not there")


def require_rest_untouched(original: list[Message], compacted: list[Message], *, inputs: bool = False) -> None:
    """Texts, inputs, roles, order, flags and unknown fields are as they were; only a result's text may differ.

    ``inputs``: strings in inputs too, but not where they stand, nor in which order, nor anything that is no string.
    """
    if len(original) != len(compacted):
        raise BrokenPointerError(f"{len(original)} messages became {len(compacted)}")
    for index, (old, new) in enumerate(zip(original, compacted, strict=True)):
        bare = _without_result_texts(old), _without_result_texts(new)
        if inputs:
            bare = _without_input_strings(bare[0]), _without_input_strings(bare[1])
        if bare[0] != bare[1]:
            raise BrokenPointerError(f"message {index} was changed")


def _without_input_strings(message: Message) -> Message:
    copy = dict(message)
    for key in ("toolUses", "tool_calls"):
        if key in copy:
            copy[key] = [{**use, "input": _without_strings(use["input"])} for use in copy[key]]
    return copy


def _without_strings(value: Any) -> Any:
    if isinstance(value, str):
        return ""
    if isinstance(value, dict):
        return [(key, _without_strings(inner)) for key, inner in value.items()]
    return [_without_strings(inner) for inner in value] if isinstance(value, list) else value


def stub_sources(messages: list[Message], session_cwd: str | None, root: str | None) -> Iterator[tuple[str, str]]:
    """For each "file unchanged" stub: its call and that of the read it refers to."""
    reads: list[tuple[str, str, str]] = []
    for result in results(messages):
        if result.tool not in READ_TOOLS or result.failed:
            continue
        path = os.path.normpath(resolve(result.use, _own_path(result), session_cwd, root))
        asked = repr((result.use["input"].get("offset"), result.use["input"].get("limit")))
        if not result.text.startswith(STUBS):
            reads.append((path, asked, result.call))
            continue
        same = [read for read in reads if read[0] == path]
        exact = [read for read in same if read[1] == asked]
        if same:
            yield result.call, (exact or same)[-1][2]


def resolve(use: Mapping[str, Any], path: str, session_cwd: str | None, root: str | None) -> str:
    """A path of a call as an absolute one: against the call's directory, else the session's, else the root."""
    given = use["input"] if isinstance(use["input"], dict) else {}
    own = given.get("workdir") or given.get("cwd") or ""
    if not os.path.isabs(own):  # what is recorded of a call has its relative workdir already
        own = use.get("cwd") or os.path.join(session_cwd or root or "/", own)
    return os.path.join(root or "/", own, path)


def _without_result_texts(message: Message) -> Message:
    copy = dict(message)
    for key in ("toolResults", "tool_results"):
        if key in copy:
            copy[key] = [
                {**raw, "text": None, "parts": [_without_text(part) for part in raw.get("parts", ())]}
                for raw in copy[key]
            ]
    return copy


def _without_text(part: Mapping[str, Any]) -> dict[str, Any]:
    return {**part, "text": None} if part["type"] == "text" else dict(part)


def _split_note(old: Result, new: str) -> tuple[str, str]:
    """The note, and what stands behind it: nothing, a command's final newline, or a client's reminder."""
    note, newline, rest = new.partition("\n")
    rest = newline + rest
    _require(old.text.endswith(rest), old, "what stands behind the note is not the end of the output")
    allowed = rest in ("", "\n") or _REMINDER.fullmatch(rest) or _REMINDER.fullmatch(rest[1:])
    _require(bool(allowed), old, f"{rest[:100]!r} stands behind the note")
    return note, rest


def _target(target: str, old: Result, by_id: Mapping[str, Result], kept: set[str]) -> Result:
    _require(target in by_id, old, f"its note names {target}, which is no result")
    _require(target in kept, old, f"its note names {target}, which is replaced itself")
    _require(by_id[target].order > old.order, old, f"its note names {target}, which is earlier")
    _require(by_id[target].failed == old.failed, old, f"its note names {target}, whose error flag differs")
    return by_id[target]


def _check_same(old: Result, removed: str, rest: str, target: Result) -> None:
    _require(not rest, old, "something stands behind a pointer to an identical output")
    same = removed == target.text or _without_volatile(old.tool, removed) == _without_volatile(target.tool, target.text)
    _require(same, old, f"{target.id} is not identical to it")


def _without_volatile(tool: str, text: str) -> str:
    """The text without the header lines that may differ, for tools that write such a header."""
    header = _CODEX_HEADER.match(text) if tool in CODEX_TOOLS else None
    if not header:
        return text
    lines = [line for line in header[0].splitlines(keepends=True) if not line.startswith(_IGNORED_IN_HEADER)]
    return "".join(lines) + text[header.end() :]


def _check_file(
    old: Result, removed: str, named: str, file_of: FileOf, session_cwd: str | None, root: str | None
) -> None:
    _require(" to recover" not in named, old, f"{named!r} can be read in two ways")
    found = _RANGE.fullmatch(named)
    path, span = (found[1], (int(found[2]), int(found[3]))) if found else (named, None)
    _require(path == _own_path(old), old, f"its note names {path!r}, not its own file")
    text = file_of(old.id, resolve(old.use, path, session_cwd, root)).decode()
    header = _CODEX_HEADER.match(removed) if old.tool in CODEX_TOOLS else None
    removed = removed[header.end() :] if header else removed
    first, shown = (span[0], [_lines(text, *span)]) if span else (1, [text, text.removesuffix("\n")])
    if removed == shown[0]:
        return
    _require(_numbers_lines(old), old, f"the file does not hold it: {removed[:60]!r} is not {shown[0][:60]!r}")
    renderings = [r for part in shown for r in _renderings(part.split("\n"), first)]
    _require(removed in renderings, old, f"the file does not hold it: {removed[:60]!r} is not {renderings[0][:60]!r}")


def _renderings(lines: list[str], first: int) -> list[str]:
    """``lines`` as a read tool may number them: padded with an arrow or bare with a tab, a first row 0 for offset 0."""
    starts = (first, 0) if first == 1 else (first,)
    return [
        "\n".join(f"{number:>{width}}{separator}{line}" for number, line in enumerate(lines, start))
        for start in starts
        for separator in "→\t"
        for width in (6, 0)
    ]


def _own_path(result: Result) -> str:
    """The path of the one file that a call reads."""
    given = result.use["input"]
    if result.tool in READ_TOOLS:
        return str(given.get("file_path", given.get("path")))
    return shlex.split(_command(result))[-1]


def _command(result: Result) -> str:
    _require(result.tool in SHELLS, result, f"a pointer at a file for a call of {result.tool}")
    return str(result.use["input"].get("command", result.use["input"].get("cmd")))


def _numbers_lines(result: Result) -> bool:
    if result.tool in READ_TOOLS:
        return True
    return shlex.split(_command(result))[:-1] in (["cat", "-n"], ["nl", "-ba"], ["nl", "-b", "a"])


def _lines(text: str, first: int, last: int) -> str:
    """Lines ``first`` to ``last``: 1-based, inclusive, ended by LF alone, joined by LF."""
    lines = text.split("\n")
    if not 1 <= first <= last <= len(lines):
        raise BrokenPointerError(f"there are no lines {first}-{last} in {len(lines)} lines")
    return "\n".join(lines[first - 1 : last])


def _require(holds: bool, result: Result, otherwise: str) -> None:
    if not holds:
        raise BrokenPointerError(f"{result.id}: {otherwise}")
