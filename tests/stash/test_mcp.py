"""The MCP server over real standard input and output, asked by the official SDK's client."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from anyio.from_thread import start_blocking_portal
from making import MadeSession
from stash.tampering import damage

from lcc.contract.notes import find_note
from lcc.contract.options import PassOptions, table
from lcc.stash import Stash

pytest.importorskip("mcp", reason="the MCP server is an optional extra")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, ImageContent, TextContent

TEXT = "".join(f"line {number} of the output\n" for number in range(1, 3001))
BUILD = TEXT.replace("output", "build")
"""What nothing but the session puts in the stash."""
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
Ask = Callable[[Client], Awaitable[None]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def stash(home: Path) -> Stash:
    return Stash(home / "stash", "s")


@pytest.fixture(scope="module")
def ask(home: Path) -> Iterator[Callable[[Ask], None]]:
    """Runs questions against one server process for all of them, with a home and a stash of its own."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("LCC_", "CLAUDE_", "XDG_"))}
    environment |= {"HOME": str(home), "LCC_STASH_DIR": str(home / "stash")}
    server = StdioServerParameters(
        command=sys.executable, args=["-c", "from lcc.cli import main; main(['mcp'])"], env=environment
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server, read_timeout_seconds=60)) as client,
    ):
        yield lambda questions: portal.call(questions, client)


def texts(result: CallToolResult) -> list[str]:
    assert not result.is_error, result.content
    return [block.text for block in result.content if isinstance(block, TextContent)]


def error(result: CallToolResult) -> str:
    assert result.is_error
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def session_file(folder: Path) -> Path:
    """A payload with one large old output and enough after it."""
    session = MadeSession("Make the build pass")
    session.bash("make -j all", BUILD, id="toolu_1")
    session.talk(60)
    path = folder / "transcript.json"
    path.write_bytes(session.raw())
    return path


def test_the_tools_are_described_well_enough_to_be_used(ask: Callable[[Ask], None]) -> None:
    """Three tools; recall's description shows the note as it stands; every parameter is described."""

    async def questions(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"recall", "compact_transcript", "explain"}
        assert find_note("[removed: 812 tokens · lcc recall 0123456789ab]") is not None
        assert "[removed: 812 tokens · lcc recall 0123456789ab]" in (tools["recall"].description or "")
        for tool in tools.values():
            for name, schema in tool.input_schema["properties"].items():
                assert schema.get("description"), (tool.name, name)
        assert tools["recall"].input_schema["required"] == ["id"]

    ask(questions)


def test_recall_gives_every_byte_page_by_page(ask: Callable[[Ask], None], stash: Stash) -> None:
    """Following the named offsets puts the output together; lines and grep give a part."""
    sha = stash.put(TEXT.encode()).sha256

    async def questions(client: Client) -> None:
        got, offset = "", 0
        for _ in range(20):
            blocks = texts(await client.call_tool("recall", {"id": sha[:12], "offset": offset}))
            assert len(blocks[0]) <= 16_000
            got += blocks[0]
            if "offset=" not in blocks[-1]:
                break
            offset = int(blocks[-1].split("offset=")[1].rstrip("]"))
        assert got == TEXT
        lines = texts(await client.call_tool("recall", {"id": sha[:12], "lines": "5-6"}))
        note = f"[removed: 812 tokens · lcc recall {sha[:12]}]"
        assert texts(await client.call_tool("recall", {"id": note, "lines": "5-6"})) == lines
        assert lines == ["line 5 of the output\nline 6 of the output"]
        found = texts(await client.call_tool("recall", {"id": sha[:12], "grep": "line 299[89]"}))
        assert found == ["2998:line 2998 of the output\n2999:line 2999 of the output"]

    ask(questions)


def test_recall_gives_an_image_as_an_image(ask: Callable[[Ask], None], stash: Stash) -> None:
    """With its type and its bytes."""
    sha = stash.put(PNG).sha256

    async def questions(client: Client) -> None:
        (block,) = (await client.call_tool("recall", {"id": sha[:12]})).content
        assert isinstance(block, ImageContent)
        assert (block.mime_type, base64.b64decode(block.data)) == ("image/png", PNG)

    ask(questions)


def test_errors_say_what_to_do(ask: Callable[[Ask], None], stash: Stash) -> None:
    """Unknown and damaged objects, parts that are not there, arguments out of range; the server lives on."""
    whole, damaged = stash.put(TEXT.encode()).sha256, stash.put(b"damaged").sha256
    binary = stash.put(b"\xff\xfe\x00").sha256
    damage(stash, damaged)

    async def questions(client: Client) -> None:
        cases: list[tuple[dict[str, object], str]] = [
            ({"id": "0" * 12}, "no object"),
            ({"id": damaged}, "damaged"),
            ({"id": binary}, "-o FILE"),
            ({"id": whole, "lines": "9000-"}, "3001 lines"),
            ({"id": whole, "lines": "x"}, "a-b"),
            ({"id": whole, "grep": "("}, "no regular expression"),
            ({"id": whole, "offset": 10**8}, "counted from 0"),
            ({"id": whole, "limit": 10**9}, "limit"),
            ({"id": "short"}, "id"),
            ({}, "id"),
        ]
        for arguments, said in cases:
            assert said in error(await client.call_tool("recall", arguments))
        assert texts(await client.call_tool("recall", {"id": whole, "lines": "1"})) == ["line 1 of the output"]

    ask(questions)


def test_compacting_recalling_and_explaining_a_session(
    ask: Callable[[Ask], None], stash: Stash, tmp_path: Path
) -> None:
    """The agent compacts a file, follows the note, and reads why; without an output nothing is written."""
    path = session_file(tmp_path)
    before = path.read_bytes()
    out, report = tmp_path / "out.json", tmp_path / "report.json"
    stored = {entry.sha256 for entry in stash.entries()}

    async def questions(client: Client) -> None:
        asked: dict[str, object] = {"path": str(path), "rules_mode": "stashed"}
        (dry,) = texts(await client.call_tool("compact_transcript", asked))
        assert json.loads(dry)["tool_calls_stashed"] == 1
        assert {entry.sha256 for entry in stash.entries()} == stored

        asked |= {"output": str(out), "report": str(report)}
        (figures,) = texts(await client.call_tool("compact_transcript", asked))
        assert json.loads(figures)["written"] == [str(report), str(out)]
        note = find_note(json.loads(out.read_text())["messages"][2]["toolResults"][0]["text"])
        assert note is not None
        (first, *_) = texts(await client.call_tool("recall", {"id": note.target}))
        assert BUILD.startswith(first)
        (why,) = texts(await client.call_tool("explain", {"path": str(report)}))
        assert "stashed" in why

        assert "there is such a file" in error(await client.call_tool("compact_transcript", asked))
        (tmp_path / "broken.json").write_text('{"messages": [')
        assert "line 1" in error(await client.call_tool("compact_transcript", {"path": str(tmp_path / "broken.json")}))
        assert "no such file" in error(await client.call_tool("compact_transcript", {"path": str(tmp_path / "none")}))
        assert "not a report" in error(await client.call_tool("explain", {"path": str(path)}))

    ask(questions)
    assert path.read_bytes() == before


@pytest.mark.parametrize("written", [("output",), ("report",), ("output", "report")])
def test_each_named_file_gets_what_its_name_says(
    ask: Callable[[Ask], None], tmp_path: Path, written: tuple[str, ...]
) -> None:
    """The session in output, the report in report, in any combination."""
    path = session_file(tmp_path)

    async def questions(client: Client) -> None:
        asked: dict[str, object] = {"path": str(path)} | {name: str(tmp_path / name) for name in written}
        texts(await client.call_tool("compact_transcript", asked))

    ask(questions)
    for name in written:
        found = json.loads((tmp_path / name).read_text())
        assert ("messages" in found) == (name == "output")
        assert ("decisions" in found) == (name == "report")


def test_what_cannot_be_done_is_refused_before_anything_is_written(ask: Callable[[Ask], None], tmp_path: Path) -> None:
    """Arguments nobody knows, one file for two, a folder that is not there, no session or two."""
    path, out = session_file(tmp_path), tmp_path / "out.json"
    link = tmp_path / "link"
    link.symlink_to(tmp_path)

    async def questions(client: Client) -> None:
        cases: list[tuple[dict[str, object], str]] = [
            ({"path": str(path), "rule_mode": "lossless"}, "rule_mode"),
            ({"path": str(path), "output": str(out), "report": str(out)}, "file of output"),
            ({"path": str(path), "output": str(out), "report": str(link / "out.json")}, "file of output"),
            (
                {"path": str(path), "rules_mode": "recoverable", "workspace_root": str(tmp_path / "gone")},
                "no such folder",
            ),
            ({}, "path or messages"),
            ({"path": str(path), "messages": []}, "path or messages"),
            ({"messages": [{"role": 7}]}, "role"),
        ]
        for arguments, said in cases:
            assert said in error(await client.call_tool("compact_transcript", arguments))
        assert "idd" in error(await client.call_tool("recall", {"idd": "0" * 12, "id": "0" * 12}))
        for tool in (await client.list_tools()).tools:
            assert tool.input_schema["additionalProperties"] is False

    ask(questions)
    assert not out.exists()


def test_a_conversation_that_does_not_fit_a_judge_is_a_tool_error(ask: Callable[[Ask], None], tmp_path: Path) -> None:
    """The figures and the way out, not a crash of the server."""
    session = MadeSession("word " * 60_000)
    for number in range(12):
        session.bash(f"make part-{number}", "built\n" * 20)
    path = tmp_path / "long.json"
    path.write_bytes(session.raw())

    async def questions(client: Client) -> None:
        said = error(await client.call_tool("compact_transcript", {"path": str(path), "provider": "laya"}))
        assert "--max-state-tokens" in said or "cannot be shown" in said

    ask(questions)


def test_messages_go_in_and_come_out(ask: Callable[[Ask], None], tmp_path: Path) -> None:
    """Messages in place of a path: the answer has them compacted, and the note's output can be recalled."""
    messages = json.loads(session_file(tmp_path).read_bytes())["messages"]

    async def questions(client: Client) -> None:
        (answer,) = texts(await client.call_tool("compact_transcript", {"messages": messages, "rules_mode": "stashed"}))
        compacted = json.loads(answer)["messages"]
        assert len(compacted) == len(messages)
        note = find_note(compacted[2]["toolResults"][0]["text"])
        assert note is not None
        (first, *_) = texts(await client.call_tool("recall", {"id": note.target}))
        assert BUILD.startswith(first)
        out = tmp_path / "out.json"
        (answer,) = texts(await client.call_tool("compact_transcript", {"messages": messages, "output": str(out)}))
        assert "messages" not in json.loads(answer)
        assert len(json.loads(out.read_bytes())["messages"]) == len(messages)

    ask(questions)


def test_the_server_tells_its_version(ask: Callable[[Ask], None]) -> None:
    """That of the package, not of the SDK."""
    from importlib.metadata import version

    async def questions(client: Client) -> None:
        assert client.server_info.version == version("lcc-claude-code")

    ask(questions)


def test_a_cancelled_call_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gave up while the pass ran: no file gets its name behind its back."""
    import threading

    from lcc.compaction import compact as room
    from lcc.mcp.server import compact_transcript

    path, out = session_file(tmp_path), tmp_path / "out.json"
    running, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    whole = room.compact

    def slow(*arguments: object, **named: object) -> object:
        running.set()
        go_on.wait(10)
        try:
            return whole(*arguments, **named)  # type: ignore[arg-type]
        finally:
            ended.set()

    monkeypatch.setattr(room, "compact", slow)

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            values = {row.name: row.default for row in table(PassOptions).values() if row.option.in_mcp}
            values["provider"] = "rules"
            group.start_soon(lambda: compact_transcript(path=str(path), output=str(out), **values))
            await anyio.to_thread.run_sync(running.wait, 10)
            group.cancel_scope.cancel()

    anyio.run(cancelled)
    go_on.set()
    assert ended.wait(10)
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(0.5)
    assert not out.exists()
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == []
