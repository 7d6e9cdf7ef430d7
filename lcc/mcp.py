"""The MCP server: `recall`, `compact_transcript` and `explain` for the agent itself, on the official SDK.

Errors are tool errors whose text says what to do next. Every answer has a limit, so that it never fills the
context that a compaction has just freed. Needs the optional extra ``mcp``.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import orjson
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, ContentBlock, TextContent, ToolAnnotations
from pydantic import Field

from lcc.commands.files import InputError, OutputFile, WriteError, read_input
from lcc.compaction.workspace import with_session_root
from lcc.recovery.recall import MAX_PAGE_CHARS, PAGE_CHARS, Part, RecallError, page_of, parse_lines
from lcc.recovery.recall import recall as fetch
from lcc.stash import Stash, StashError, stash_folder

if TYPE_CHECKING:
    from lcc.contract.report import Report
    from lcc.relevance import TranscriptCompactionRequest, TranscriptCompactionResult

MAX_TRANSCRIPT_BYTES = 256 * 1024 * 1024
MAX_REPORT_BYTES = 256 * 1024 * 1024
MAX_IMAGE_BYTES = 3_500_000
"""An image block above 5 MB of base64 is refused by the Messages API."""

INSTRUCTIONS = (
    "Where a tool result in this conversation reads [removed: N tokens · lcc recall ID], lcc moved the exact "
    "output to a local stash to free context. Nothing is lost: call recall with that ID when you need it, and "
    "prefer lines or grep over the whole."
)

RulesMode = Literal["lossless", "recoverable", "stashed", "lossy"]
Provider = Literal["rules", "jev", "laya", "auto"]


def build_server() -> MCPServer[object]:
    """The server with its three tools; `run()` it to serve standard input and output."""
    server: MCPServer[object] = MCPServer("lcc", instructions=INSTRUCTIONS)
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    writes = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    server.tool(title="Get a removed output back", annotations=reads, structured_output=False)(recall)
    server.tool(title="Compact a session file", annotations=writes, structured_output=False)(compact_transcript)
    server.tool(title="Explain a compaction", annotations=reads, structured_output=False)(explain)
    return server


def recall(
    id: Annotated[
        str, Field(description="The 12 hex digits of the note (or more of the sha256).", min_length=12, max_length=64)
    ],
    lines: Annotated[
        str | None, Field(description='Only these lines, counted from 1: "120-180", "120-" or "120".')
    ] = None,
    grep: Annotated[
        str | None,
        Field(description="Only the lines that match this regular expression, each as number:line.", max_length=1000),
    ] = None,
    offset: Annotated[int, Field(description="Begin at this character; the previous page named it.", ge=0)] = 0,
    limit: Annotated[int, Field(description="Characters to return at most.", ge=1, le=MAX_PAGE_CHARS)] = PAGE_CHARS,
) -> CallToolResult:
    """Get back the exact output behind a note "[removed: 812 tokens · lcc recall 0123456789ab]".

    Use it when you need what such a tool result said. Nothing was summarised: you get the original bytes.
    Large outputs come in pages; ask for lines or grep when you know what you are looking for.
    """
    try:
        found = fetch(Stash(stash_folder()), id)
        if found.image:
            return _image(found.sha256, found.content, found.image)
        if found.text is None:
            raise ToolError(f"{id} holds {len(found.content)} bytes that are no text: run lcc recall {id} -o FILE")
        part = Part(parse_lines(lines) if lines else None, grep, offset)
        page = page_of(found.text, part, limit)
    except (StashError, RecallError) as error:
        raise ToolError(str(error)) from None
    except OSError as error:
        raise ToolError(f"the stash cannot be read: {error}") from None
    blocks: list[ContentBlock] = [_text(page.text)]
    if page.next is not None:
        said = f"characters {page.start}-{page.end} of {page.total}; for the next page add offset={page.next}"
        blocks.append(_text(f"[{said}]"))
    elif page.start:
        blocks.append(_text(f"[characters {page.start}-{page.end} of {page.total}; this is the end]"))
    return CallToolResult(content=blocks)


def compact_transcript(
    path: Annotated[
        str,
        Field(description="The session file: Claude Code or Codex JSONL, or a JSON transcript. It is only read."),
    ],
    output: Annotated[
        str | None, Field(description="Where to write the compacted session; a file that is not there yet.")
    ] = None,
    report: Annotated[
        str | None, Field(description="Where to write the report (for explain); a file that is not there yet.")
    ] = None,
    question: Annotated[str, Field(description="What the session is about, to keep what it names.")] = "",
    provider: Annotated[Provider, Field(description="rules works offline; the others ask a judge.")] = "rules",
    rules_mode: Annotated[
        RulesMode,
        Field(
            description="lossless: repeats. recoverable: also file reads. stashed: also old outputs, kept for recall."
        ),
    ] = "lossless",
    workspace_root: Annotated[
        str | None, Field(description="The folder that the session worked in; its own if not given.")
    ] = None,
    preserve_recent: Annotated[int, Field(description="Newest messages that stay untouched.", ge=0)] = 6,
    min_reduction: Annotated[float, Field(description="The share that makes it worth it.", ge=0, le=1)] = 0.25,
    threshold: Annotated[float, Field(description="A judge's threshold.", ge=0, le=1)] = 0.5,
    disk_check: Annotated[bool, Field(description="Prove file reads on disk.")] = True,
    allow_command_pointers: Annotated[
        bool, Field(description="Also point at read-only commands to run again.")
    ] = False,
) -> CallToolResult:
    """Remove from a session file the tool outputs that can be had back, and say what that frees.

    Without output nothing is written (a dry run): you get the figures alone. Texts and calls are never changed.
    """
    from lcc.relevance import RequestError, TranscriptCompactionRequest, TranscriptError

    files = _Files(_new_file(output, "output"), _new_file(report, "report"))
    try:
        request = TranscriptCompactionRequest(
            payload=None,
            question=question,
            provider=provider,
            rules_mode=rules_mode,
            workspace_root=workspace_root,
            preserve_recent=preserve_recent,
            min_reduction=min_reduction,
            threshold=threshold,
            disk_check=disk_check,
            allow_command_pointers=allow_command_pointers,
        )
        figures = _compact(path, request, files)
    except (InputError, WriteError, RequestError, TranscriptError) as error:
        raise ToolError(str(error)) from None
    return CallToolResult(content=[_text(figures)])


def explain(
    path: Annotated[str, Field(description="A report that compact_transcript or lcc compact -r wrote.")],
    limit: Annotated[int, Field(description="Calls to list at most in each list.", ge=0, le=50)] = 10,
) -> CallToolResult:
    """Say from a report why every tool output was kept, replaced, deduplicated, trimmed or dropped."""
    from lcc.explain.grouped import ReportError, read_report
    from lcc.explain.grouped import explain as explained

    try:
        found = read_report(read_input(_named(path), MAX_REPORT_BYTES))
    except InputError as error:
        raise ToolError(str(error)) from None
    except ReportError as error:
        raise ToolError(f"{path} is not a report of lcc: {error}") from None
    written = orjson.dumps(explained(found, limit).as_json()).decode()
    if len(written) > MAX_PAGE_CHARS:
        raise ToolError(f"the explanation is {len(written)} characters; ask for a smaller limit than {limit}")
    return CallToolResult(content=[_text(written)])


class _Files(NamedTuple):
    output: OutputFile | None
    report: OutputFile | None

    def write(self, result: TranscriptCompactionResult) -> Report:
        from lcc.transcript import render

        if self.output:
            self.output.write(render(result.transcript, result.edits))
        if self.report:
            self.report.write(orjson.dumps(result.report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        return result.report

    def commit(self) -> list[str]:
        """Give the files their names, the report first; the names."""
        there = [file for file in (self.report, self.output) if file]
        for file in there:
            file.commit()
        return [file.name for file in there]


def _compact(path: str, request: TranscriptCompactionRequest, files: _Files) -> str:
    from lcc.relevance import run_pass
    from lcc.relevance.context import PassContext
    from lcc.stash import UNNAMED_SESSION
    from lcc.transcript import read_transcript

    transcript = read_transcript(read_input(_named(path), MAX_TRANSCRIPT_BYTES), name=path)
    request, origin = with_session_root(request, transcript)
    source = str(files.output.path) if files.output else None
    stash = Stash(stash_folder(), transcript.session_id or UNNAMED_SESSION, source)
    context = PassContext(stash=stash, dry_run=files.output is None, workspace_root_source=origin)
    with contextlib.ExitStack() as unwritten:
        for file in filter(None, files):
            unwritten.enter_context(file)
        report = run_pass(transcript, request, files.write, context)
        return _figures(report, files.commit())


_FIGURES = (
    "rules_mode semantic_guarantee chars_before chars_after reduction_ratio worth_it tokens_before tokens_after "
    "token_count_method tool_calls_total tool_calls_kept tool_calls_deduped tool_calls_replaced tool_calls_stashed "
    "tool_calls_trimmed tool_calls_dropped degraded degradation_reason warnings"
).split()


def _figures(report: Report, written: list[str]) -> str:
    facts = {key: report.get(key) for key in _FIGURES}
    facts["written"] = list(written) or "nothing: give output and report to write files"
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


def _image(sha256: str, content: bytes, kind: str) -> CallToolResult:
    if len(content) > MAX_IMAGE_BYTES:
        raise ToolError(
            f"the image has {len(content)} bytes, too many for one answer: run lcc recall {sha256[:12]} -o FILE"
        )
    return CallToolResult(content=[Image(data=content, format=kind).to_image_content()])


def _text(text: str) -> TextContent:
    # A lone surrogate cannot be sent as JSON; lcc recall --raw gives it exactly.
    return TextContent(type="text", text=text.encode("utf-8", "replace").decode())
