"""The table of options: each is one field here, and everything that knows of it is made from its row.

A field's type and default stand as in every dataclass; its `Option` says what it is for, what it may be and where it
can be set. From that come the checks (Python, configuration, command line, MCP), the flags of ``lcc compact``, the
fields of the MCP tool, the plugin's form and the tables in the documents (``scripts/write_tables.py``). The defaults
of a pass are the seed's sections 2 to 6; those of a live session are what its section 5 recommends.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from typing import Annotated, get_type_hints

from lcc.contract.modes import LIVE_MODES, Proactive, Provider, RulesMode
from lcc.contract.option import Form, Needs, Option, RequestError, Row, row_of

__all__ = [
    "DEFAULT_JEV_MODEL",
    "REFUSED_FLAGS",
    "REFUSED_FLAG_FAMILY",
    "LiveOptions",
    "PassOptions",
    "RequestError",
    "Row",
    "config_rows",
    "flags_that_need",
    "row_of_flag",
    "table",
]

REFUSED_FLAGS = (
    *("--trim-threshold", "--preserve-tail", "--min-block-chars", "--keep-regex", "--protect-prefix"),
    *("--prefix-marker", "--no-marker", "--marker-scores", "--append-to", "--require-exact-tokens"),
    *("--semantic-verify", "--no-sufficiency", "--max-restorations", "--confidence-threshold"),
)
"""Flags of block mode that would be ignored in silence here (the seed's section 6). Its ``--decisions-cache`` is
honoured: the seed's section 9 asks for it."""
REFUSED_FLAG_FAMILY = "--laya-"

DEFAULT_JEV_MODEL = "jev-latest"
"""The model that the environment may name another in place of (`lcc.judge.settings`)."""

_PROVIDER = Option(
    "Who decides what may go: rules (no network, no model), or a judge: jev, laya, or auto: Jev, "
    "else a Laya that answers, else everything is kept.",
    flag="--provider",
    flag_help="jev, laya, auto or rules. auto: Jev, else a Laya that answers, else everything is kept. "
    "Default: rules if an option of the rules is given, else auto; with --fork and no rules mode, the rules in "
    "mode auto.",
    in_config=True,
    in_mcp=True,
    mcp_default="rules",
    form=Form("Provider", "Who decides what may go: rules (no network and no model), or a judge: jev, laya or auto."),
)
_LIVE_MODES_WORDS = (
    "What the rules may take. lossless: repeats; recoverable: also file reads, proven on disk; stashed: also old "
    "outputs, put into the stash first; auto: like stashed, and then the long inputs of old calls if that does not "
    "free enough."
)
_RULES_MODE = Option(
    f"{_LIVE_MODES_WORDS} lossy (experimental): whatever looks stale or long, without proof.",
    needs="rules",
    flag="--rules-mode",
    in_config=True,
    in_mcp=True,
    form=Form(
        "Rules mode",
        "auto: what is least likely to be needed again, each with a proven way back. recoverable: repeats, and file "
        "reads proven on disk. lossless: repeats only. stashed: also old outputs, kept in the stash first.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions:
    """How one pass decides. Every value is checked: ``RequestError`` names the option that cannot be honoured.

    Budgets are in tokens, heads in characters, shares from 0 to 1.
    """

    question: Annotated[
        str,
        Option(
            "What the session will work on next; whatever it names is kept.", flag="--question", short="-q", in_mcp=True
        ),
    ] = ""
    provider: Annotated[Provider, _PROVIDER] = "auto"
    rules_mode: Annotated[RulesMode, _RULES_MODE] = "lossless"
    target: Annotated[
        float | None,
        Option(
            "How far the context is to come down: a share of the window (up to 1), or tokens. Without it goes what is "
            "not likely to be needed again.",
            low=0,
            needs="rules",
            flag="--target",
            in_config=True,
            in_mcp=True,
        ),
    ] = None
    inputs: Annotated[
        bool,
        Option(
            "auto: if results do not free enough, also take the long inputs of old calls.",
            needs="rules",
            flag="--no-inputs",
            flag_help="auto: leave the inputs of old calls alone.",
            in_config=True,
            in_mcp=True,
        ),
    ] = True
    stash: Annotated[
        bool,
        Option(
            "auto: stash what nothing else gives back; if off, take only what something else gives back.",
            needs="rules",
            flag="--no-stash",
            flag_help="auto: put nothing into the stash.",
            in_config=True,
            in_mcp=True,
        ),
    ] = True
    workspace_root: Annotated[
        str | None,
        Option(
            "The folder whose files prove what was read. Default: the session's own folder, if it exists.",
            kind="path",
            needs="proof",
            flag="--workspace-root",
            metavar="FOLDER",
            in_mcp=True,
        ),
    ] = None
    disk_check: Annotated[
        bool,
        Option(
            "Prove file reads on disk; off: judge them by the transcript alone.",
            needs="proof",
            flag="--no-disk-check",
            flag_help="Judge file reads by the transcript alone.",
            in_config=True,
            in_mcp=True,
        ),
    ] = True
    allow_command_pointers: Annotated[
        bool,
        Option(
            "Also point at read-only commands to run again.",
            needs="proof",
            flag="--allow-command-pointers",
            in_config=True,
            in_mcp=True,
        ),
    ] = False
    threshold: Annotated[
        float,
        Option(
            "Judge: keep at this probability or above.",
            low=0,
            high=1,
            needs="judge",
            flag="--threshold",
            in_config=True,
            in_mcp=True,
        ),
    ] = 0.5
    trim_head_chars: Annotated[
        int,
        Option(
            "Judge: how many characters of a trimmed result stay.",
            low=0,
            needs="judge",
            flag="--trim-head-chars",
            in_config=True,
        ),
    ] = 300
    preserve_recent: Annotated[
        int,
        Option(
            "How many of the newest messages are never touched.",
            low=0,
            flag="--preserve-recent",
            in_config=True,
            in_mcp=True,
            form=Form("Recent messages to keep", "The newest messages, which are never touched.", most=1000),
        ),
    ] = 6
    protect_tools: Annotated[
        tuple[str, ...],
        Option(
            "Tools whose calls and results are never touched, as globs: Bash, mcp__*.",
            flag="--protect-tool",
            flag_help="A tool whose calls and results are never touched, as a glob (mcp__*); can be repeated.",
            metavar="GLOB",
            in_config=True,
            in_mcp=True,
            form=Form("Tools to protect", "Tools whose results are never touched, as globs: Bash, mcp__*."),
        ),
    ] = ()
    protect_paths: Annotated[
        tuple[str, ...],
        Option(
            "Files and folders whose results are never touched, as globs: *.sql, docs, /srv/app/config/*.",
            flag="--protect-path",
            flag_help="A file or folder whose results are never touched, as a glob (*.sql, docs); can be repeated.",
            metavar="GLOB",
            in_config=True,
            in_mcp=True,
            form=Form("Paths to protect", "Files and folders whose results are never touched, as globs: *.sql, docs."),
        ),
    ] = ()
    max_state_tokens: Annotated[
        int, Option("Judge: budget for the conversation, in tokens.", low=1, needs="judge", flag="--max-state-tokens")
    ] = 25000
    max_request_tokens: Annotated[
        int, Option("Judge: budget for one request, in tokens.", low=1, needs="judge", flag="--max-request-tokens")
    ] = 30000
    batch_calls: Annotated[
        int, Option("Judge: the most calls in one request.", low=1, needs="judge", flag="--batch-size")
    ] = 8
    max_workers: Annotated[
        int, Option("Judge: the most requests at once.", low=1, needs="judge", flag="--max-workers")
    ] = 4
    min_reduction: Annotated[
        float,
        Option(
            "The share of the session's characters that must go for a compaction to be worth it.",
            low=0,
            high=1,
            flag="--min-reduction",
            in_config=True,
            in_mcp=True,
            form=Form(
                "Minimum reduction",
                "The share of the session that must go for a compaction to be worth it (0 to 1). "
                "Below it the session stays as it is while there is room, and else the built-in summary runs.",
            ),
        ),
    ] = 0.25
    model: Annotated[
        str | None,
        Option("The session's model, for counting tokens.", kind="name", flag="--model", in_config=True, in_mcp=True),
    ] = None
    jev_model: Annotated[
        str,
        Option("Judge: the model to ask of Jev.", kind="name", needs="judge", flag="--jev-model", in_config=True),
    ] = DEFAULT_JEV_MODEL
    laya_model: Annotated[
        str | None, Option("Judge: the model to ask of Laya.", kind="name", needs="judge", in_config=True)
    ] = None
    decisions_cache: Annotated[
        str | None,
        Option(
            "Judge: a file for its verdicts, so that a later pass asks only about what is new.",
            kind="path",
            needs="judge",
            flag="--decisions-cache",
            metavar="FILE",
        ),
    ] = None
    judge_key_file: Annotated[
        str | None,
        Option(
            "Judge: a private file (mode 0600) with Jev's key, read where TYPESAFE_API_KEY is not set.",
            kind="path",
            needs="judge",
        ),
    ] = None

    def __post_init__(self) -> None:
        rows = table(LiveOptions) if isinstance(self, LiveOptions) else table(PassOptions)
        for row in rows.values():
            value: object = getattr(self, row.name)
            checked = row.checked(value)
            if checked is not value:
                object.__setattr__(self, row.name, checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions(PassOptions):
    """What a live session is compacted with: the options of a pass, with a live session's defaults, and its own."""

    provider: Annotated[Provider, _PROVIDER] = "rules"
    rules_mode: Annotated[RulesMode, replace(_RULES_MODE, help=_LIVE_MODES_WORDS, choices=LIVE_MODES)] = "auto"
    enabled: Annotated[
        bool,
        Option(
            "The off switch.",
            in_config=True,
            form=Form("Enabled", "Off leaves every compaction to the built-in summary."),
        ),
    ] = True
    judge_timeout_s: Annotated[
        float,
        Option(
            "Judge: how long a compaction waits for it, in seconds.",
            low=1,
            high=300,
            unit="seconds",
            needs="judge",
            in_config=True,
        ),
    ] = 15.0
    stash_dir: Annotated[str | None, Option("Where the stash is.", kind="path", absolute=True, in_config=True)] = None
    allow_recall: Annotated[
        bool,
        Option(
            "The agent may run `lcc recall`, one plain command that only reads, without asking for permission.",
            in_config=True,
            form=Form("Recall without asking", "The agent gets removed outputs back without a permission prompt."),
        ),
    ] = True
    proactive: Annotated[
        Proactive,
        Option(
            "Compact between turns, before the window is full. off; cold: once the prompt cache has run out, where it "
            "is worth it; early: also before that, where it soon pays itself back, or from `early_share` of the window "
            "on.",
            in_config=True,
            form=Form(
                "Before the window is full",
                "Compact between turns, in the terminal. cold: when the session has been idle for so long that the "
                "prompt cache has run out, since everything is written again then anyway. early: also while the cache "
                "lives, where that soon pays itself back. off: only when asked, or when the window is full.",
            ),
        ),
    ] = "cold"
    early_share: Annotated[
        float | None,
        Option(
            "Of `proactive` early: the share of the window from which on a session is compacted between turns, instead "
            "of where it pays itself back.",
            low=0,
            high=1,
            in_config=True,
            form=Form(
                "Early from", "Of early: compact from this share of the window on (0 to 1). Empty: where it pays."
            ),
        ),
    ] = None
    cache_life_s: Annotated[
        float,
        Option(
            "How long the prompt cache of your provider lives, in seconds; 0: as the session's own usage shows, five "
            "minutes or an hour.",
            low=0,
            high=86_400,
            unit="seconds",
            in_config=True,
        ),
    ] = 0.0
    status: Annotated[
        bool,
        Option(
            "Show how full the window is, and what can go, below the prompt.",
            in_config=True,
            form=Form("Status below the prompt", "Show how full the window is, and what can go, below the prompt."),
        ),
    ] = False
    request_log: Annotated[
        bool, Option("A line of figures, without content, for each pass of a live session.", in_config=True)
    ] = False
    idle_minutes: Annotated[
        float,
        Option(
            "The daemon stops after so long without a request or a live session; 0: never.",
            low=0,
            high=10_080,
            unit="minutes",
            in_config=True,
        ),
    ] = 30.0


@cache
def table(options: type[PassOptions]) -> Mapping[str, Row]:
    """The rows of `PassOptions` or `LiveOptions` by name, in the order in which they stand here."""
    hints = get_type_hints(options, include_extras=True)
    rows = {}
    for field in fields(options):
        if field.default is MISSING:
            raise AssertionError(f"{field.name}: every option has a default")
        rows[field.name] = row_of(field.name, hints[field.name], field.default)
    return rows


def config_rows() -> Mapping[str, Row]:
    """What the configuration may set, those of a live session first."""
    rows, of_a_pass = table(LiveOptions), table(PassOptions)
    order = sorted(rows.values(), key=lambda row: row.name in of_a_pass)
    return {row.name: row for row in order if row.option.in_config}


def row_of_flag(name: str) -> Row | None:
    """The row that a long flag of ``lcc compact`` sets; None for a flag that is no option of a pass."""
    return next((row for row in table(PassOptions).values() if row.option.flag == name), None)


def flags_that_need(*needs: Needs) -> tuple[str, ...]:
    """The long flags of the options that have an effect only beside one of ``needs``."""
    return tuple(
        row.option.flag for row in table(PassOptions).values() if row.option.flag and row.option.needs in needs
    )
