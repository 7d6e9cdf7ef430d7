"""A word about what takes long, on a terminal and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

SCRIPT = """
import time
from lcc.commands.progress import progress
with progress("reading x.jsonl") as shown:
    time.sleep(1.6)
    shown.counted(3, 9)
    time.sleep(0.8)
print("done")
"""


def on_a_terminal(script: str) -> str:
    """Everything that a script shows on a terminal of its own."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(timeout=30) == 0
    return shown.decode()


def test_a_terminal_sees_what_is_done_and_then_a_clean_line() -> None:
    """What is done, the seconds, how much of it; all gone when it is over."""
    shown = on_a_terminal(SCRIPT)

    assert "reading x.jsonl …" in shown
    assert "asking the judge: 3 of 9" in shown
    assert shown.rpartition("\x1b[K")[2].strip() == "done"


def test_what_is_quick_says_nothing() -> None:
    """Less than a second is no reason to flicker."""
    assert on_a_terminal(SCRIPT.replace("1.6", "0.0").replace("0.8", "0.0")).strip() == "done"


def test_a_pipe_never_sees_it() -> None:
    """Output that is kept has no progress in it."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)

    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_long_name_is_no_second_line() -> None:
    """What the terminal folds could not be cleared; the shown line ends before its edge."""
    shown = on_a_terminal(SCRIPT.replace("reading x.jsonl", "reading " + "x" * 300))

    lines = [part.rstrip("\r") for part in shown.split("\x1b[K")]
    assert max(map(len, lines)) < 80
    assert any("xxx" in line for line in lines)
