"""`pre-compact`: the module did not replace, so the same pass over the session file guides the built-in summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lcc.compaction.compact import CompactionError, compact
from lcc.config import Config, ConfigError, state_folder
from lcc.relevance.ports import Ports
from lcc.transcript import Transcript, TranscriptError
from lcc_daemon import guide
from lcc_daemon.commands.hook_input import HookInput, read_hook_input
from lcc_daemon.environment import environment_of, plugin_options
from lcc_daemon.protocol import Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.services import Services
from lcc_daemon.sessions import SessionFileError
from lcc_daemon.wishes import session_config


def answer(request: Request, call: Call, services: Services) -> Answer:
    """The guide's text for the summariser; nothing for a sub-agent's compaction, or where lcc is switched off."""
    hook = read_hook_input(request)
    env = environment_of(request)
    if hook.agent_id or not hook.transcript_path.startswith("/") or not hook.cwd.startswith("/"):
        return Answer()
    try:
        config = session_config(env, plugin_options(env), hook.session_id)
        if not config.enabled:
            return Answer()
        transcript = services.sessions.transcript(hook.session_id, Path(hook.transcript_path))
        return Answer(_guide(transcript, config, hook, env, services))
    except (ConfigError, CompactionError, SessionFileError, TranscriptError, OSError) as error:
        services.stats.error(f"pre-compact: {type(error).__name__}")
        services.log.warning("pre-compact: no guide: %s", type(error).__name__)
        return Answer(text=f"lcc: no guide for this summary: {type(error).__name__}\n")


def _guide(
    transcript: Transcript, config: Config, hook: HookInput, env: Mapping[str, str], services: Services
) -> bytes:
    """The guide's text; the compacted session, the report and what to give back are kept privately beside it."""
    # No judge here: the summary asks one anyway, and only what is proven on disk is of use to it.
    options = replace(config, provider="rules", question=hook.custom_instructions)
    ports = Ports(
        environ=env,
        stash_folder=Path(config.stash_dir) if config.stash_dir else None,
        stash_source=hook.transcript_path,
        stash_session=hook.session_id or None,
    )
    if transcript.cwd is None:
        transcript = replace(transcript, cwd=hook.cwd)
    compacted = compact(transcript, options, ports)
    report = compacted.report
    keepers = services.keepers
    folder = keepers.guide_folder(state_folder(env), hook.session_id)
    messages = guide.user_messages(transcript)
    back = guide.give_back_text(messages, guide.pointers(report), str(folder / "user-messages.txt"))
    words = "\n\n".join(messages).encode("utf-8", "surrogatepass")
    keepers.keep_to_give_back(folder, words, back.encode("utf-8", "replace"))
    keepers.keep_guide(folder, compacted.content or b"", report)
    return guide.guide_text(report).encode("utf-8", "replace")
