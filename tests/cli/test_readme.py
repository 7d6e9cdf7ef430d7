"""What the READMEs show works as it is shown."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli.cli_world import ROOT, SAMPLE, World
from cli.test_report import OUR_KEYS, PAGE_KEYS
from programs import LCC

README = (ROOT / "README.md").read_text()
LCC_README = (ROOT / "lcc" / "README.md").read_text()
GUIDE = (ROOT / "lcc" / "commands" / "README.md").read_text()
COMMANDS = [line for line in GUIDE.splitlines() if line.startswith("lcc ")]
READMES = [ROOT / "README.md"]
READMES += [path for package in ("lcc", "hook", "daemon", "scripts") for path in (ROOT / package).rglob("README.md")]


def test_the_readme_is_of_one_screen() -> None:
    """What the person who installs it reads; all the rest stands behind it."""
    assert len(README.splitlines()) <= 75
    assert re.findall(r"^python3 scripts/(\w+)\.py", README, re.MULTILINE) == ["demo", "test"]


def test_the_commands_of_the_guide_run_one_after_the_other(world: World) -> None:
    """Each line as it stands, comment and all, by a shell's own rules."""
    assert COMMANDS[0].startswith("lcc compact session.jsonl ")
    for line in COMMANDS:
        ran = world.lcc(*shlex.split(line, comments=True)[1:])
        assert ran.code == 0, f"{line}: {ran.err}"
    report = json.loads((world.folder / "report.json").read_text())
    assert report["worth_it"] is True
    assert report["recoverability_check"] == "disk"
    assert (world.folder / "page.html").stat().st_size > 20_000


def test_every_command_of_the_program_is_in_the_guide() -> None:
    """With a line of its own in the table."""
    from lcc.cli import COMMANDS as REGISTERED

    assert [name for name in REGISTERED if f"| `lcc {name}` |" not in GUIDE] == []


def test_the_note_in_the_readme_is_one_that_the_sample_gets(world: World) -> None:
    """The example is not made up."""
    shown = re.search(r"^after\s+(\[removed.*\])$", README, re.MULTILINE)
    assert shown is not None
    notes = [str(record.get("note")) for record in world.report()["decisions"]]

    assert shown[1] in [note.replace(f"{world.workspace}/", "") for note in notes]


def demo(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the demo in the environment that is there already."""
    script = (
        "import sys, pathlib, set_up\n"
        f"set_up.PYTHON = pathlib.Path({sys.executable!r})\n"
        "set_up.set_up = lambda dev: set_up.PYTHON\n"
        "import demo\n"
        "sys.argv[0] = 'demo.py'\n"
        "raise SystemExit(demo.main())\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_demo_without_a_folder_names_no_file_that_is_gone(tmp_path: Path) -> None:
    """No page is written for nobody to open, and the way to have one is named."""
    done = demo(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "page.html" not in done.stdout + done.stderr
    assert "--keep FOLDER" in done.stdout


@pytest.mark.parametrize("kind", ["full folder", "file"])
def test_the_demo_keeps_its_files_in_no_folder_that_holds_others(tmp_path: Path, kind: str) -> None:
    """One line that names it, exit 2, and what is there stays as it is."""
    kept = tmp_path / "kept"
    if kind == "file":
        kept.write_text("mine")
    else:
        kept.mkdir()
        (kept / "report.json").write_text("mine")
    done = demo(tmp_path, "--keep", str(kept))
    assert done.returncode == 2
    assert str(kept) in done.stderr
    assert "Traceback" not in done.stderr
    assert (kept if kind == "file" else kept / "report.json").read_text() == "mine"


def test_the_demo_prints_what_was_kept_and_what_was_removed(tmp_path: Path) -> None:
    """The first of the README's two commands."""
    done = demo(tmp_path, "--keep", str(tmp_path / "kept"))

    assert done.returncode == 0, done.stderr
    assert "Removed, and why" in done.stdout
    assert "Kept, and why it could not be freed" in done.stdout
    assert "[removed: re-read " in done.stdout
    assert {path.name for path in (tmp_path / "kept").iterdir()} >= {"compacted.jsonl", "report.json", "page.html"}


def test_the_sample_session_is_the_one_that_its_script_writes(tmp_path: Path) -> None:
    """What its tools printed is what the workspace holds."""
    import shutil

    copy = tmp_path / "sample"
    shutil.copytree(SAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "session.jsonl").unlink()

    subprocess.run([sys.executable, "-B", "make_session.py"], cwd=copy, check=True, timeout=60)

    assert (copy / "session.jsonl").read_bytes() == (SAMPLE / "session.jsonl").read_bytes()
    for file in (SAMPLE / "workspace").rglob("*.*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert (copy / file.relative_to(SAMPLE)).read_bytes() == file.read_bytes()


def test_the_picture_is_the_one_that_its_script_draws(tmp_path: Path) -> None:
    """Drawn from the sample session, so that it never shows what lcc does not do."""
    target = tmp_path / "picture.svg"
    script = ROOT / "scripts" / "make_picture.py"

    subprocess.run([sys.executable, "-B", script, target], check=True, timeout=60)

    assert target.read_text() == (SAMPLE / "before-after.svg").read_text()


@pytest.mark.parametrize("key", [*PAGE_KEYS, *OUR_KEYS])
def test_every_key_of_the_report_is_defined(key: str) -> None:
    """In the table of lcc/README.md."""
    prefix, _, rest = key.rpartition("_")
    short = f"`_{rest}`" if prefix == "tool_calls" else None

    assert f"`{key}`" in LCC_README or (short is not None and short in LCC_README)


def test_every_refused_option_is_listed() -> None:
    """A reader finds it before running into it."""
    from lcc.contract.options import REFUSED_FLAG_FAMILY, REFUSED_FLAGS

    sentence = LCC_README.partition("refused with exit 2, by name:")[2].partition("\n- ")[0]
    assert re.findall(r"`(.*?)`", sentence) == [*REFUSED_FLAGS, REFUSED_FLAG_FAMILY]


def test_the_python_example_runs(world: World) -> None:
    """As it stands, over a payload of the seed's shape."""
    (code,) = re.findall(r"```python\n(.*?)```", LCC_README, re.DOTALL)
    transcript = {
        "messages": [
            {"role": "user", "text": "Fix the failing parser test."},
            {
                "role": "assistant",
                "text": "Running the suite.",
                "toolUses": [{"tool_use_id": "t1", "tool": "Bash", "input": {"command": "pytest -q"}}],
            },
            {"role": "user", "toolResults": [{"tool_use_id": "t1", "text": "1 failed, 24 passed"}]},
        ]
    }
    names: dict[str, object] = {"transcript": transcript}

    exec(code.replace("/path/to/the/project", str(world.workspace)), names)

    assert names["compacted"] == transcript["messages"]


def test_files_that_the_readmes_link_to_are_there() -> None:
    """No dead link."""
    assert len(READMES) >= 8
    for readme in READMES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", readme.read_text()):
            assert (readme.parent / target).exists(), (readme, target)


def test_the_program_that_the_tests_run_is_this_project_s() -> None:
    """Not some other lcc on the machine."""
    assert LCC.exists()
    assert LCC.parent == Path(sys.executable).parent
