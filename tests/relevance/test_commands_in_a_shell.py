"""What is said of a command is what a real shell does with it: read-only ones change nothing, reads print the file."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcc.relevance.reading.commands import command_effect, command_read

EXAMPLES = int(os.environ.get("LCC_HYPOTHESIS_EXAMPLES", "1")) * 200
FILES = {
    "a.txt": "".join(f"line {number} of a\n" for number in range(1, 16)),
    "b c.txt": "no final newline\nhere",
    "sub/d.txt": "\n\none\n\n\ntwo\n",
    "empty": "",
    "-n": "a file called -n\n",
    "crlf.txt": "one\r\ntwo\r\n",
    "cat": "a file that is called as a program\n",
}
PROGRAMS = [
    "cat",
    "head",
    "tail",
    "sed -n",
    "nl",
    "cat -n",
    "nl -ba",
    "ls",
    "find",
    "grep -n one",
    "wc",
    "pwd",
    "git",
    "tree",
]
ARGUMENTS = [
    *["a.txt", "'b c.txt'", '"b c.txt"', "sub/d.txt", "./a.txt", "empty", "crlf.txt", "missing", "sub", "."],
    *["-n", "-n 2", "-n2", "-2", "-n -2", "-n +2", "+2", "-c 3", "-q", "-v", "--", "-", "-b a", "-s"],
    *[
        "1,3p",
        "'1,3p'",
        "2p",
        "'3,1p'",
        "'2,$p'",
        "2,$p",
        "'/x/p'",
        "'1,3p;4p'",
        "'1,2w out'",
        "-e 1p",
        "-i",
        "-z",
        "--lines=2",
    ],
    *[
        "*",
        "?.txt",
        "{a,b}.txt",
        "[ab].txt",
        "$HOME",
        "~",
        "~root",
        "a\\.txt",
        "b\\ c.txt",
        "'a''.txt'",
        'a".txt"',
        "''",
    ],
    *[
        "#",
        "!",
        "a.txt#",
        "X=1",
        "-exec touch x {} +",
        "-delete",
        "-fprint out",
        "-o out",
        "status",
        "log",
        "--version",
    ],
    *["--output=out", "--help", "-print", "-name '*.txt'", "-maxdepth 1", "-newer a.txt", "-w", "--files0-from=a.txt"],
]
BETWEEN = [" "] * 30 + [
    "  ",
    "\t",
    "\n",
    ";",
    " ; ",
    "|",
    " | ",
    ">",
    " > ",
    ">>",
    "<",
    "&",
    " && ",
    "`",
    "$(",
    ")",
    "(",
    "\\",
]


def commands() -> st.SearchStrategy[str]:
    """Command lines, most of them sound, of the programs that may be on the allowlist."""
    word = st.sampled_from(ARGUMENTS)
    more = st.lists(st.tuples(st.sampled_from(BETWEEN), word), max_size=4)
    before = st.sampled_from([""] * 20 + ["X=1 ", "env ", "! ", "\\", "time ", " ", "\t"])
    return st.builds(
        lambda start, program, rest: start + program + "".join(a + b for a, b in rest),
        before,
        st.sampled_from(PROGRAMS),
        more,
    )


def reads() -> st.SearchStrategy[str]:
    """Commands that read one file, or nearly."""
    program = st.sampled_from(["cat", "head", "tail", "sed -n", "sed", "nl", "nl -ba", "nl -b a", "cat -n"])
    option = st.sampled_from(
        ["-n 3", "-n3", "-3", "-n 0", "-0", "--lines=3", "'2,4p'", "2,4p", "4p", "'4,2p'", "'9,$p'", "0p"]
    )
    path = st.sampled_from(
        ["a.txt", "'b c.txt'", '"b c.txt"', "./sub/d.txt", "empty", "crlf.txt", "'a'.txt", "cat", "missing"]
    )
    return st.builds(lambda *words: " ".join(w for w in words if w), program, st.one_of(st.just(""), option), path)


def make(folder: str) -> None:
    """The files."""
    for name, text in FILES.items():
        path = Path(folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())


def held(folder: str) -> dict[str, bytes]:
    """All files and what they hold."""
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def shell(command: str, folder: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command as an agent's shell tool does."""
    env = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8", "GIT_CEILING_DIRECTORIES": folder}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def printed(text: str, command: str) -> str | None:
    """What the read that `command_read` recognised prints of a file with this text; None when it reads no file."""
    read = command_read(command)
    if read is None:
        return None
    lines = text.splitlines(keepends=True) if "\r" not in text else text.replace("\n", "\n\0").split("\0")[:-1]
    if read.tail is not None:
        return "".join(lines[-read.tail :])
    if read.span is not None:
        return "".join(lines[read.span.first - 1 : read.span.last])
    if read.numbered:
        rows = "".join(f"{number:6d}\t{line}" for number, line in enumerate(lines, 1))
        return rows + "\n" if command.split()[0] == "nl" and rows and not rows.endswith("\n") else rows
    return text


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@given(st.one_of(commands(), reads()))
@settings(max_examples=EXAMPLES, deadline=None)
@example("cat a.txt")
@example("cat 'b c.txt'")
@example("sed -n '3,1p' a.txt")
@example("sed -n '2,$p' a.txt")
@example("head a.txt")
@example("tail -n 2 sub/d.txt")
@example("nl -ba sub/d.txt")
@example("cat -n crlf.txt")
@example("cat")
@example("cat -n")
@example("cat -- a.txt")
def test_a_shell_agrees(command: str) -> None:
    """A command that is called read-only changes no file; one that is called a read prints those lines of that file."""
    read, effect = command_read(command), command_effect(command)
    if read is None and effect != "read_only":
        return
    with tempfile.TemporaryDirectory() as folder:
        make(folder)
        before = held(folder)

        done = shell(command, folder)

        assert held(folder) == before
        if read is not None and Path(folder, read.path).is_file():
            expected = printed(Path(folder, read.path).read_bytes().decode(), command)
            assert done.stdout.decode() == expected
            assert done.returncode == 0
