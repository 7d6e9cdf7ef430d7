"""The MCP server: `recall`, `compact_transcript` and `explain` for the agent itself, on the official SDK.

Errors are tool errors whose text says what to do next. Every answer has a limit, so that it never fills the
context that a compaction has just freed. Needs the optional extra ``mcp``.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio
import anyio.to_thread
import orjson
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from lcc.commands.files import InputError, OutputFile, WriteError, read_input
from lcc.contract.options import PassOptions, RequestError, Row, table
from lcc.log.lines import LogError
from lcc.log.recalls import Recall, asking_session, note_recall, recalls_path
from lcc.recovery.asked import Asked, give
from lcc.recovery.recall import MAX_PAGE_CHARS, PAGE_CHARS, Part, RecallError, id_in, parse_lines
from lcc.stash import Stash, StashFolderError, stash_folder
from lcc.version import our_version

if TYPE_CHECKING:
    from lcc.compaction.compact import Compacted
    from lcc.contract.report import Report

MAX_TRANSCRIPT_BYTES = 256 * 1024 * 1024
MAX_MESSAGES_CHARS = 400_000
"""Compacted messages above this go into a file, and not into the agent's context."""
MAX_REPORT_BYTES = 256 * 1024 * 1024

INSTRUCTIONS = (
    "Where a tool result in this conversation reads [removed: N tokens · lcc recall ID], lcc moved the exact "
    "output to a local stash to free context. Nothing is lost: call recall with that ID when you need it, and "
    "prefer lines or grep over the whole."
)


def _takes_options(tool: Callable[..., Awaitable[CallToolResult]]) -> Callable[..., Awaitable[CallToolResult]]:
    """Give a tool the fields of the options that MCP may set, in place of its parameter ``given``."""
    rows = [row for row in table(PassOptions).values() if row.option.in_mcp]
    signature = inspect.signature(tool, eval_str=True)

    async def run(**values: object) -> CallToolResult:
        return await tool(given={row.name: values.pop(row.name) for row in rows}, **values)

    own = [parameter for name, parameter in signature.parameters.items() if name != "given"]
    run.__name__, run.__doc__, run.__module__ = tool.__name__, tool.__doc__, tool.__module__
    run.__signature__ = signature.replace(parameters=[*own, *map(_field, rows)])  # type: ignore[attr-defined]
    return run


def _field(row: Row) -> inspect.Parameter:
    option = row.option
    # Nothing is taken for another type: true is no number.
    strict = True if row.kind in ("switch", "whole", "number") else None
    about = Field(description=option.help, ge=option.low, le=option.high, strict=strict)
    return inspect.Parameter(
        row.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=row.default if option.mcp_default is None else option.mcp_default,
        annotation=Annotated[row.hint, about],
    )


def build_server() -> MCPServer[object]:
    """The server with its three tools; `run()` it to serve standard input and output."""
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    writes = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    tools = [
        _tool(recall, "Get a removed output back", reads),
        _tool(compact_transcript, "Compact a session", writes),
        _tool(explain, "Explain a compaction", reads),
    ]
    return MCPServer("lcc", instructions=INSTRUCTIONS, version=our_version(), tools=tools)


def _tool(function: Callable[..., object], title: str, annotations: ToolAnnotations) -> Tool:
    """A tool that refuses arguments that it does not have: a misspelt option is no default."""
    tool = Tool.from_function(function, title=title, annotations=annotations, structured_output=False)
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters["additionalProperties"] = False
    return tool


def recall(
    id: Annotated[
        str, Field(description="The 12 hex digits of the note (or more of the sha256).", min_length=12, max_length=64)
    ],
    lines: Annotated[
        str | None, Field(description='Only these lines, counted from 1: "120-180", "120-" or "120".')
    ] = None,
    grep: Annotated[
        str | None,
        Field(
            description="Only the lines that hold this text or match this expression, as number:line.",
            max_length=1000,
        ),
    ] = None,
    offset: Annotated[int, Field(description="Begin at this character; the previous page named it.", ge=0)] = 0,
    limit: Annotated[int, Field(description="Characters to return at most.", ge=1, le=MAX_PAGE_CHARS)] = PAGE_CHARS,
) -> CallToolResult:
    """Get back the exact output behind a note "[removed: 812 tokens · lcc recall 0123456789ab]".

    Use it when you need what such a tool result said. Nothing was summarised: you get the original bytes.
    Large outputs come in pages; ask for lines or grep when you know what you are looking for.
    """
    try:
        part = Part(parse_lines(lines) if lines else None, grep, offset)
        given = give(Stash(stash_folder()), Asked(id_in(id), part, limit))
    except (RecallError, StashFolderError) as error:
        raise ToolError(str(error)) from None
    with contextlib.suppress(LogError):
        recalled = Recall(asking_session(), given.sha256[:12], given.given_bytes, given.of_bytes, "mcp")
        note_recall(recalled, recalls_path(os.environ))
    if given.image:
        return CallToolResult(content=[Image(data=given.image, format=given.image_type).to_image_content()])
    return CallToolResult(content=[_text(text) for text in (given.text, given.about) if text])


@_takes_options
async def compact_transcript(
    given: Mapping[str, object],
    path: Annotated[
        str | None,
        Field(description="The session file: Claude Code or Codex JSONL, or a JSON transcript. It is only read."),
    ] = None,
    messages: Annotated[
        list[dict[str, object]] | None,
        Field(description="In place of path: the messages themselves; the answer holds them compacted."),
    ] = None,
    output: Annotated[
        str | None, Field(description="Where to write the compacted session; a file that is not there yet.")
    ] = None,
    report: Annotated[
        str | None, Field(description="Where to write the report (for explain); a file that is not there yet.")
    ] = None,
) -> CallToolResult:
    """Remove from a session the tool outputs that can be had back, and say what that frees.

    Give path or messages. With path and without output nothing is written (a dry run): you get the figures alone.
    Texts are never changed. With provider rules, calls are not either, and all but rules_mode lossy is proven. Any
    other provider asks a judge: what it says is not needed any more is removed with its call, or cut, and a removal
    without a note cannot be had back.
    """
    files = _Files(_new_file(output, "output"), _new_file(report, "report"))
    if files.output and files.report and files.output.same_as(files.report.path):
        raise ToolError(f"report {report}: that is the file of output; name another one")
    given_up = threading.Event()

    def run() -> str:
        return _compact(_input(path, messages), given, files, messages is not None, given_up)

    try:
        figures = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        given_up.set()
        raise
    return CallToolResult(content=[_text(figures)])


def explain(
    path: Annotated[str, Field(description="A report that compact_transcript or lcc compact -r wrote.")],
    limit: Annotated[int, Field(description="The most calls to show in each list.", ge=0, le=50)] = 10,
) -> CallToolResult:
    """Say from a report why every tool output was kept, replaced, deduplicated, trimmed or dropped."""
    from lcc.contract.report_reader import ReportError, read_report
    from lcc.explain.grouped import explain as explained

    try:
        found = read_report(read_input(_named(path), MAX_REPORT_BYTES))
    except InputError as error:
        raise ToolError(str(error)) from None
    except ReportError as error:
        raise ToolError(f"{path} is not a report of lcc: {error}") from None
    written = json.dumps(explained(found, limit).as_json(), ensure_ascii=False, separators=(",", ":"))
    if len(written) > MAX_PAGE_CHARS:
        raise ToolError(f"the explanation is {len(written)} characters; ask for a smaller limit than {limit}")
    return CallToolResult(content=[_text(written)])


class _Files(NamedTuple):
    output: OutputFile | None
    report: OutputFile | None

    def write(self, compacted: Compacted) -> None:
        """Writes both beside their places, in place of what an earlier call wrote there."""
        if self.output and compacted.content is not None:
            self.output.write(compacted.content)
        if self.report:
            option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
            self.report.write(orjson.dumps(compacted.report, option=option))

    def commit(self) -> list[str]:
        """Give the files their names, the report first; the names."""
        there = [file for file in (self.report, self.output) if file]
        for file in there:
            file.commit()
        return [file.name for file in there]


class _Input(NamedTuple):
    name: str
    raw: bytes


def _input(path: str | None, messages: Sequence[Mapping[str, object]] | None) -> _Input:
    if (path is None) == (messages is None):
        raise ToolError("give either path or messages")
    try:
        if path is not None:
            return _Input(path, read_input(_named(path), MAX_TRANSCRIPT_BYTES))
        return _Input("messages", orjson.dumps({"messages": messages}))
    except (InputError, TypeError) as error:
        raise ToolError(str(error)) from None


def _compact(
    source: _Input, given: Mapping[str, object], files: _Files, returned: bool, given_up: threading.Event
) -> str:
    """One pass, in a thread of its own; nothing gets its name once the caller has given up."""
    from lcc.compaction.compact import CompactionError, compact
    from lcc.relevance import TranscriptError
    from lcc.relevance.ports import Ports
    from lcc.transcript import read_transcript

    values: dict[str, Any] = dict(given)
    try:
        options = PassOptions(**values)
        root = options.workspace_root
        if root is not None and not os.path.isdir(root):
            raise ToolError(f"workspace_root {root}: there is no such folder")
        transcript = read_transcript(source.raw, name=source.name)
        writes = returned or files.output is not None
        ports = Ports(dry_run=not writes, stash_source=str(files.output.path) if files.output else None)
        with contextlib.ExitStack() as unwritten:
            for file in filter(None, files):
                unwritten.enter_context(file)
            compacted = compact(transcript, options, ports, stage=files.write)
            shown = _messages(compacted) if returned and files.output is None else None
            if given_up.is_set():
                raise ToolError("cancelled: nothing was written")
            return _figures(compacted.report, files.commit(), shown)
    except (InputError, WriteError, RequestError, TranscriptError, CompactionError, StashFolderError) as error:
        raise ToolError(str(error)) from None


def _messages(compacted: Compacted) -> object:
    """The compacted messages for the answer, as they were given."""
    content = compacted.content or b""
    if len(content) > MAX_MESSAGES_CHARS:
        raise ToolError(f"the compacted messages are {len(content)} bytes, too many for one answer: name an output")
    return orjson.loads(content)["messages"]


_FIGURES = (
    "rules_mode semantic_guarantee chars_before chars_after reduction_ratio worth_it tokens_before tokens_after "
    "token_count_method tool_calls_total tool_calls_kept tool_calls_deduped tool_calls_replaced tool_calls_stashed "
    "tool_calls_trimmed tool_calls_dropped degraded degradation_reason warnings"
).split()


def _figures(report: Report, written: list[str], messages: object) -> str:
    facts = {key: value for key, value in report.items() if key in _FIGURES}
    facts["written"] = list(written) or "nothing: give output and report to write files"
    if messages is not None:
        facts["messages"] = messages
    return orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode()


def _new_file(name: str | None, option: str) -> OutputFile | None:
    """A file to write that is not there yet: a tool that an agent calls replaces nothing."""
    if name is None:
        return None
    try:
        target = OutputFile(_named(name), option)
    except InputError as error:
        raise ToolError(str(error)) from None
    if target.path.exists():
        raise ToolError(f"{option} {name}: there is such a file already; name another one")
    return target


def _named(name: str) -> str:
    if name == "-" or not name:
        raise ToolError("name a file; standard input and output are not to be had here")
    return str(Path(name).expanduser())


def _text(text: str) -> TextContent:
    # A lone surrogate cannot be sent as JSON; lcc recall --raw gives it exactly.
    return TextContent(type="text", text=text.encode("utf-8", "replace").decode())
