"""Draws `scripts/sample/before-after.svg`: the sample session before and after one recoverable pass.

Usage: .venv/bin/python scripts/make_picture.py [--page] [FILE]

Both bars have one scale, and every block is as wide as its text is long. --page makes `scripts/sample/page.png`
instead, with Chromium: the page of `lcc explain --html` for that pass.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import orjson
from demo import ROOT_IN_SAMPLE, SAMPLE, lay_out

from lcc.contract.record import input_chars
from lcc.explain.html import page
from lcc.relevance import TranscriptCompactionRequest, TranscriptCompactionResult
from lcc.relevance.transcript import run_pass
from lcc.transcript import Message, read_transcript

WIDTH, BAR, LEFT = 900, 54, 20
TOPS = {"before": 62, "after": 160}
STYLE = """
text { font: 14px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #22262b; }
.small { font-size: 12px; fill: #656b73; }
.inside { font-size: 11px; fill: #ffffff; }
.ground { fill: #faf9f6; }
.words { fill: #c9a063; } .kept { fill: #8c96a1; } .gone { fill: #5fae92; } .pointer { fill: #1f7f5c; }
@media (prefers-color-scheme: dark) {
  text { fill: #e7e5e0; } .small { fill: #9da3aa; } .ground { fill: #15171a; } .inside { fill: #15171a; }
  .words { fill: #b8935a; } .kept { fill: #7b858f; } .gone { fill: #4b9a7e; } .pointer { fill: #5cc29b; }
}
"""


class Block(NamedTuple):
    """A run of text in the session: its characters, its class in the style, and what it is."""

    chars: int
    kind: str
    name: str = ""


class Picture(NamedTuple):
    before: list[Block]
    after: list[Block]


def compact(folder: Path) -> TranscriptCompactionResult:
    """One recoverable pass over the sample session, laid out in ``folder``."""
    transcript = read_transcript(lay_out(folder).read_bytes())
    request = TranscriptCompactionRequest(
        None,
        question="Mend the yearly total and add a column",
        provider="rules",
        rules_mode="recoverable",
        workspace_root=transcript.cwd,
    )
    return run_pass(transcript, request, lambda found: found)


def measure() -> Picture:
    """The blocks of the sample session, as if it lay where it says."""
    with tempfile.TemporaryDirectory() as folder:
        result = compact(Path(folder))
        transcript = result.transcript
        names = {use.id: Path(str(use.input["file_path"])).name for m in transcript.messages for use in m.tool_uses
                 if isinstance(use.input, dict) and "file_path" in use.input}  # fmt: skip
        here = str(transcript.cwd)
        before = list(_blocks(transcript.messages, set(result.edits.texts), names, "gone", here))
        after = list(_blocks(result.messages, set(result.edits.texts), {}, "pointer", here))
    return Picture(before, after)


def _blocks(
    messages: tuple[Message, ...], changed: set[str], names: dict[str, str], kind: str, here: str
) -> Iterator[Block]:
    def length(text: str) -> int:
        return len(text.replace(here, ROOT_IN_SAMPLE))

    for message in messages:
        words = length(message.text) + sum(input_chars(use.input) for use in message.tool_uses)
        if words:
            yield Block(words, "words")
        for result in message.tool_results:
            edited = result.tool_use_id in changed
            yield Block(length(result.text), kind if edited else "kept", names.get(result.tool_use_id, ""))


def draw(picture: Picture) -> str:
    total = sum(block.chars for block in picture.before)
    left = sum(block.chars for block in picture.after)
    scale = (WIDTH - 2 * LEFT) / total
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 268" role="img" '
        f'aria-label="The sample session before and after: {100 * (total - left) / total:.0f} % removed">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="268" rx="12"/>',
        f'<text x="{LEFT}" y="36">Before</text>',
        f'<text class="small" x="{LEFT + 56}" y="36">the whole session</text>',
        f'<text x="{LEFT}" y="{TOPS["after"] - 14}">After</text>',
        f'<text class="small" x="{LEFT + 56}" y="{TOPS["after"] - 14}">'
        f"{100 * (total - left) / total:.0f} % removed; each green line is a note: where it is had back</text>",
        *_bar(picture.before, TOPS["before"] - 14, scale),
        *_bar(picture.after, TOPS["after"], scale),
        *_legend(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _bar(blocks: list[Block], top: int, scale: float) -> Iterator[str]:
    x = float(LEFT)
    for block in blocks:
        wide = block.chars * scale
        yield (
            f'<rect class="{block.kind}" x="{x:.1f}" y="{top}" width="{max(wide - 0.6, 0.6):.1f}" '
            f'height="{BAR}" rx="1"/>'
        )
        if block.kind == "gone" and wide > 6.1 * len(block.name) + 4:
            yield f'<text class="inside" x="{x + 5:.1f}" y="{top + BAR / 2 + 4:.0f}">{escape(block.name)}</text>'
        x += wide


def _legend() -> Iterator[str]:
    x = LEFT
    for kind, words in (
        ("words", "words of the user and the assistant, and calls"),
        ("kept", "results that stay"),
        ("gone", "results that can be had back"),
        ("pointer", "notes"),
    ):
        yield f'<rect class="{kind}" x="{x}" y="238" width="12" height="12" rx="3"/>'
        yield f'<text class="small" x="{x + 18}" y="248">{words}</text>'
        x += 40 + int(6.3 * len(words))


def photograph(target: Path) -> None:
    """The page of that pass, as Chromium shows it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = compact(folder)
        written = orjson.dumps(result.report).decode().replace(str(result.transcript.cwd), ROOT_IN_SAMPLE)
        (folder / "page.html").write_text(page(orjson.loads(written)))
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars"
        subprocess.run(
            ["chromium", *flags.split(), f"--user-data-dir={folder / 'profile'}", "--window-size=1200,1020",
             f"--screenshot={target.absolute()}", (folder / "page.html").as_uri()],
            check=True, stderr=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["--page"]:
        photograph(Path(words[1]) if len(words) > 1 else SAMPLE / "page.png")
    else:
        target = Path(words[0]) if words else SAMPLE / "before-after.svg"
        target.write_text(draw(measure()))


if __name__ == "__main__":
    main()
