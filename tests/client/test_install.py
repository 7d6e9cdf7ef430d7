"""The plugin as a user gets it: validated, installed from a marketplace into a clean home, and used."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from client.claude_process import Claude, Lab
from client.conftest import CHECKOUT, Table
from client.conversation import conversation, results
from client.messages_api import Script, serve
from making import worked_on

pytestmark = pytest.mark.client


def claude(client: Path, lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    """One command of the client that is no session."""
    return subprocess.run(
        [client, *words],
        cwd=lab.project,
        env=lab.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_plugin_is_valid(current_client: Path, older_client: Path, lab: Lab) -> None:
    """The client's own validator finds nothing to refuse and nothing to warn of, and an older one can load it."""
    done = claude(current_client, lab, "plugin", "validate", "--strict", "--profile", "directory", str(CHECKOUT))
    assert done.returncode == 0, done.stdout + done.stderr
    for client in (current_client, older_client):
        alone = claude(client, lab, "plugin", "validate", str(CHECKOUT / ".claude-plugin/plugin.json"))
        assert alone.returncode == 0, alone.stdout + alone.stderr


def test_one_version_everywhere() -> None:
    """The plugin, the package and the hook client name the same version."""
    package = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    plugin = json.loads((CHECKOUT / ".claude-plugin/plugin.json").read_text(encoding="utf-8"))["version"]
    hook_client = (CHECKOUT / "hook/lcc_hook/client.py").read_text(encoding="utf-8")
    assert plugin == package
    assert f'BUILD = "{package}"' in hook_client


def install(client: Path, lab: Lab) -> None:
    """Add a checkout as a marketplace and install from it, as a user would."""
    checkout = lab.root / "checkout"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, checkout / name)
    added = claude(client, lab, "plugin", "marketplace", "add", str(checkout))
    assert added.returncode == 0, added.stdout + added.stderr
    done = claude(client, lab, "plugin", "install", "lcc@lcc")
    assert done.returncode == 0, done.stdout + done.stderr


def wait_for_setup(lab: Lab) -> str:
    """Block until the environment's builder has ended: it holds a lock while it works. Returns its log."""
    (data,) = lab.home.glob(".claude/plugins/data/lcc-*")
    with (data / "setup.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    return (data / "setup.log").read_text(encoding="utf-8")


def test_a_clean_home_compacts_at_once(current_client: Path, lab: Lab, table: Table) -> None:
    """With nothing of ours on PATH the first compaction of the first session is replaced; so is the next, by then
    with the environment that was made meanwhile."""
    del lab.env["LCC_PYTHON"]
    install(current_client, lab)
    lines = "".join(f"line {number}: something worth removing\n" for number in range(500))
    file = lab.write("src/one.py", lines)
    first, second = (worked_on(lab.project, lab.home, [file]) for _ in range(2))
    with serve(Script([])) as (api, url):
        for session, when in ((first, "first compaction"), (second, "environment ready")):
            with Claude(current_client, lab, url, resume=session.id) as claude:
                turn = claude.ask("/compact")
                claude.ask("Are you there?")
            table.add(f"clean home, {when}", "notes and every text", turn, lab)
            assert turn.said_to_user()[0].startswith("lcc: kept every message")
            after = results(conversation(api.of("main")[-1].body))
            assert after["toolu_old0"].text.startswith(f"[removed: re-read {file} ")
            log = wait_for_setup(lab)
            assert log.rstrip().endswith("ready") or "lcc-daemon stop" in log, log
        assert api.of("summary") == []


def test_without_a_network_it_compacts_all_the_same(current_client: Path, lab: Lab, table: Table) -> None:
    """The set-up fails and says why at the next start; the rules need none of it."""
    del lab.env["LCC_PYTHON"]
    lab.env |= {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "UV_INDEX_URL": "http://127.0.0.1:9/"}
    install(current_client, lab)
    file = lab.write("src/one.py", "".join(f"line {number}: something worth removing\n" for number in range(500)))
    with serve(Script([])) as (api, url):
        for number in (1, 2):
            session = worked_on(lab.project, lab.home, [file])
            with Claude(current_client, lab, url, resume=session.id) as claude:
                turn = claude.ask("/compact")
                claude.ask("Are you there?")
            table.add(f"no network, session {number}", "notes and every text", turn, lab)
            assert turn.said_to_user()[0].startswith("lcc: kept every message")
            after = results(conversation(api.of("main")[-1].body))
            assert after["toolu_old0"].text.startswith(f"[removed: re-read {file} ")
            wait_for_setup(lab)
        assert api.of("summary") == []
    told = [event for event in claude.events if event.get("subtype") == "hook_response"]
    assert "could not be set up: the package index cannot be reached" in json.dumps(told)


def raise_version(folder: Path, old: str, new: str) -> None:
    """Make a checkout that of another version."""
    for name in ("pyproject.toml", ".claude-plugin/plugin.json", "hook/lcc_hook/client.py"):
        path = folder / name
        path.write_text(path.read_text().replace(f'"{old}"', f'"{new}"', 1))


def test_an_upgrade_in_the_middle_of_a_session(current_client: Path, lab: Lab, table: Table) -> None:
    """The running session and the next both compact, and neither waits for an environment of the new version. A
    marketplace that is a folder runs from there: the daemon of before ends when it sees that its program is another."""
    del lab.env["LCC_PYTHON"]
    lab.env["LCC_NO_SETUP"] = "1"
    install(current_client, lab)
    version = json.loads((CHECKOUT / ".claude-plugin/plugin.json").read_text())["version"]
    file = lab.write("src/one.py", "".join(f"line {number}: something worth removing\n" for number in range(500)))
    before, after = (worked_on(lab.project, lab.home, [file]) for _ in range(2))
    with serve(Script([])) as (api, url), Claude(current_client, lab, url, resume=before.id) as running:
        running.ask("Are you there?")
        raise_version(lab.root / "checkout", version, "9.9.9")
        for words in (["marketplace", "update", "lcc"], ["update", "lcc@lcc"]):
            done = claude(current_client, lab, "plugin", *words)
            assert done.returncode == 0, done.stdout + done.stderr
        old = running.ask("/compact")
        with Claude(current_client, lab, url, resume=after.id) as later:
            new = later.ask("/compact")
        again = running.ask("Are you still there?")
    for name, turn in (("the running session", old), ("a new session", new)):
        table.add(f"upgraded meanwhile, {name}", "notes and every text", turn, lab)
        assert turn.said_to_user()[0].startswith("lcc: kept every message"), name
    assert again.subtype == "success"
    assert api.of("summary") == []
    builds = {path.name.split("-")[2].removesuffix(".pid") for path in lab.runtime.glob("lcc/d-*.pid")}
    assert "9.9.9" in builds
    assert builds <= {version, "9.9.9"}
