"""How texts name calls: in any script and punctuation, by file, URL, command, pattern and id, and what is no name."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lcc.relevance.evidence.names import Naming, named_calls
from lcc.relevance.reading.calls import file_reads
from lcc.transcript import Pair, ToolResult, ToolUse

PATH = "/home/u/work/src/lexer.py"


def naming(tool: str, given: Any, text: str, call_id: str = "toolu_7") -> Naming | None:
    """How ``text`` names one call."""
    pair = Pair(ToolUse(call_id, tool, given, None, ()), ToolResult(call_id, "", None, (), ()), 1, 2)
    return named_calls([pair], file_reads([pair]), {text: 1}).get(call_id)


def names_file(text: str, path: str = PATH) -> bool:
    return naming("Read", {"file_path": path}, text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "mend lexer.py",
        "mend “lexer.py”",
        "«lexer.py» ist kaputt",
        "„lexer.py“",
        "「lexer.py」を直して",
        "`lexer.py`",
        "'lexer.py'",
        "(lexer.py)",
        "[lexer](src/lexer.py)",
        "<lexer.py>",
        "**lexer.py**",
        "_lexer.py_",
        "lexer.py#L10-L20",
        "lexer.py:12:3",
        "lexer.py(12,3)",
        "lexer.py, then the rest",
        "lexer.py; then",
        "lexer.py?",
        "lexer.py!",
        "lexer.py…",
        "see lexer.py.",
        "the lexer.py's end",
        "die lexer.py-Datei",
        "@src/lexer.py",
        "./src/lexer.py",
        "../src/lexer.py",
        "~/work/src/lexer.py",
        "…/src/lexer.py",
        "src\\lexer.py",
        "C:\\home\\u\\work\\src\\lexer.py",
        "src/parser.py,src/lexer.py",
        "a/src/lexer.py b/src/lexer.py",
        "file:///home/u/work/src/lexer.py",
        "HEAD:src/lexer.py",
        "--file=src/lexer.py",
        "LEXER.PY",
        "Src/Lexer.py",
        "请修改src/lexer.py文件",
        "请看lexer.py。",
        "lexer.pyを見て",
        "lexer.py를 고쳐",
        "в lexer.py,пожалуйста",
        "افحص lexer.py، من فضلك",
        "وlexer.py",
        "ב-lexer.py",
        "ดูlexer.pyหน่อย",
        "lexer\N{NO-BREAK SPACE}lexer.py\N{NO-BREAK SPACE}x",
        "\N{LEFT-TO-RIGHT MARK}lexer.py\N{RIGHT-TO-LEFT MARK}",
    ],
)
def test_a_file_is_named_however_it_is_written(text: str) -> None:
    """Around the name may stand any quotes, brackets, punctuation, folders, line numbers and scripts."""
    assert names_file(text)


@pytest.mark.parametrize(
    "text",
    [
        "my-lexer.py",
        "xlexer.py",
        "lexer.pyc",
        "x.lexer.py",
        "lexer.py.orig",
        "lexer.py_old",
        "lib/lexer.py",
        "/home/u/work/lib/lexer.py",
        "mysrc/lexer.py",
        "the lexer",
        "py",
        "go on",
        "",
    ],
)
def test_another_file_is_not_the_one(text: str) -> None:
    """A longer name, or the same name in another folder."""
    assert not names_file(text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/r/解析.py", "请看解析.py文件"),
        ("/r/docs/設計書.md", "設計書.mdを読んで"),
        ("/r/модуль.py", "проверь модуль.py:3"),
        ("/r/Модуль.py", "МОДУЛЬ.PY"),
        ("/r/ملف.py", "افحص ملف.py"),
        ("/r/straße.txt", "STRASSE.TXT"),
        ("/r/cafe\N{COMBINING ACUTE ACCENT}.py", "café.py"),
        ("/r/café.py", "cafe\N{COMBINING ACUTE ACCENT}.py"),
        ("/r/my file.py", "see my file.py now"),
        ("/r/my file.py", "see my\\ file.py now"),
        ("/r/my_file.py", "see my\\_file.py now"),
        ("/r/app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("/r/app/(shop)/+page.svelte", "the +page.svelte"),
        ("/r/.env", "the .env file"),
        ("/r/Makefile", "the makefile"),
        ("C:\\work\\src\\lexer.py", "src/lexer.py"),
        ("src/lexer.py", "/home/u/work/src/lexer.py"),
        ("lexer.py", "src/lexer.py"),
    ],
)
def test_any_path_can_be_named(path: str, text: str) -> None:
    """Names of any script, blanks, brackets, either slash, composed and decomposed letters, relative and absolute."""
    assert names_file(text, path)


def test_a_name_is_found_between_any_two_marks() -> None:
    """Whatever punctuation or symbol of Unicode stands on both sides."""
    marks = [chr(code) for code in range(0x21, 0x3100) if not (chr(code).isalnum() or chr(code) in "-._/\\&=%~+")]
    rng = random.Random(5)
    for mark in rng.sample([mark for mark in marks if mark.isprintable()], 400):
        assert names_file(f"look {mark}lexer.py{mark} up"), repr(mark)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://example.org/w?v=1", "see https://example.org/w?v=1"),
        ("https://example.org/w?v=1&t=2", "(https://example.org/w?v=1&t=2)"),
        ("https://example.org/a,b;c(d)*", "https://example.org/a,b;c(d)*."),
        ("https://example.org/a_(b)", "https://example.org/a_(b)"),
        ("https://example.org/a/", "did you read https://example.org/a?"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://example.org/a", "<https://example.org/a>"),
        ("http://example.org/a", "https://example.org/a"),
        ("https://ja.example.org/%E6%9D%B1", "https://ja.example.org/東"),
        ("https://example.org/Case", "https://example.org/case"),
    ],
)
def test_a_url_is_named_with_all_that_it_may_hold(url: str, text: str) -> None:
    """A question mark, commas, semicolons, brackets, stars; a tool's url, and one in a command."""
    assert naming("WebFetch", {"url": url, "prompt": "read it"}, text)
    assert naming("Bash", {"command": f"curl -s '{url}'"}, text)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://example.org/w?v=1", "https://example.org/w?v=12"),
        ("https://example.org/w?v=1", "https://example.org/w?v=1&t=2"),
        ("https://example.org/w", "https://example.org/w/more"),
        ("https://example.org/w", "https://other.example.org/w"),
    ],
)
def test_another_url_is_not_the_one(url: str, text: str) -> None:
    """A longer address."""
    assert naming("WebFetch", {"url": url, "prompt": "read it"}, text) is None


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git log --oneline -5", "explain the output of git log --oneline -5"),
        ("git log --oneline -5", "what does `git log` say"),
        ("git -C /srv/x --no-pager log -3", "what did git log say?"),
        ("cd app && npm run build 2>&1 | tail -5", "npm run build is red"),
        ("FOO=1 timeout 60 cargo test parser", "the cargo test output"),
        ("pytest -q", "the `pytest` output"),
        ("make", "run make"),
        ("docker  compose   up", "docker compose up"),
        ("tool --file=src/a.py", "src/a.py"),
        ("pytest tests/test_a.py::test_b", "tests/test_a.py fails"),
        ("sed -n 1,5p 'my file.py' | wc", "my file.py"),
        ("grep -rn parse_header src | head", "where is parse_header used"),
        ("git grep -n parseHeader", "parseHeader"),
        ("find . -name '*.toml'", "find '*.toml'"),
    ],
)
def test_a_command_is_named(command: str, text: str) -> None:
    """As it was written, by program and subcommand, by what it searched for, or by a path in it."""
    assert naming("Bash", {"command": command}, text)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git log -3", "git status"),
        ("npm run build", "npm run lint"),
        ("make test", "make sure that it works"),
        ("pytest -q", "all of the pytest output is long"),
        (".venv/bin/pytest -q", "use pytest"),
        ("ls >/dev/null", "null"),
        ("cat > a.txt <<EOF\ngit log\nEOF", "git log"),
        ("python -c 'print(1)'", "python 3"),
    ],
)
def test_words_of_a_sentence_name_no_command(command: str, text: str) -> None:
    """A program's name alone is a name only in quotes, and a here-document is no command."""
    assert naming("Bash", {"command": command}, text) is None


@pytest.mark.parametrize(
    ("given", "text", "named"),
    [
        ({"pattern": "parse_header"}, "where is parse_header?", True),
        ({"pattern": r"def\s+parseHeader\("}, "where is parseHeader", True),
        ({"pattern": "two words"}, "find 'two words'", True),
        ({"pattern": "x", "path": "src/lexer.py"}, "mend src/lexer.py", True),
        ({"pattern": "x", "path": "/r/src"}, "look into src/", True),
        ({"pattern": "x", "path": "/r/shop"}, "the shop is slow", False),
        ({"pattern": "x"}, "x y", False),
    ],
)
def test_a_search_is_named(given: dict[str, str], text: str, named: bool) -> None:
    """By its pattern, a name in its pattern, or its path; a folder only where it is written as one."""
    assert (naming("Grep", given, text) is not None) is named


def test_what_a_call_is_about_and_what_it_mentions() -> None:
    """A file that is read is what the call is about; a path in a command is mentioned."""
    assert naming("Read", {"file_path": PATH}, "lexer.py") == Naming(1, 1)
    assert naming("Bash", {"command": f"wc {PATH} | sort"}, "lexer.py") == Naming(0, 1)
    assert naming("Task", {"prompt": f"look at {PATH}"}, "lexer.py") == Naming(0, 1)
    assert naming("Bash", {"command": "x"}, "toolu_7 again") == Naming(1, 1)
    assert naming("Edit", {"file_path": "/r/b.py", "new_string": PATH}, "lexer.py") is None
    assert naming("apply_patch", {"input": f"*** Begin Patch\n*** Update File: {PATH}\n*** End Patch"}, "lexer.py")


def test_any_input_can_be_asked_about() -> None:
    """Inputs of no known form, empty names and lone surrogates raise nothing."""
    for given in (None, 5, "", [], {"path": ""}, {"path": "/"}, {"path": ".."}, {"pattern": "("}, {"url": "://"}):
        naming("Grep", given, "see / .. ( :// \ud83d")
        naming("Read", {"file_path": given}, "\ud83d")
    assert not names_file("\ud83d")
    assert names_file("a lexer.py \udc00")


def test_many_names_in_a_long_text_cost_little() -> None:
    """The work is that of the text and the calls, not of their product: counted in steps, not in time."""
    steps = []
    for size in (500, 2000):
        text = " ".join(f"test_module_{n}.py" for n in range(size))
        pairs = [
            Pair(
                ToolUse(f"c{n}", "Read", {"file_path": f"/r/test_module_{n * 3}.py"}, None, ()),
                ToolResult(f"c{n}", "", None, (), ()),
                1,
                2,
            )
            for n in range(size)
        ]
        count = 0

        def step(*_: object) -> None:
            nonlocal count
            count += 1

        import sys

        before = sys.getprofile()
        sys.setprofile(step)
        try:
            found = named_calls(pairs, file_reads(pairs), {text: 1})
        finally:
            sys.setprofile(before)
        assert len(found) == (size + 2) // 3
        steps.append(count)
    assert steps[1] < 5 * steps[0]
