"""Recall: the exact bytes, or a page of them; and the commands `lcc recall` and `lcc stash`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import programs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stash.tampering import damage, lose

from lcc.contract.notes import stash_note
from lcc.recovery.recall import Part, RecallError, image_type, page_of, parse_lines
from lcc.stash import Stash

TEXT = "".join(f"line {number} of the output\n" for number in range(1, 2001))
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


class TestPages:
    """The pure part."""

    @given(st.text(st.sampled_from("ab\n\r\u2028\x85 ü"), max_size=300), st.integers(1, 50))
    def test_pages_put_together_are_the_whole(self, text: str, limit: int) -> None:
        """Whatever the text and the limit; no page is longer, and none is empty but the only one."""
        pages, offset = [], 0
        while True:
            page = page_of(text, Part(offset=offset), limit)
            assert len(page.text) <= limit
            assert page.text or not text
            pages.append(page.text)
            if page.next is None:
                break
            assert page.next > offset
            offset = page.next
        assert "".join(pages) == text

    def test_a_page_ends_at_a_line_end_when_one_is_near(self) -> None:
        """Lines are not cut, unless one is longer than half a page."""
        assert page_of(TEXT, Part(), 1000).text.endswith("output\n")
        assert len(page_of("x" * 5000, Part(), 1000).text) == 1000

    def test_lines_are_those_of_lf_alone_and_inclusive(self) -> None:
        """CR, NEL and U+2028 end no line."""
        text = "one\r\ntwo\u2028still two\x85still\nthree\n"
        assert page_of(text, Part(lines=(2, 2))).text == "two\u2028still two\x85still"
        assert page_of(text, Part(lines=(1, 3))).text == "one\r\ntwo\u2028still two\x85still\nthree"
        assert page_of(text, Part(lines=(3, None))).text == "three\n"
        assert page_of(text, Part(lines=(3, 99))).text == "three\n"

    def test_grep_shows_each_line_with_its_number(self) -> None:
        """Numbers count from the start of the whole text, also within lines."""
        assert page_of(TEXT, Part(grep="line 7 of")).text == "7:line 7 of the output"
        assert page_of(TEXT, Part(grep=r"line (19|20)\b")).text.splitlines()[0] == "19:line 19 of the output"
        assert page_of(TEXT, Part(lines=(10, 12), grep="line 1[12]")).text == (
            "11:line 11 of the output\n12:line 12 of the output"
        )

    @pytest.mark.parametrize("words", ["get(items[0]", "a[0].b", "f(x)", "what?(", "1 + 1 = 2"])
    def test_words_that_match_as_no_expression_are_found_letter_by_letter(self, words: str) -> None:
        """An agent searches for a piece of code; what it means as an expression matches nothing, or is none."""
        text = f"first\nx = {words}\nlast"
        assert page_of(text, Part(grep=words)).text == f"2:x = {words}"

    @pytest.mark.parametrize(
        ("part", "said"),
        [
            (Part(lines=(5000, 5001)), "2001 lines"),
            (Part(offset=10**7), "counted from 0"),
            (Part(grep="nowhere to be found"), "no line matches"),
            (Part(grep="(unclosed"), "no regular expression"),
        ],
    )
    def test_what_cannot_be_given_is_said_with_the_way_out(self, part: Part, said: str) -> None:
        """Never an empty page without a word."""
        with pytest.raises(RecallError, match=said):
            page_of(TEXT, part)

    def test_an_expression_that_runs_for_ever_is_stopped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exponential search ends with an error."""
        monkeypatch.setattr("lcc.recovery.recall.GREP_SECONDS", 0.5)
        with pytest.raises(RecallError, match="simpler"):
            page_of("a" * 40 + "!", Part(grep="(a+)+$"))

    @pytest.mark.parametrize(
        ("written", "lines"), [("3-7", (3, 7)), ("3-", (3, None)), ("3", (3, 3)), (" 3-3 ", (3, 3))]
    )
    def test_line_ranges_that_are_understood(self, written: str, lines: tuple[int, int | None]) -> None:
        """a-b, a- and a."""
        assert parse_lines(written) == lines

    @pytest.mark.parametrize("written", ["", "0-3", "-3", "3-2", "a-b", "1-2-3", "\u0661-3", "1,2"])
    def test_line_ranges_that_are_refused(self, written: str) -> None:
        """Everything else."""
        with pytest.raises(RecallError):
            parse_lines(written)

    def test_images_are_known_by_their_first_bytes(self) -> None:
        """And text is none."""
        webp = b"RIFF\x00\x00\x00\x00WEBPVP8 "
        assert [image_type(x) for x in (PNG, b"\xff\xd8\xff\xe0", b"GIF89a", webp, b"RIFF0000WAVE", b"plain")] == [
            "png",
            "jpeg",
            "gif",
            "webp",
            None,
            None,
        ]


class Machine:
    """The real program with a home and a stash of its own."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.home.mkdir()
        self.stash = Stash(base / "stash", "s-1", str(self.home / "session.jsonl"))
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("LCC_", "CLAUDE_", "XDG_", "CODEX_"))},
            "HOME": str(self.home),
            "LCC_STASH_DIR": str(self.stash.folder),
            "TMPDIR": str(base),
        }

    def lcc(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        return programs.run("lcc", *arguments, env=self.env, cwd=self.home)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_recall_prints_a_small_object_exactly_and_nothing_else(machine: Machine) -> None:
    """By the note's digits; no newline is added, and stderr is silent."""
    content = "no newline at the end, \ud83d half a pair".encode("utf-8", "surrogatepass")
    sha = machine.stash.put(content).sha256
    done = machine.lcc("recall", sha[:12])
    assert (done.returncode, done.stdout, done.stderr) == (0, content, b"")


def test_recall_pages_a_large_object_and_says_how_to_go_on(machine: Machine) -> None:
    """Following the printed commands gives every byte; --raw and -o give them at once."""
    content = (TEXT * 2).encode()
    sha = machine.stash.put(content).sha256
    done = machine.lcc("recall", sha[:12])
    assert 8_000 < len(done.stdout) <= 16_000
    got = done.stdout
    for _ in range(20):
        said = done.stderr.decode()
        if "next page: " not in said:
            break
        done = machine.lcc(*said.split("next page: lcc ")[1].strip().rstrip("]").split())
        got += done.stdout
    assert got == content
    assert b"this is the end" in done.stderr
    assert machine.lcc("recall", sha, "--raw").stdout == content
    assert machine.lcc("recall", sha, "-o", "out.txt").returncode == 0
    assert (machine.home / "out.txt").read_bytes() == content


def test_recall_gives_lines_and_matches(machine: Machine) -> None:
    """--lines and --grep."""
    sha = machine.stash.put(TEXT.encode()).sha256
    assert machine.lcc("recall", sha, "--lines", "2-3").stdout == b"line 2 of the output\nline 3 of the output"
    assert machine.lcc("recall", sha, "--grep", "line 77 ").stdout == b"77:line 77 of the output"


def test_recall_writes_an_image_to_a_file(machine: Machine) -> None:
    """The printed path holds the image, in a private folder; -o chooses the file."""
    sha = machine.stash.put(PNG).sha256
    done = machine.lcc("recall", sha[:12])
    path = Path(done.stdout.decode().strip())
    assert (path.suffix, path.read_bytes(), path.parent.stat().st_mode & 0o777) == (".png", PNG, 0o700)
    machine.lcc("recall", sha, "-o", "picture.png")
    assert (machine.home / "picture.png").read_bytes() == PNG


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["0" * 12], 2, "no object"),
        (["nonsense"], 2, "12 to 64 hex digits"),
        (["{text}", "--lines", "9-1"], 2, "before the first"),
        (["{text}", "--raw", "--grep", "x"], 2, "leave out"),
        (["{binary}"], 2, "-o FILE"),
        (["{damaged}"], 1, "is damaged"),
        (["{text}", "-o", "no/such/folder/x"], 2, "no folder"),
    ],
)
def test_recall_says_what_is_wrong_and_prints_nothing(
    machine: Machine, arguments: list[str], code: int, said: str
) -> None:
    """Bad input is exit 2, a damaged object exit 1; stdout stays empty."""
    shas = {
        "{text}": machine.stash.put(b"text").sha256,
        "{binary}": machine.stash.put(b"\xff\xfe\x00").sha256,
        "{damaged}": machine.stash.put(b"damaged").sha256,
    }
    damage(machine.stash, shas["{damaged}"])
    done = machine.lcc("recall", *(shas.get(each, each) for each in arguments))
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


def test_recall_without_any_stash_is_a_clear_error(machine: Machine) -> None:
    """Nothing is created by asking."""
    done = machine.lcc("recall", "0" * 12)
    assert done.returncode == 2
    assert not machine.stash.folder.exists()


def test_stash_list_show_and_verify(machine: Machine) -> None:
    """What there is, whose it is, and whether it is whole."""
    one, two = machine.stash.put(TEXT.encode()).sha256, machine.stash.put(PNG).sha256
    listed = json.loads(machine.lcc("stash", "list", "--json").stdout)
    assert listed["objects"] == 2
    assert {row["sha256"]: row["sessions"] for row in listed["listed"]} == {one: ["s-1"], two: ["s-1"]}
    assert one[:12] in machine.lcc("stash", "list").stdout.decode()
    shown = json.loads(machine.lcc("stash", "show", one[:12], "--json").stdout)
    assert (shown["kind"], shown["bytes"], shown["lines"]) == ("text", len(TEXT), 2001)
    assert json.loads(machine.lcc("stash", "show", two, "--json").stdout)["kind"] == "image/png"
    assert machine.lcc("stash", "verify").returncode == 0
    damage(machine.stash, one)
    done = machine.lcc("stash", "verify")
    assert done.returncode == 1
    assert one[:12] in done.stderr.decode()
    lose(machine.stash, one)
    (machine.home / "session.jsonl").write_text(stash_note(3, one))
    done = machine.lcc("stash", "verify")
    assert done.returncode == 1
    assert "missing" in done.stderr.decode()


def test_stash_gc_shows_first_and_collects_when_told(machine: Machine) -> None:
    """Without --apply nothing changes; what a session file of the client names stays."""
    named, unnamed = machine.stash.put(b"named").sha256, machine.stash.put(b"unnamed").sha256
    project = machine.home / ".claude" / "projects" / "-p"
    project.mkdir(parents=True)
    (project / "s.jsonl").write_text(json.dumps({"c": stash_note(9, named)}))
    dry = json.loads(machine.lcc("stash", "gc", "--session", "s-1", "--json").stdout)
    assert (dry["can_go"], dry["removed"], dry["kept_by_notes"]) == ([unnamed], 0, 1)
    assert {entry.sha256 for entry in machine.stash.entries()} == {named, unnamed}
    assert b"--apply" in machine.lcc("stash", "gc", "--session", "s-1").stdout
    assert json.loads(machine.lcc("stash", "gc", "--session", "s-1", "--apply", "--json").stdout)["removed"] == 1
    assert {entry.sha256 for entry in machine.stash.entries()} == {named}
    assert machine.lcc("stash", "gc", "--older-than", "soon").returncode == 2
    assert machine.lcc("stash", "gc", "--max-size", "much").returncode == 2


def test_listing_and_collecting_an_empty_stash_is_no_error(machine: Machine) -> None:
    """A machine that never stashed anything."""
    for arguments in (["list"], ["verify"], ["gc"], ["gc", "--apply"], ["list", "--json"]):
        assert machine.lcc("stash", *arguments).returncode == 0
    assert not machine.stash.folder.exists()
