"""`session`: what `/lcc` says of the session, and the wishes that it takes for it alone.

The module asks with an event as for `compact`, and with the words behind `/lcc` as ``words``. The answer:
``{"v": 1, "text": Markdown, "now": true}``, ``now`` where a compaction is to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import orjson

from lcc.config import Config, ConfigError, load_config, state_folder
from lcc.contract.report_reader import read_report
from lcc.explain.grouped import explain, input_words, one_line
from lcc.log.lines import LogError
from lcc.log.recalls import recalls_in, recalls_path
from lcc.private_files import read_bounded
from lcc.tokens.savings import Savings, savings
from lcc.transcript import Json
from lcc_daemon.commands.compact import can_recall, ports_of
from lcc_daemon.compaction import Event, EventError, read_event
from lcc_daemon.environment import environment_of
from lcc_daemon.keepers import file_name
from lcc_daemon.look import LookError, look_at, read_lines, session_file, spending_of
from lcc_daemon.plan import VERSION, percent, thousands
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services
from lcc_daemon.wishes import WishError, Wishes, read_wishes, write_wishes

HELP = """\
`/lcc` shows this session. `/lcc now` compacts it. `/lcc explain` says what the newest compaction kept and removed, and
why. `/lcc keep PATH` protects a file, a folder or a glob in this session; `/lcc keep` lists them, `/lcc unkeep PATH`
takes one back. `/lcc off` leaves this session to the built-in summary, `/lcc on` takes that back."""
_REPORT_BYTES = 64 * 1024 * 1024
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """One `/lcc`: the session, its configuration with its wishes, and the words behind the command."""

    event: Event
    config: Config
    wishes: Wishes
    argument: str
    env: Mapping[str, str]
    services: Services

    @property
    def report_name(self) -> str:
        """How the reports of this session end."""
        return f"-{file_name(self.event.session_id)}.json"


def answer(request: Request, call: Call, services: Services) -> Answer:
    """The text for the user."""
    env = environment_of(request)
    try:
        body: Json = orjson.loads(request.body)
        event = read_event(request.body, may_be_empty=True)
        words = str(body.get("words") or "").split(maxsplit=1) if isinstance(body, dict) else []
        wishes = read_wishes(state_folder(env), event.session_id)
        config = wishes.on(load_config(env, event.options))
    except (ConfigError, EventError, orjson.JSONDecodeError) as error:
        return _answer(str(error))
    event = replace(event, can_recall=event.can_recall and can_recall(event, services))
    word, argument = (*words, "", "")[:2]
    do = _WORDS.get(word)
    if do is None:
        return _answer(f"`/lcc {one_line(word, 40)}` is not known. {HELP}")
    asked = Asked(event, config, wishes, argument.strip(), env, services)
    try:
        text = do(asked)
    except WishError as error:
        text = f"Not kept: {error}"
    return _answer(text, now=word == "now" and config.enabled)


def _show(asked: Asked) -> str:
    return "\n".join(_lines(asked))


def _lines(asked: Asked) -> Iterator[str]:
    event, config = asked.event, asked.config
    if event.context_tokens:
        of = f" of {thousands(event.window_tokens)} ({_share(event)})" if event.window_tokens else ""
        yield f"- context: {thousands(event.context_tokens)} tokens{of}"
    yield f"- can go now: {_can_go(asked)}"
    yield from _so_far(savings(spending_of(read_lines(session_file(event))), event.window_tokens))
    yield f"- had back: {_recalled(asked)}"
    if asked.wishes.keep:
        yield f"- kept in this session: {', '.join(f'`{one_line(path)}`' for path in asked.wishes.keep)}"
    yield f"- before the window is full: {config.proactive if config.enabled else 'off'}"
    yield ""
    yield HELP


def _share(event: Event) -> str:
    return f"{100 * (event.context_tokens or 0) // (event.window_tokens or 1)} %"


def _can_go(asked: Asked) -> str:
    if not asked.config.enabled:
        return "nothing: lcc is off for this session; `/lcc on` takes that back" if asked.wishes.off else "lcc is off"
    if not asked.event.messages:
        return "nothing yet"
    try:
        found = look_at(
            asked.event, asked.config, ports_of(asked.config, asked.event, asked.env, asked.services), asked.services
        )
    except LookError as error:
        return str(error)
    report = found.report
    share = report["reduction_ratio"]
    if not found.freed or not share:
        return "nothing yet"
    parts = [f"{report['tool_calls_replaced'] + report['tool_calls_deduped']} results", input_words(report)]
    little = "" if report["worth_it"] else f"; `/lcc now` asks for {100 * asked.config.min_reduction:g} %"
    removed = ", ".join(part for part in parts if part)
    return f"{percent(share)} % of the text, ~{thousands(found.freed)} tokens, by `{found.rung}`: {removed}{little}"


def _so_far(found: Savings) -> Iterator[str]:
    freed = sum(each.freed for each in found.rounds[1:])
    count = len(found.rounds) - 1 if found.rounds else 0
    if count < 1:
        yield "- removed so far: nothing"
        return
    yield f"- removed so far: {thousands(freed)} tokens in {count} compaction{'' if count == 1 else 's'}"
    if found.compactions:
        yield (
            f"- saved so far: ~{thousands(max(round(found.saved), 0))} tokens at the plain input price, "
            f"{percent(max(found.saved_share, 0.0))} % (estimated from the session's own requests)"
        )


def _recalled(asked: Asked) -> str:
    try:
        found = list(recalls_in(recalls_path(asked.env), asked.event.session_id))
    except LogError:
        found = []
    if not found:
        return "nothing"
    outputs = f"{len(found)} output{'' if len(found) == 1 else 's'}"
    return f"{outputs}, {sum(each.given_bytes for each in found):,} bytes"


def _now(asked: Asked) -> str:
    return "compacting" if asked.config.enabled else "lcc is off for this session: `/lcc on` takes that back"


def _explain(asked: Asked) -> str:
    folder = state_folder(asked.env) / "reports"
    try:
        newest = max(path for path in folder.iterdir() if path.name.endswith(asked.report_name))
        report = read_report(read_bounded(newest, _REPORT_BYTES, follow=False))
    except (OSError, ValueError):
        return "No compaction of this session has left a report yet."
    found = explain(report, _LISTED)
    lines = [
        f"{percent(report['reduction_ratio'])} % of {report['chars_before']:,} characters could go, by "
        f"`{report['rules_mode'] or report['provider_used']}`."
    ]
    for title, groups in (("Removed", found.removed), ("Kept", found.kept)):
        if groups:
            lines += ["", f"**{title}, and why**", ""]
            lines += [f"- {group.calls} calls, {group.chars_before:,} characters: {group.because}" for group in groups]
    return "\n".join([*lines, "", f"Each call: `lcc explain {newest}`"])


def _keep(asked: Asked) -> str:
    path = _unquoted(asked.argument)
    if path:
        keep = tuple(dict.fromkeys((*asked.wishes.keep, path)))
        write_wishes(state_folder(asked.env), asked.event.session_id, replace(asked.wishes, keep=keep))
        return f"From now on nothing of `{one_line(path)}` is removed in this session. `/lcc unkeep` takes it back."
    if not asked.wishes.keep:
        return "Nothing is kept in this session. `/lcc keep PATH` protects a file, a folder or a glob."
    return "\n".join(f"- `{one_line(path)}`" for path in asked.wishes.keep)


def _unkeep(asked: Asked) -> str:
    path = _unquoted(asked.argument)
    if path not in asked.wishes.keep:
        return f"`{one_line(path)}` is not kept in this session; `/lcc keep` lists what is."
    keep = tuple(known for known in asked.wishes.keep if known != path)
    write_wishes(state_folder(asked.env), asked.event.session_id, replace(asked.wishes, keep=keep))
    return f"`{one_line(path)}` is no longer kept."


def _off(asked: Asked) -> str:
    write_wishes(state_folder(asked.env), asked.event.session_id, replace(asked.wishes, off=True))
    return "lcc leaves this session to the built-in summary. `/lcc on` takes that back."


def _on(asked: Asked) -> str:
    write_wishes(state_folder(asked.env), asked.event.session_id, replace(asked.wishes, off=False))
    if load_config(asked.env, asked.event.options).enabled:
        return "lcc compacts this session."
    return "Nothing keeps lcc from this session, but the configuration has it off (`enabled`)."


def _unquoted(path: str) -> str:
    is_quoted = len(path) > 1 and path[0] == path[-1] and path[0] in "'\"`"
    return path[1:-1] if is_quoted else path.removeprefix("@")


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


def _answer(text: str, *, now: bool = False) -> Answer:
    return Answer(orjson.dumps({"v": VERSION, "text": text, "now": now}))
