"""The configuration: where a value comes from, what is refused, and that the daemon follows the file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from daemon.daemon_world import PYTHON, World, make_event, that_can_recall

from lcc.config import Config, ConfigError, config_file, load_config, state_folder


def write(tmp_path: Path, text: str) -> dict[str, str]:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return {"LCC_CONFIG": str(file)}


def test_the_defaults_of_a_live_session(tmp_path: Path) -> None:
    """Provider rules, by the ladder, a quarter at least, six messages untouched, command pointers off."""
    config = load_config({"HOME": str(tmp_path)})
    assert config == Config()
    assert (config.provider, config.rules_mode, config.min_reduction) == ("rules", "auto", 0.25)
    assert (config.preserve_recent, config.allow_command_pointers, config.enabled) == (6, False, True)


def test_a_variable_beats_the_file_beats_the_options(tmp_path: Path) -> None:
    """And each value knows where it came from."""
    env = {**write(tmp_path, "preserve_recent = 10\nmin_reduction = 0.1\n"), "LCC_PRESERVE_RECENT": "3"}
    config = load_config(env, {"preserve_recent": 50, "min_reduction": 0.5, "rules_mode": "lossless"})
    assert (config.preserve_recent, config.min_reduction, config.rules_mode) == (3, 0.1, "lossless")
    assert config.sources == {
        "preserve_recent": "the environment",
        "min_reduction": env["LCC_CONFIG"],
        "rules_mode": "the plugin's options",
    }


@pytest.mark.parametrize("off", ["file", "options", "variable"])
def test_off_anywhere_is_off(tmp_path: Path, off: str) -> None:
    """The switch is off when any of the three says so."""
    env = write(tmp_path, f"enabled = {'false' if off == 'file' else 'true'}\n")
    env["LCC_ENABLED"] = "0" if off == "variable" else "1"
    assert load_config(env, {"enabled": off != "options"}).enabled is False


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("preserve_recnt = 6\n", "preserve_recnt: no such setting; did you mean preserve_recent?"),
        ("zzz = 6\n", "zzz: no such setting; known: "),
        ("min_reduction = 2\n", "min_reduction: 2.0 is not a number from 0 to 1"),
        ("min_reduction = nan\n", "min_reduction: nan is not"),
        ("preserve_recent = -1\n", "preserve_recent: -1 is not"),
        ("preserve_recent = 1.5\n", "preserve_recent: 1.5 is not"),
        ("preserve_recent = true\n", "preserve_recent: True is not"),
        ("enabled = 1\n", "enabled: 1 is not true or false"),
        ('provider = "oracle"\n', "provider: 'oracle' is not one of jev, laya, auto, rules"),
        ('provider = "mechanical"\n', "provider: mechanical is refused"),
        ('rules_mode = "lossy"\n', "rules_mode: 'lossy' is not one of lossless, recoverable, stashed"),
        ('stash_dir = "relative"\n', "stash_dir: 'relative' is not an absolute path"),
        ("[preserve_recent]\n", "preserve_recent: {} is not"),
        ("preserve_recent = \n", "no valid TOML"),
        ("\x00", "no valid TOML"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    """The message names the file, the key and what is allowed."""
    env = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(env)
    assert told in str(caught.value)
    assert env["LCC_CONFIG"] in str(caught.value)


@pytest.mark.parametrize(("name", "text"), [("LCC_PRESERVE_RECENT", "many"), ("LCC_ENABLED", "maybe")])
def test_a_variable_that_cannot_be_used_is_refused_by_name(tmp_path: Path, name: str, text: str) -> None:
    """A typing mistake in a variable is never taken for the default."""
    with pytest.raises(ConfigError, match=name):
        load_config({"HOME": str(tmp_path), name: text})


@pytest.mark.parametrize(
    "text", [f"model = {'[' * 5000}{']' * 5000}", f"preserve_recent = {'9' * 10_000}", "model = {a = " * 3000]
)
def test_what_the_parser_cannot_bear_is_refused_by_name(tmp_path: Path, text: str) -> None:
    """Deeper or longer than the parser can read: an error of the file, as any other."""
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.toml: no valid TOML"):
        load_config({"LCC_CONFIG": str(file)})


def test_not_utf8_a_folder_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    """Each with the file's name, and none with a traceback."""
    file = tmp_path / "c.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="no valid TOML"):
        load_config({"LCC_CONFIG": str(file)})
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config({"LCC_CONFIG": str(tmp_path)})
    file.write_bytes(b"#" * 300_000)
    with pytest.raises(ConfigError, match="over"):
        load_config({"LCC_CONFIG": str(file)})


def test_a_named_file_that_is_missing_is_an_error_and_the_usual_one_is_not(tmp_path: Path) -> None:
    """LCC_CONFIG with a wrong path must not silently mean the defaults."""
    with pytest.raises(ConfigError, match="there is no such file"):
        load_config({"LCC_CONFIG": str(tmp_path / "none.toml")})
    assert load_config({"HOME": str(tmp_path)}) == Config()


def test_where_things_are(tmp_path: Path) -> None:
    """XDG's folders where they are absolute, else the ones under HOME."""
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "relative"}
    assert config_file(env) == Path("/c/lcc/config.toml")
    assert state_folder(env) == Path("/h/.local/state/lcc")
    assert state_folder({"LCC_STATE_DIR": "/s"}) == Path("/s")


def test_options_of_a_newer_plugin_are_passed_over_and_wrong_ones_are_not(tmp_path: Path) -> None:
    """An option we do not know may come from another version; one we know must be right."""
    assert load_config({"HOME": str(tmp_path)}, {"colour": "red", "preserve_recent": None}) == Config()
    assert load_config({"HOME": str(tmp_path)}, {"preserve_recent": 8.0}).preserve_recent == 8
    with pytest.raises(ConfigError, match="the plugin's options: provider"):
        load_config({"HOME": str(tmp_path)}, {"provider": "gpt"})


def test_the_daemon_follows_the_file_without_a_restart(world: World) -> None:
    """Off, on, unreadable, mended: the next call goes by what the file says then, and the process stays."""
    file = world.root / "home" / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True)
    event = make_event(world)
    pid = world.start()
    assert world.plan(event)["action"] == "replace"
    file.write_text("enabled = false\n")
    assert world.plan(event)["reason"] == "disabled"
    file.write_text("enabled = tru\n")
    broken = world.plan(event)
    assert broken["reason"] == "config"
    assert str(file) in str(broken["say"])
    assert "no valid TOML" in str(world.status()["config_problem"])
    file.write_text("preserve_recent = 100\n")
    assert world.plan(event)["reason"] == "nothing-new"
    file.unlink()
    assert world.plan(event)["action"] == "replace"
    assert world.pid() == pid


def test_the_asking_sessions_variables_count_not_the_daemons(world: World) -> None:
    """A daemon started from one session serves another with that one's settings."""
    world.start(LCC_ENABLED="0")
    event = make_event(world)
    assert world.plan(event)["action"] == "replace"
    assert world.plan(event, LCC_ENABLED="0")["reason"] == "disabled"
    assert world.plan(event, LCC_MIN_REDUCTION="0.999")["reason"] == "too-little"
    assert world.plan(event, LCC_MIN_REDUCTION="lots")["reason"] == "config"


def test_the_plugins_options_are_honoured(world: World) -> None:
    """What the user chose in Claude Code's own settings reaches the pass."""
    world.start()
    assert world.plan(make_event(world, options={"enabled": False}))["reason"] == "disabled"
    assert world.plan(make_event(world, options={"preserve_recent": 100}))["reason"] == "nothing-to-remove"
    assert world.plan(make_event(world, options={"provider": "gpt"}))["reason"] == "config"


def test_stashed_puts_its_objects_where_the_configuration_says(world: World) -> None:
    """`rules_mode = "stashed"` with a folder of one's own: what the plan points at can be recalled from there."""
    file = world.root / "home" / ".config" / "lcc" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'rules_mode = "stashed"\nstash_dir = "{world.root}/stash"\n')
    event = that_can_recall(world, make_event(world, files=40))
    for path in world.project.iterdir():
        path.unlink()  # nothing is on disk any more: only the stash can give it back
    plan = world.plan(event)
    assert plan["action"] == "replace"
    originals = {
        result["tool_use_id"]: result["text"]
        for message in json.loads(event)["messages"]
        for result in message.get("toolResults", [])
    }
    call, note = next((call, note) for call, note in plan["results"].items() if "lcc recall" in note)  # type: ignore[attr-defined]
    words = [PYTHON, "-c", "from lcc.cli import main; main()", "recall", note.partition("lcc recall ")[2][:12]]
    recalled = subprocess.run(words, env=world.env, capture_output=True, check=True, timeout=60).stdout.decode()
    assert originals[call] in recalled


def test_the_request_log_is_off_until_it_is_switched_on(world: World) -> None:
    """One line a pass, only where the user asked for it."""
    from daemon.daemon_world import wait_until

    world.start()
    world.plan(make_event(world))
    log = world.state / "requests.jsonl"
    assert not log.exists()
    world.plan(make_event(world), LCC_REQUEST_LOG="1")
    assert wait_until(log.exists)
    assert os.stat(log).st_mode & 0o777 == 0o600


def test_a_pipe_in_the_files_place_is_named_and_never_waited_for(tmp_path: Path) -> None:
    """A FIFO would hold whoever opens it, and with it the whole daemon."""
    pipe = tmp_path / "config.toml"
    os.mkfifo(pipe)

    with pytest.raises(ConfigError, match="not a regular file"):
        load_config({}, path=pipe)
