"""`slash`: what `/lcc` says of the session, and the wishes that it takes for it alone.

Claude Code asks before it makes a prompt of one of the plugin's commands (`UserPromptExpansion`). The answer blocks
that, so no model is asked, and its reason is what the user reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from lcc.compaction.compact import CompactionError, compact
from lcc.config import Config, ConfigError, load_config, reports_folder, state_folder
from lcc.contract.report_reader import ReportError, read_report
from lcc.explain.grouped import explain, input_words, one_line
from lcc.log.lines import LogError
from lcc.log.recalls import recalls_in, recalls_path
from lcc.private_files import read_bounded
from lcc.relevance import TranscriptCompactionResult
from lcc.relevance.ports import Ports
from lcc.stash import StashFolderError
from lcc.tokens.requests import spending_of
from lcc.tokens.savings import Savings, savings
from lcc.transcript import TranscriptError
from lcc_daemon.commands.hook_input import HookInput, read_hook_input
from lcc_daemon.environment import environment_of, plugin_options
from lcc_daemon.figures import newest_context
from lcc_daemon.keepers import REPORT_BYTES, file_name
from lcc_daemon.plan import percent, thousands
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services
from lcc_daemon.sessions import FOLLOW_LIMIT, SessionFileError
from lcc_daemon.wishes import WishError, Wishes, read_wishes, wish_now, write_wishes

NAME = "lcc:lcc"
"""The plugin's command as Claude Code names it; in the prompt of a terminal /lcc is completed to it."""
HELP = (
    f"/{NAME} shows this session. Words behind it: now (compact it), explain (what the newest compaction kept and "
    "removed, and why), keep PATH (protect a file, a folder or a glob here; without PATH: list them), unkeep PATH, off "
    "(leave this session to the built-in summary), on (take that back)."
)
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """One command of the user's: the session, its configuration with its wishes, and the path behind the word."""

    hook: HookInput
    config: Config
    wishes: Wishes
    path: str
    env: Mapping[str, str]
    services: Services

    @property
    def state(self) -> Path:
        """The state folder of the asking session."""
        return state_folder(self.env)

    def write(self, wishes: Wishes) -> None:
        """Raises WishError."""
        write_wishes(self.state, self.hook.session_id, wishes)


def answer(request: Request, call: Call, services: Services) -> Answer:
    """The text for the user, as the block of the prompt that the command would become."""
    hook = read_hook_input(request)
    env = environment_of(request)
    if hook.command_name != NAME:
        return Answer()
    word, _, argument = hook.command_args.strip().partition(" ")
    do = _WORDS.get(word.lower())
    if do is None:
        return Answer(blocked(f"/{NAME} {one_line(word, 40)} is not known. {HELP}"))
    if argument.strip() and word.lower() not in _WITH_PATH:
        return Answer(blocked(f"/{NAME} {word} takes nothing behind it; nothing was done. {HELP}"))
    try:
        wishes = read_wishes(state_folder(env), hook.session_id)
        config = wishes.on(load_config(env, plugin_options(env)))
        text = do(Asked(hook, config, wishes, unquoted(argument.strip()), env, services))
    except ConfigError as error:
        text = str(error)
    except WishError as error:
        text = f"Not kept: {error}"
    return Answer(blocked(text))


def unquoted(path: str) -> str:
    """A path as it is meant, of one that was typed in quotes or behind an @."""
    is_quoted = len(path) > 1 and path[0] == path[-1] and path[0] in "'\"`"
    return path[1:-1] if is_quoted else path.removeprefix("@")


def blocked(text: str) -> bytes:
    """What Claude Code is answered, so that it shows ``text`` and asks no model."""
    event = {"hookEventName": "UserPromptExpansion", "suppressOriginalPrompt": True}
    return orjson.dumps({"decision": "block", "reason": text, "hookSpecificOutput": event})


def _show(asked: Asked) -> str:
    return "\n".join(_lines(asked))


def _lines(asked: Asked) -> Iterator[str]:
    try:
        raw = read_bounded(Path(asked.hook.transcript_path), FOLLOW_LIMIT)
    except OSError:
        yield "This session has nothing yet that lcc can read."
        yield HELP
        return
    found = savings(spending_of(raw.split(b"\n")))
    context = newest_context(Path(asked.hook.transcript_path))
    if context:
        yield f"- context: {thousands(context)} tokens, as of the newest request"
    yield f"- can go now: {_can_go(asked, context)}"
    yield from _so_far(found)
    yield f"- had back: {_recalled(asked)}"
    if asked.wishes.keep:
        yield f"- kept in this session: {', '.join(one_line(path) for path in asked.wishes.keep)}"
    yield f"- before the window is full: {asked.config.proactive if asked.config.enabled else 'off'}"
    yield HELP


def _can_go(asked: Asked, context: int | None) -> str:
    if not asked.config.enabled:
        return "nothing: lcc is off for this session; /lcc:lcc on takes that back" if asked.wishes.off else "lcc is off"
    try:
        found = _look(asked)
    except (CompactionError, StashFolderError, SessionFileError, TranscriptError, OSError) as error:
        return str(error)
    report, session = found.report, asked.hook.session_id
    figures = asked.services.book.figures(session, context, found.transcript, found.edits, report)
    freed, share = figures.before - figures.after, report["reduction_ratio"]
    if freed <= 0 or not share:
        return "nothing yet"
    parts = [f"{report['tool_calls_replaced'] + report['tool_calls_deduped']} results", input_words(report)]
    removed = ", ".join(part for part in parts if part)
    little = "" if report["worth_it"] else f"; a compaction asks for {100 * asked.config.min_reduction:g} %"
    return f"{percent(share)} % of the text, ~{thousands(freed)} tokens, by {report['rules_mode']}: {removed}{little}"


def _look(asked: Asked) -> TranscriptCompactionResult:
    """The pass that a compaction would run, by the rules alone; nothing is written."""
    hook, services = asked.hook, asked.services
    transcript = services.sessions.transcript(hook.session_id, Path(hook.transcript_path))
    ports = Ports(
        environ=asked.env,
        stash_folder=Path(asked.config.stash_dir) if asked.config.stash_dir else None,
        can_recall=services.keepers.can_recall(services.folder, hook.session_id),
        dry_run=True,
    )
    transcript = replace(transcript, cwd=transcript.cwd or hook.cwd)
    return compact(transcript, replace(asked.config, provider="rules"), ports, rendered=False).result


def _so_far(found: Savings) -> Iterator[str]:
    count = len(found.rounds) - 1 if found.rounds else 0
    if count < 1:
        yield "- removed so far: nothing"
        return
    freed = sum(each.freed for each in found.rounds[1:])
    tokens = f"{thousands(freed)} tokens" if freed > 0 else "not measured yet,"
    yield f"- removed so far: {tokens} in {count} compaction{'' if count == 1 else 's'}"
    if found.saved > 0:
        share = percent(found.saved / found.without) if found.without else 0
        yield (
            f"- saved so far: ~{thousands(round(found.saved))} tokens at the plain input price, {share} % "
            "(estimated from the session's own requests)"
        )


def _recalled(asked: Asked) -> str:
    try:
        found = list(recalls_in(recalls_path(asked.env), asked.hook.session_id))
    except LogError:
        found = []
    if not found:
        return "nothing"
    return f"{len(found)} output{'' if len(found) == 1 else 's'}, {sum(each.given_bytes for each in found):,} bytes"


def _now(asked: Asked) -> str:
    if not asked.config.enabled:
        return "lcc is off for this session: /lcc:lcc on takes that back."
    wish_now(asked.state, asked.hook.session_id)
    return "The session is compacted in a moment. Outside of a terminal, type /compact: it does the same."


def _explain(asked: Asked) -> str:
    try:
        newest = max(reports_folder(asked.state).glob(f"*-{file_name(asked.hook.session_id)}.json"))
        report = read_report(read_bounded(newest, REPORT_BYTES, follow=False))
    except (OSError, ValueError, ReportError):
        return "No compaction of this session has left a report yet."
    found = explain(report, _LISTED)
    mode = report["rules_mode"] or report["provider_used"]
    lines = [f"{percent(report['reduction_ratio'])} % of {report['chars_before']:,} characters could go, by {mode}."]
    for title, groups in (("Removed", found.removed), ("Kept", found.kept)):
        if groups:
            lines += [f"{title}, and why:"]
            lines += [
                f"- {_calls(group.calls)}, {group.chars_before:,} characters: {group.because}" for group in groups
            ]
    return "\n".join([*lines, f"Each call: lcc explain {newest}"])


def _calls(count: int) -> str:
    return f"{count} call{'' if count == 1 else 's'}"


def _keep(asked: Asked) -> str:
    path = asked.path
    if path:
        asked.write(replace(asked.wishes, keep=tuple(dict.fromkeys((*asked.wishes.keep, path)))))
        return f"From now on nothing of {one_line(path)} is removed in this session. /lcc:lcc unkeep takes it back."
    if not asked.wishes.keep:
        return "Nothing is kept in this session. /lcc:lcc keep PATH protects a file, a folder or a glob."
    return "\n".join(f"- {one_line(path)}" for path in asked.wishes.keep)


def _unkeep(asked: Asked) -> str:
    path = asked.path
    if path not in asked.wishes.keep:
        return f"{one_line(path) or 'Nothing named'} is not kept in this session; /lcc:lcc keep lists what is."
    asked.write(replace(asked.wishes, keep=tuple(known for known in asked.wishes.keep if known != path)))
    return f"{one_line(path)} is no longer kept."


def _off(asked: Asked) -> str:
    asked.write(replace(asked.wishes, off=True))
    return "lcc leaves this session to the built-in summary. /lcc:lcc on takes that back."


def _on(asked: Asked) -> str:
    asked.write(replace(asked.wishes, off=False))
    if load_config(asked.env, plugin_options(asked.env)).enabled:
        return "lcc compacts this session."
    return "Nothing keeps lcc from this session, but the configuration has it off (enabled)."


_WITH_PATH = ("keep", "unkeep")
_WORDS: Mapping[str, Callable[[Asked], str]] = {
    "": _show,
    "now": _now,
    "explain": _explain,
    "keep": _keep,
    "unkeep": _unkeep,
    "off": _off,
    "on": _on,
    "help": lambda asked: HELP,
}
