"""Every option of the seed's section 6 is honoured, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.cli_world import World

from lcc.contract.options import REFUSED_FLAG_FAMILY, REFUSED_FLAGS

REFUSED = [*REFUSED_FLAGS, *(REFUSED_FLAG_FAMILY + word for word in ("model", "base-url", "anything-at-all"))]


def refuse(words: list[str]) -> str:
    """What the program says to these words of a command line, which it must refuse."""
    from lcc.commands.compact_options import refuse_options
    from lcc.commands.files import InputError

    with pytest.raises(InputError) as refused:
        refuse_options(words)
    return str(refused.value)


@pytest.mark.parametrize("form", [["{}", "3"], ["{}=3"], ["{}"], ["-q", "x", "{}"]])
@pytest.mark.parametrize("option", REFUSED)
def test_an_option_that_would_be_ignored_is_refused_by_name(option: str, form: list[str]) -> None:
    """However it is written, the message has its name."""
    assert option in refuse(["session.jsonl", *(word.format(option) for word in form)])


def test_all_refused_options_are_named_at_once(world: World) -> None:
    """One run tells everything that must go, exits 2 and writes nothing."""
    before = world.files()

    ran = world.compact(*(f"{option}=1" for option in REFUSED), "-o", "out.jsonl", "-r", "report.json")

    assert ran.code == 2
    assert all(option in ran.err for option in REFUSED)
    assert ran.err.count("\n") == 1
    assert world.files() == before


def test_a_value_is_never_taken_for_an_option(world: World) -> None:
    """A goal may be worded like an option, and what stands after -- is a file."""
    ran = world.compact("--dry-run", "-r", "-", "--question", "--laya-model")

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["objective"] == "--laya-model"
    assert "no such file" in world.lcc("compact", "--", "--laya-model").err


def test_blocks_of_documents_are_told_from_tool_outputs(world: World) -> None:
    """--mode blocks is bad input, and the text says what it is elsewhere and what to use here."""
    ran = world.compact("--mode", "blocks")

    assert ran.code == 2
    assert "blocks" in ran.err
    assert "in other tools" in ran.err
    assert "--rules-mode auto" in ran.err  # and that is one
    assert world.report(mode="auto")["worth_it"]


def test_tool_calls_is_the_mode_by_default(world: World) -> None:
    """Naming the mode changes nothing."""
    assert world.report()["mode"] == world.report("--mode", "tool-calls")["mode"] == "tool-calls"


def test_a_mechanical_judge_is_refused_with_the_reason(world: World) -> None:
    """A lexical scorer cannot answer a semantic question, and the message says so."""
    ran = world.lcc("compact", "session.jsonl", "--provider", "mechanical")

    assert ran.code == 2
    assert "semantic question" in ran.err


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--provider", "oracle"),
        ("--rules-mode", "brutal"),
        ("--format", "docx"),
        ("--threshold", "1.5"),
        ("--threshold", "nan"),
        ("--min-reduction", "-0.1"),
        ("--preserve-recent", "-1"),
        ("--trim-head-chars", "-1"),
        ("--batch-size", "0"),
        ("--max-workers", "0"),
        ("--max-state-tokens", "0"),
        ("--max-request-tokens", "0"),
        ("--workspace-root", "no-such-folder"),
        ("--threshold", "half"),
    ],
)
def test_a_value_that_cannot_be_is_bad_input_with_the_option(world: World, option: str, value: str) -> None:
    """The message names the option, and nothing is written."""
    before = world.files()

    ran = world.lcc("compact", "session.jsonl", option, value, "-o", "out.jsonl")

    assert ran.code == 2
    assert option in ran.err
    assert "Traceback" not in ran.err
    assert world.files() == before


def test_question_is_the_objective(world: World) -> None:
    """-q and --question both set it."""
    assert world.report("-q", "finish the parser fix")["objective"] == "finish the parser fix"
    assert world.report("--question", "and then")["objective"] == "and then"


def test_preserve_recent_sets_how_much_is_pinned(world: World) -> None:
    """More messages, more pins; the report says how many were asked for."""
    few, many = world.report("--preserve-recent", "0"), world.report("--preserve-recent", "20")

    assert few["preserve_recent"] == 0
    assert few["blocks_protected"] < many["blocks_protected"]


def test_min_reduction_sets_worth_it(world: World) -> None:
    """The same pass is worth it or not."""
    low, high = world.report("--min-reduction", "0.1"), world.report("--min-reduction", "0.99")

    assert low["reduction_ratio"] == high["reduction_ratio"]
    assert (low["worth_it"], high["worth_it"]) == (True, False)


def test_the_session_s_own_folder_is_the_workspace(world: World) -> None:
    """Without --workspace-root the disk of the session's folder decides, and report and summary say so."""
    report = world.report()

    assert report["recoverability_check"] == "disk"
    assert (report["workspace_root"], report["workspace_root_source"]) == (str(world.workspace), "session")
    assert f"workspace: {world.workspace} (the session's own folder)" in world.compact("--dry-run").err


def test_a_named_workspace_is_taken(world: World) -> None:
    """--workspace-root is made absolute."""
    report = world.report("--workspace-root", "ledger")

    assert (report["workspace_root"], report["workspace_root_source"]) == (str(world.workspace), "option")


def test_without_the_disk_check_the_transcript_decides(world: World) -> None:
    """--no-disk-check: no workspace, no verified note."""
    report = world.report("--no-disk-check")

    assert (report["recoverability_check"], report["workspace_root"]) == ("transcript_proxy", None)
    assert all("disk" not in record for record in report["decisions"])


def test_a_session_whose_folder_is_gone_falls_to_the_transcript(world: World) -> None:
    """No folder, no disk check; no error either."""
    world.workspace.rename(world.folder / "moved")

    report = world.report()

    assert (report["recoverability_check"], report["workspace_root_source"]) == ("transcript_proxy", None)


def test_command_pointers_are_off_until_they_are_allowed(world: World) -> None:
    """--allow-command-pointers changes why a command's output stays, or lets it go."""
    reasons = [record["reason"] for record in world.report()["decisions"]]
    allowed = [record["reason"] for record in world.report("--allow-command-pointers")["decisions"]]

    assert "command_pointers_disabled" in reasons
    assert "command_pointers_disabled" not in allowed


def test_an_option_of_the_rules_means_the_rules(world: World) -> None:
    """Without --provider: auto asks a judge, but who names a rules mode wants the rules."""
    with_mode = world.lcc("compact", "session.jsonl", "--rules-mode", "recoverable", "--dry-run", "-r", "-")
    without = world.lcc("compact", "session.jsonl", "--dry-run", "-r", "-")

    assert json.loads(with_mode.out)["provider_used"] == "rules"
    assert json.loads(without.out)["provider_requested"] == "auto"


def test_no_judge_means_that_everything_is_kept_and_said(world: World) -> None:
    """The seed's fail-safe row for "no key", with a way out on stderr."""
    ran = world.lcc("compact", "session.jsonl", "--provider", "jev", "-o", "out.jsonl", "-r", "report.json")
    report = json.loads((world.folder / "report.json").read_text())

    assert ran.code == 0
    assert (report["degraded"], report["semantic_guarantee"]) == (True, "none")
    assert (world.folder / "out.jsonl").read_bytes() == world.session.read_bytes()
    assert "--provider rules" in ran.err


def test_an_option_without_effect_is_said(world: World) -> None:
    """A judge's option in a rules pass does no harm, and a person is told that it does nothing."""
    ran = world.compact("--threshold", "0.9", "--dry-run")

    assert ran.code == 0
    assert "--threshold has no effect" in ran.err


def test_the_format_can_be_named(world: World) -> None:
    """The right name changes nothing; a wrong one is bad input with the file's name."""
    assert world.report("--format", "claude-code")["format"] == "claude-code"
    wrong = world.compact("--format", "codex", "--dry-run")

    assert wrong.code == 2
    assert "session.jsonl" in wrong.err


def test_the_model_and_the_budgets_are_taken(world: World) -> None:
    """Options for a judge are read also where none answers."""
    ran = world.lcc(
        "compact",
        "session.jsonl",
        *("--provider", "jev", "--threshold", "0.7", "--trim-head-chars", "10", "--max-state-tokens", "9000"),
        *("--max-request-tokens", "9500", "--batch-size", "3", "--max-workers", "2", "--jev-model", "jev-2"),
        *("--model", "claude-sonnet-4-5", "--dry-run", "-r", "-"),
    )

    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["provider_requested"] == "jev"


def test_the_model_sets_how_tokens_are_counted(world: World) -> None:
    """Older models have another vocabulary: fewer tokens for the same text."""
    older, newer = world.report("--model", "claude-sonnet-4-5"), world.report("--model", "claude-opus-4-8")

    assert older["tokens_before"] < newer["tokens_before"]
    assert older["chars_before"] == newer["chars_before"]


@pytest.mark.parametrize("mode", ["lossless", "recoverable", "stashed", "lossy"])
def test_every_rules_mode_runs(world: World, mode: str) -> None:
    """The report names the mode and what it vouches for."""
    report = world.report(mode=mode)

    assert report["rules_mode"] == mode
    assert report["semantic_guarantee"] == ("none" if mode == "lossy" else mode)


def test_help_names_every_honoured_option(world: World) -> None:
    """The seed's list, and this project's own."""
    honoured = (
        "--question --provider --threshold --trim-head-chars --preserve-recent --max-state-tokens "
        "--max-request-tokens --batch-size --max-workers --min-reduction --model --jev-model --output --report "
        "--dry-run --mode --rules-mode --workspace-root --no-disk-check --allow-command-pointers --format"
    ).split()

    shown = world.lcc("compact", "--help").text

    assert [option for option in honoured if option not in shown] == []


def test_the_words_that_take_a_value_are_those_of_the_program() -> None:
    """The list that tells values from options has every option of the program that takes one."""
    import inspect

    import typer
    from typer.main import get_command

    from lcc.commands.compact import compact
    from lcc.commands.compact_options import TAKES_VALUE

    app = typer.Typer()
    app.command()(compact)
    options = [p for p in get_command(app).params if p.param_type_name == "option"]
    taking = {name for p in options if not getattr(p, "is_flag", False) for name in p.opts}

    assert taking == TAKES_VALUE
    assert inspect.signature(compact).parameters


def test_a_workspace_elsewhere_is_checked_there(world: World, tmp_path: Path) -> None:
    """A root that exists lets the disk decide even where the session's own folder is gone."""
    world.workspace.rename(world.folder / "moved")

    report = world.report("--workspace-root", tmp_path)

    assert report["recoverability_check"] == "disk"
    assert report["tool_calls_replaced"] == 0


def test_the_first_example_of_the_specification_runs(world: World) -> None:
    """Its transcript, its two commands; without a key everything is kept and the same bytes come out."""
    transcript = """{
  "messages": [
    {"role": "user", "text": "Fix the failing parser test. Never edit src/generated."},
    {"role": "assistant", "text": "Running the suite.",
     "toolUses": [{"tool_use_id": "toolu_1", "tool": "Bash", "input": {"command": "pytest -q"}}]},
    {"role": "user", "toolResults": [{"tool_use_id": "toolu_1", "text": "1 failed, 24 passed"}]}
  ]
}
"""
    (world.folder / "transcript.json").write_text(transcript)
    words = ("-q", "finish the parser fix", "--mode", "tool-calls", "-o", "compacted.json", "-r", "report.json")

    compacted = world.lcc("compact", "transcript.json", *words)
    explained = world.lcc("explain", "report.json")

    assert (compacted.code, explained.code) == (0, 0), compacted.err + explained.err
    assert (world.folder / "compacted.json").read_text() == transcript
    assert "Goal: finish the parser fix" in explained.text
