"""What differs on macOS, simulated, and the sentence that Windows gets. daemon/README.md says what was not tried."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest
from daemon.daemon_world import CHECKOUT, CLIENT, PYTHON, wait_until
from making import jsonl, user

from lcc.client_folders import folder_name, folders_of
from lcc.private_files import write_private
from lcc_hook import builder, client, places, processes

BSD_PS = """#!{python}
import os, sys
values = {{"stat": "Ss", "lstart": "Tue Dec  1 06:45:00 2026", "time": "0:01.50"}}
columns, words = [], sys.argv[1:]
while words:
    word = words.pop(0)
    if word == "-o":
        columns.append(words.pop(0).partition("="))
    elif word == "-p":
        pid = words.pop(0)
if os.environ.get("LC_ALL") != "C" or pid != "4711":
    sys.exit(1)
if any(heading for _, _, heading in columns):
    print(*[heading or name for name, _, heading in columns])
print(*[values[name] for name, _, _ in columns])
"""
"""As on macOS: behind an equals sign the rest of a word is the column's heading, commas too."""


@pytest.fixture
def macos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No /proc, no SO_PEERCRED, and a `ps` of the BSDs."""
    ps = tmp_path / "ps"
    ps.write_text(BSD_PS.format(python=sys.executable))
    ps.chmod(0o755)
    monkeypatch.setattr(processes, "ON_LINUX", False)
    monkeypatch.setattr(processes, "PS", str(ps))
    monkeypatch.setattr(processes, "socket", SimpleNamespace())
    monkeypatch.setattr(client, "socket", SimpleNamespace())


@pytest.mark.usefixtures("macos")
def test_a_process_is_known_by_ps() -> None:
    """When it began, its state and the time it has used; nothing of one that is not there."""
    assert processes.start_of(4711) == b"Tue Dec  1 06:45:00 2026"
    assert processes.progress_of(4711) == (b"S", b"0:01.50")
    assert not processes.is_stopped(4711)
    assert processes.start_of(4712) == b""


def test_the_real_ps_understands_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ON_LINUX", False)
    began = re.compile(rb"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}")
    assert wait_until(lambda: began.fullmatch(processes.start_of(os.getpid())) is not None)
    assert wait_until(lambda: processes.progress_of(os.getpid())[0] in (b"R", b"S"))
    monkeypatch.setattr(processes, "PS", "/nowhere/ps")
    assert processes.start_of(os.getpid()) == b""


class Line:
    """A connected socket of a BSD: level 0 has the peer's credentials (1) and process (2)."""

    def __init__(self, answers: dict[int, bytes | int]) -> None:
        self.answers = answers

    def getsockopt(self, level: int, option: int, size: int = 0) -> bytes | int:
        if level or option not in self.answers:
            raise OSError(errno.ENOPROTOOPT, "no such option")
        return self.answers[option]


@pytest.mark.usefixtures("macos")
def test_the_peer_is_asked_as_the_bsds_tell() -> None:
    """`struct xucred`: version 0, the uid, groups. Another version, or no answer: nobody knows, which is refused."""
    known = struct.pack("=IIh", 0, 501, 1) + bytes(66)
    assert client.peer_uid(Line({1: known})) == 501
    assert client.peer_uid(Line({1: b"\1" + known[1:]})) is None
    assert client.peer_uid(Line({})) is None
    assert processes.peer_pid(Line({2: 4711})) == 4711
    assert processes.peer_pid(Line({})) is None


@pytest.mark.parametrize("has_it", [True, False], ids=["a disk that knows it", "a disk that does not"])
def test_a_full_sync_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_it: bool) -> None:
    """F_FULLFSYNC where the system has it, and fsync where the file system refuses that."""
    real, asked, synced = fcntl.fcntl, list[int](), list[int]()

    def control(fd: int, command: int, *rest: int) -> int:
        if command != 51:
            return real(fd, command, *rest)
        asked.append(os.fstat(fd).st_ino)
        if not has_it:
            raise OSError(errno.ENOTTY, "not for this file system")
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", control)
    real_sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_ino), real_sync(fd))[1])
    write_private(tmp_path / "a", b"kept")
    assert asked
    assert (asked[0] in synced) is not has_it


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_project_is_found_in_either_spelling(tmp_path: Path, form: str) -> None:
    """Finder and the disk spell a name in parts; the client names its folder by one of the two."""
    project = tmp_path / unicodedata.normalize(form, "Müller")
    project.mkdir()
    for spelled in ("NFC", "NFD"):
        began = unicodedata.normalize(spelled, str(project))
        folder = tmp_path / "home" / ".claude" / "projects" / folder_name(began)
        folder.mkdir(parents=True)
        (folder / "s.jsonl").write_bytes(jsonl(user("u", None, "x", cwd=began)))
    assert len(folders_of(project, {"HOME": str(tmp_path / "home")})) == 2


def test_a_temporary_folder_that_is_a_link(tmp_path: Path) -> None:
    """/tmp is a link to /private/tmp: the client says the one, and a person types the other."""
    (tmp_path / "private" / "tmp" / "app").mkdir(parents=True)
    (tmp_path / "tmp").symlink_to("private/tmp")
    real = (tmp_path / "tmp" / "app").resolve()
    folder = tmp_path / "home" / ".claude" / "projects" / folder_name(str(real))
    folder.mkdir(parents=True)
    for typed in (tmp_path / "tmp" / "app", real):
        assert folders_of(typed, {"HOME": str(tmp_path / "home")}) == [folder]


def test_a_newer_python_is_found_without_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that the desktop starts has the system's folders on its PATH, where Python is 3.9."""
    program = tmp_path / "brew" / "python3.13"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(places.sys, "version_info", (3, 9, 6))
    monkeypatch.setattr(places, "USUAL_PLACES", (os.fsencode(program.parent),))
    monkeypatch.setattr(places, "NEWER_PYTHONS", (b"python3.13",))
    assert places.plain_python({b"PATH": b"/nowhere:/usr/sbin"}) == [os.fsencode(program), b"-I", b"-S"]
    assert places.plain_python({}) == [os.fsencode(program), b"-I", b"-S"]
    monkeypatch.setattr(builder, "USUAL_PLACES", (os.fsencode(program.parent),))
    monkeypatch.setenv("PATH", "/nowhere")
    assert str(program.parent) in builder.search_path().split(os.pathsep)


# ---------------------------------------------------------------- Windows

WINDOWS = """
import hashlib, pathlib, shutil, subprocess, sys  # whose Windows halves are not here
sys.platform = "win32"
for name in ("posix", "fcntl", "pwd", "resource", "termios"):
    sys.modules[name] = None
sys.argv = {words!r}
"""


def on_windows(words: list[str], run: str) -> subprocess.CompletedProcess[str]:
    code = WINDOWS.format(words=words) + run
    return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, cwd=CHECKOUT, check=False, timeout=60)


@pytest.mark.parametrize("words", [[], ["--help"], ["compact", "a.jsonl"], ["doctor"], ["mcp"], ["recall", "0" * 12]])
@pytest.mark.parametrize("program", ["lcc", "lcc-daemon"])
def test_windows_gets_one_sentence(program: str, words: list[str]) -> None:
    """Exit code 2, and no traceback, whatever was asked for."""
    module = "lcc.entry" if program == "lcc" else "lcc_daemon.entry"
    done = on_windows([program, *words], f"from {module} import main; main()")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{program}: lcc needs Linux or macOS; on Windows install and run it in WSL\n"


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("compact", "say"),
        ("session-start", "systemMessage"),
        ("slash", "reason"),
        ("pre-compact", ""),
        ("session-end", ""),
    ],
)
def test_windows_hooks_say_it_once_and_never_fail(command: str, key: str) -> None:
    done = on_windows([str(CLIENT), command], f"import runpy; runpy.run_path({str(CLIENT)!r}, run_name='__main__')")
    assert (done.returncode, done.stderr) == (0, "")
    if key:
        assert "lcc needs Linux or macOS" in json.loads(done.stdout)[key]
    else:
        assert done.stdout == ""


def test_windows_setup_says_it() -> None:
    done = on_windows(["set_up.py"], "import runpy; runpy.run_path('scripts/set_up.py', run_name='__main__')")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip() == "lcc needs Linux or macOS; on Windows install and run it in WSL"
