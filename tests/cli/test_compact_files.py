"""Files: the session is never written to, an answer is whole or not there, and bad input is one clear line."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import programs
import pytest
from cli.cli_world import World, lay_out
from programs import LCC

UUID = '"uuid":"00000000-0000-0000-0000-00000000000%d","parentUuid":null'


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def leftovers(world: World) -> list[str]:
    """Files that a write beside its target left behind."""
    return [name for name in world.files() if name.endswith(".tmp")]


def test_the_answer_and_the_report_are_written_and_the_session_is_as_it_was(world: World) -> None:
    """-o and -r, both private, with nothing else beside them."""
    before = world.files()

    ran = world.compact("-o", "out.jsonl", "-r", "report.json")

    after = world.files()
    assert ran.code == 0, ran.err
    assert ran.out == b""
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"out.jsonl", "report.json"}
    assert mode_of(world.folder / "out.jsonl") == mode_of(world.folder / "report.json") == 0o600
    assert len(after["out.jsonl"]) < len(before["session.jsonl"])
    assert json.loads(after["report.json"])["schema_version"] == "transcript-compaction-1.0"


def test_the_answer_goes_to_standard_output_without_a_file(world: World) -> None:
    """The same bytes as with -o; the summary is on stderr alone."""
    world.compact("-o", "out.jsonl")

    ran = world.compact()

    assert ran.out == (world.folder / "out.jsonl").read_bytes()
    assert "removed" in ran.err


def test_the_session_can_come_by_standard_input(world: World) -> None:
    """A - is standard input, with the same bytes as the answer."""
    piped = world.lcc(
        *("compact", "-", "--provider", "rules", "--rules-mode", "recoverable"), stdin=world.session.read_bytes()
    )

    assert piped.code == 0, piped.err
    assert piped.out == world.compact().out


def test_a_dry_run_takes_the_same_path_and_writes_nothing(world: World) -> None:
    """The report of a dry run is that of the real one, but for the time it took; the files are untouched."""
    before = world.files()

    dry = world.compact("--dry-run", "-o", "out.jsonl", "-r", "-", mode="stashed")

    assert world.files() == before
    assert not (world.folder / "stash").exists()
    real = world.compact("-o", "out.jsonl", "-r", "report.json", mode="stashed")
    assert (dry.code, real.code) == (0, 0)
    reports = [json.loads(dry.out), json.loads((world.folder / "report.json").read_text())]
    for report in reports:
        del report["latency_ms"]
    assert reports[0] == reports[1]
    assert "no file was written" in dry.err


def test_the_same_input_gives_the_same_bytes(world: World) -> None:
    """Twice over the same disk."""
    assert world.compact().out == world.compact().out


def test_a_replaced_file_keeps_its_rights_and_a_link_stays_a_link(world: World) -> None:
    """What -o names is replaced, not the way to it."""
    target = world.folder / "kept.jsonl"
    target.write_text("old")
    target.chmod(0o640)
    (world.folder / "link.jsonl").symlink_to("kept.jsonl")

    ran = world.compact("-o", "link.jsonl")

    assert ran.code == 0, ran.err
    assert (world.folder / "link.jsonl").is_symlink()
    assert mode_of(target) == 0o640
    assert target.read_bytes() != b"old"


@pytest.mark.parametrize("way", ["name", "path", "symbolic link", "hard link"])
@pytest.mark.parametrize("option", ["-o", "-r"])
def test_the_session_itself_is_never_a_target(world: World, option: str, way: str) -> None:
    """By whatever name it is called."""
    names = {"name": "session.jsonl", "path": "ledger/../session.jsonl"}
    name = names.get(way, "other.jsonl")
    if way == "symbolic link":
        (world.folder / name).symlink_to(world.session)
    elif way == "hard link":
        os.link(world.session, world.folder / name)
    before = world.files()

    ran = world.compact(option, name)

    assert ran.code == 2
    assert "the session itself" in ran.err
    assert world.files() == before


def test_answer_and_report_must_be_two_files(world: World) -> None:
    """One would overwrite the other."""
    assert world.compact("-o", "same", "-r", "same").code == 2


def test_standard_output_takes_one_of_them(world: World) -> None:
    """-r - needs -o FILE or a dry run."""
    assert world.compact("-r", "-").code == 2
    ran = world.compact("-o", "out.jsonl", "-r", "-")
    assert json.loads(ran.out)["mode"] == "tool-calls"


@pytest.mark.parametrize("target", ["folder", "missing/out.jsonl", "fifo", "name\0with-nul"])
def test_a_target_that_is_no_file_is_bad_input(world: World, target: str) -> None:
    """Said before anything is read, and nothing is written."""
    (world.folder / "folder").mkdir()
    os.mkfifo(world.folder / "fifo")

    if "\0" in target:
        from lcc.commands.files import InputError, OutputFile

        with pytest.raises(InputError):
            OutputFile(target, "-o")
        return
    ran = world.compact("-o", target)

    assert ran.code == 2
    assert target.split("/")[0] in ran.err
    assert leftovers(world) == []


def test_the_null_device_is_never_replaced(world: World) -> None:
    """What goes there is gone, and no rename puts a file in its place."""
    before = os.stat(os.devnull)

    ran = world.compact("-o", os.devnull)

    assert ran.code == 0, ran.err
    assert ran.out == b""
    assert os.stat(os.devnull).st_rdev == before.st_rdev


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "device"])
def test_a_session_that_is_no_file_is_bad_input_at_once(world: World, kind: str) -> None:
    """Nothing is waited for."""
    name = {"device": "/dev/zero"}.get(kind, kind)
    if kind == "folder":
        (world.folder / "folder").mkdir()
    elif kind == "fifo":
        os.mkfifo(world.folder / "fifo")

    ran = world.lcc("compact", name, "--provider", "rules", "-o", "out.jsonl")

    assert ran.code == 2
    assert name in ran.err
    assert ran.err.count("\n") == 1
    assert not (world.folder / "out.jsonl").exists()


MALFORMED = {
    "empty": b"",
    "blank": b" \n\n",
    "no JSON": b"hello there\n",
    "cut off": b'{"messages": [{"role": "user", "text": "hi"}',
    "a number": b"42",
    "a string": b'"messages"',
    "null": b"null",
    "messages is no array": b'{"messages": 7}',
    "a message is no object": b'[{"role":"user","text":"x"}, 3]',
    "text is null": b'[{"role":"user","text":null}]',
    "text is a number": b'[{"role":"user","text":5}]',
    "role is unknown": b'[{"role":"wizard","text":"x"}]',
    "call without id": b'[{"role":"assistant","text":"","toolUses":[{"tool":"Read","input":{}}]}]',
    "result without its call": b'[{"role":"user","toolResults":[{"tool_use_id":"t9","text":"x"}]}]',
    "NaN": b'[{"role":"user","text":"x","n":NaN}]',
    "deep nesting": b'{"messages":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "lone surrogate": b'[{"role":"user","text":"\\ud800"}]',
    "not UTF-8": b'[{"role":"user","text":"\xff\xfe"}]',
    "UTF-16": '[{"role":"user","text":"x"}]'.encode("utf-16"),
    "NUL bytes": b"\0" * 100,
    "a cut line in a session": (
        b'{"type":"user",' + (UUID % 1).encode() + b',"message":{"role":"user","content":"x"}}\n{"type":"assist'
    ),
}
"""Of a session's damage ``--strict`` makes an error; what is no session is one without it."""


@pytest.mark.parametrize("name", list(MALFORMED))
def test_malformed_input_is_one_line_with_the_place_and_no_file(world: World, name: str) -> None:
    """Exit 2, no traceback, and the output is not there, not even in part."""
    (world.folder / "bad.json").write_bytes(MALFORMED[name])
    before = world.files()

    strict = ["--strict"] if "session" in name else []
    ran = world.lcc("compact", "bad.json", "--provider", "rules", *strict, "-o", "out.json", "-r", "report.json")

    assert ran.code == 2, ran.err
    assert ran.err.startswith("lcc: bad.json: ")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    assert world.files() == before
    assert ran.out == b""


def test_what_was_there_stays_when_the_input_is_malformed(world: World) -> None:
    """An older answer is not lost to a failed run."""
    (world.folder / "out.json").write_bytes(b"older answer")
    (world.folder / "bad.json").write_bytes(b"[")

    assert world.lcc("compact", "bad.json", "-o", "out.json").code == 2
    assert (world.folder / "out.json").read_bytes() == b"older answer"


def test_killed_at_any_moment_the_target_is_the_old_file_or_the_new(world: World) -> None:
    """SIGKILL at many points of the run: the target is never a part of anything."""
    world.compact("-o", "new.jsonl")
    new = (world.folder / "new.jsonl").read_bytes()
    started = time.perf_counter()
    world.compact("-o", "timed.jsonl")
    whole = time.perf_counter() - started
    target = world.folder / "out.jsonl"
    target.write_bytes(b"old")
    words = ["compact", "session.jsonl", "--provider", "rules", "--rules-mode", "recoverable", "-o", "out.jsonl"]

    for attempt in range(12):
        with programs.start("lcc", *words, env=world.environment(), cwd=world.folder) as run:
            time.sleep(whole * attempt / 11)
            run.send_signal(signal.SIGKILL)
            run.wait()
        assert target.read_bytes() in (b"old", new)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stopped_while_it_writes_nothing_is_left_beside(world: World, number: signal.Signals) -> None:
    """A run that is asked to stop takes away what it had begun to write."""
    (world.folder / "large.json").write_text(json.dumps([{"role": "user", "text": "x" * 40_000_000}]))
    target = world.folder / "out.json"
    target.write_bytes(b"old")
    words = ["compact", "large.json", "--provider", "rules", "-o", "out.json"]
    with programs.start("lcc", *words, env=world.environment(), cwd=world.folder) as run:
        while not run.has_ended() and not list(world.folder.glob(".out.json.*.tmp")):
            time.sleep(0.001)
        run.send_signal(number)
        said = run.communicate()[1].decode()
        assert run.wait() in (0, 128 + number)
    assert "Traceback" not in said
    assert leftovers(world) == []
    assert target.stat().st_size in (3, (world.folder / "large.json").stat().st_size)


def interrupted(world: World, seconds: float | None) -> tuple[int, str, float]:
    """A run that is sent Ctrl-C after ``seconds`` (None: never): its exit code, its words, and how long it took."""
    # The sign comes from inside main: a signal before it would meet this line instead of the program.
    start = (
        "import lcc.cli as cli, os; first = cli._have_streams; "
        "cli._have_streams = lambda: (os.write(1, b'.'), first()); cli.main()"
    )
    command = [sys.executable, "-c", start, "compact", "session.jsonl", "--rules-mode", "recoverable", "-o", "o.jsonl"]
    process = subprocess.Popen(
        command, cwd=world.folder, env=world.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    started = time.perf_counter()
    if seconds is not None:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    return process.returncode, said, time.perf_counter() - started


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> float:
    """The seconds of a run that nobody interrupts."""
    code, said, seconds = interrupted(lay_out(tmp_path_factory.mktemp("whole")), None)
    assert code == 0, said
    return seconds


@pytest.mark.parametrize("share", [0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 0.9])
def test_ctrl_c_at_any_moment_is_one_line(world: World, whole: float, share: float) -> None:
    """From the first step of main on, also while a command is loaded: exit 130, and what was there is there."""
    before = world.files()
    code, said, _ = interrupted(world, whole * share)

    assert "Traceback" not in said
    assert code in (0, 130)
    if code == 0 or "o.jsonl was written" in said:
        assert (world.folder / "o.jsonl").exists()
    else:
        assert said == "lcc: interrupted; nothing was changed\n"
        assert world.files() == before


def test_little_is_loaded_before_ctrl_c_is_answered() -> None:
    """The program's own module needs no library of others."""
    code = "import sys, lcc.cli; print([name for name in ('typer', 'rich', 'orjson') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_a_write_that_fails_changes_nothing(world: World) -> None:
    """A full disk, as a file-size limit: exit 1, one line, the older answer is there and nothing lies beside it."""
    (world.folder / "out.jsonl").write_bytes(b"older answer")
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "from lcc.cli import main; main()"
    )

    done = subprocess.run(
        [sys.executable, "-B", "-c", script, "compact", "session.jsonl", "--rules-mode", "lossless", "-o", "out.jsonl"],
        cwd=world.folder,
        env=world.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 1
    assert "out.jsonl" in done.stderr
    assert "Traceback" not in done.stderr
    assert (world.folder / "out.jsonl").read_bytes() == b"older answer"
    assert leftovers(world) == []


def test_a_reader_that_goes_away_is_no_traceback(world: World) -> None:
    """`lcc compact … | head -c 1` ends quietly."""
    large = [{"role": "user", "text": "x" * 3_000_000}]
    (world.folder / "large.json").write_text(json.dumps(large))
    process = subprocess.Popen(
        [sys.executable, "-c", "from lcc.cli import main; main()", "compact", "large.json", "--provider", "rules"],
        cwd=world.folder,
        env=world.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()

    assert "Traceback" not in process.stderr.read().decode()
    assert process.wait(timeout=60) in (0, 1)
    process.stderr.close()


@pytest.mark.parametrize(
    "words", [("compact", "session.jsonl", "--rules-mode", "lossless"), ("explain", "report.json")]
)
def test_an_output_that_is_full_is_one_line_and_exit_1(world: World, words: tuple[str, ...]) -> None:
    """Standard output on a full disk."""
    world.compact("-o", "out.jsonl", "-r", "report.json")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [LCC, *words],
            cwd=world.folder,
            env=world.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

    assert done.returncode == 1
    said = done.stderr.decode()
    assert said.splitlines()[-1] == "lcc: standard output: no space left on device"
    assert "Traceback" not in said
    assert "Exception ignored" not in said


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_stream_that_is_closed_does_no_harm(world: World, closed: int) -> None:
    """The answer is in its file, and no file of ours was taken for the stream."""
    script = f"exec {closed}>&-; exec {LCC} compact session.jsonl --rules-mode recoverable -o out.jsonl -r report.json"

    done = subprocess.run(
        ["sh", "-c", script], cwd=world.folder, env=world.environment(), capture_output=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr
    assert json.loads((world.folder / "report.json").read_text())["worth_it"] is True
    world.compact("-o", "other.jsonl")
    assert (world.folder / "out.jsonl").read_bytes() == (world.folder / "other.jsonl").read_bytes()


@pytest.mark.parametrize("words", [("compact", "session.jsonl"), ("explain", "report.json"), ("doctor",)])
def test_an_answer_that_nobody_can_read_is_a_failed_run(world: World, words: tuple[str, ...]) -> None:
    """Standard output is closed, and the answer was to go there."""
    world.compact("-o", "out.jsonl", "-r", "report.json")
    done = subprocess.run(
        ["sh", "-c", f"exec 1>&-; exec {LCC} {' '.join(words)}"],
        cwd=world.folder,
        env=world.environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == "lcc: standard output: it is closed"


def test_a_second_pass_changes_nothing_more(world: World) -> None:
    """What one pass wrote is input for the next, which finds nothing new."""
    world.compact("-o", "once.jsonl")

    ran = world.lcc("compact", "once.jsonl", "--provider", "rules", "--rules-mode", "recoverable")

    assert ran.code == 0, ran.err
    assert ran.out == (world.folder / "once.jsonl").read_bytes()
