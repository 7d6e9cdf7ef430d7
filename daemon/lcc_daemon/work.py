"""What the daemon does for each command of a hook. Runs in worker threads; knows nothing of sockets."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from lcc.config import Config, ConfigError, load_config, state_folder
from lcc.contract.report import Report
from lcc.relevance import TranscriptCompactionResult, run_pass
from lcc.relevance.context import PassContext
from lcc.transcript import Transcript, TranscriptError, render
from lcc_daemon import guide
from lcc_daemon.compaction import Done, Event, EventError, Help, compact_event, read_event, request_for
from lcc_daemon.figures import Figures, TokenBook
from lcc_daemon.logs import failure_of
from lcc_daemon.plan import HandOver, Replace, remove_old_parts, to_stdout
from lcc_daemon.protocol import HOOKS, Answer, Request
from lcc_daemon.server import Call
from lcc_daemon.sessions import SessionFileError, Sessions
from lcc_daemon.stats import Stats, write_private
from lcc_hook.files import read_small, write_small

if TYPE_CHECKING:
    import httpx

REPORTS_KEPT = 50
GUIDES_KEPT = 20
GIVE_BACK_SECONDS = 15 * 60
SESSIONS_REMEMBERED = 1000
HOOK_INPUT_LIMIT = 1024 * 1024

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")


class Work:
    """Answers the hooks' commands. ``folder`` is the runtime folder, ``env`` the daemon's own environment."""

    def __init__(self, folder: bytes, env: Mapping[str, str], stats: Stats, log: logging.Logger) -> None:
        self._folder = folder
        self._env = env
        self._stats = stats
        self._log = log
        self._book = TokenBook()
        self._later = ThreadPoolExecutor(1, thread_name_prefix="lcc-later")
        self._client: httpx.Client | None = None
        self._guard = threading.Lock()
        self._passed: dict[tuple[str, str], None] = {}
        self.sessions = Sessions(log, self._measure)
        self._serving = 0
        self.is_warm = False
        self._commands: dict[str, Callable[[Request, Call], Answer]] = {
            "compact": self._compact,
            "session-start": self._session_start,
            "pre-compact": self._pre_compact,
            "post-compact": self._post_compact,
            "session-end": self._session_end,
            "ping": lambda request, call: Answer(b"pong"),
        }

    def handle(self, request: Request, call: Call) -> Answer:
        """One request's answer; the protocol lets only known commands through."""
        if request.command in HOOKS:
            self._later.submit(self._note_hook, request.command, state_folder(self._environment(request)))
        with self._guard:
            self._serving += 1
        try:
            return self._commands[request.command](request, call)
        finally:
            with self._guard:
                self._serving -= 1

    def warm_up(self) -> None:
        """Load what the first request would otherwise wait for."""
        try:
            from lcc.tokens import counter

            counter(load_config(self._env).model).count("warm")
        except (ConfigError, OSError) as error:
            self._log.warning("warming up: %s", failure_of(error))
        self.is_warm = True

    def close(self) -> None:
        """Finish what is written in the background; drop connections."""
        self._later.shutdown(wait=True)
        if self._client is not None:
            self._client.close()

    def tidy(self) -> None:
        """What is done now and then: parts of plans that were read long ago."""
        remove_old_parts(self._parts_folder())

    # ---------------------------------------------------------------- session.compact

    def _compact(self, request: Request, call: Call) -> Answer:
        done = self._decide(request, call)
        reason = done.plan.reason if isinstance(done.plan, HandOver) else "replace"
        self._log.info("compact: %s, %d results removed, %d bytes", reason, done.removed, done.saved_bytes)
        return Answer(to_stdout(done.encoded, self._parts_folder()))

    def _decide(self, request: Request, call: Call) -> Done:
        env = self._environment(request)
        try:
            event = read_event(request.body)
            config = load_config(env, event.options)
        except EventError as error:
            return _refusal(error.reason, str(error))
        except ConfigError as error:
            self._stats.error("configuration")
            return _refusal("config", str(error))
        if config.provider != "rules":
            call.more_time(int(config.judge_timeout_s * 1000) + 3000)
        key = (event.session_id, event.agent_id)
        state = state_folder(env)
        lent = Help(
            context=self._context(config, event, env),
            judge_client=self._judge_client,
            keep_report=lambda event, report: self._keep_report(state, event, report),
            figures=self._figures,
            seen_before=key in self._passed,
        )
        done = compact_event(event, config, lent)
        if config.request_log and done.report is not None:
            self._later.submit(self._log_pass, env, done.report)
        if isinstance(done.plan, Replace) and not call.cancelled.is_set():
            self._remember(key)
            self._later.submit(self._stats.add_saved, done.saved_bytes)
            with contextlib.suppress(OSError):
                self._guide_folder(state, event.session_id).joinpath("give-back.txt").unlink()
        return done

    @staticmethod
    def _context(config: Config, event: Event, env: Mapping[str, str]) -> PassContext:
        """The asking session's keys, and where `stashed` puts what it removes, which this session will name."""
        if config.rules_mode != "stashed":
            return PassContext(environ=env)
        from lcc.stash import UNNAMED_SESSION, Stash, stash_folder

        folder = Path(config.stash_dir) if config.stash_dir else stash_folder(env)
        source = event.transcript_path if event.transcript_path.startswith("/") else None
        return PassContext(stash=Stash(folder, event.session_id or UNNAMED_SESSION, source), environ=env)

    def _log_pass(self, env: Mapping[str, str], report: Report) -> None:
        from lcc.log.request_log import RequestLogError, append, log_path

        try:
            append(report, client_version=None, path=log_path(env))
        except RequestLogError as error:
            self._log.warning("request log: %s", type(error).__name__)

    def _remember(self, key: tuple[str, str]) -> None:
        with self._guard:
            self._passed.pop(key, None)
            self._passed[key] = None
            while len(self._passed) > SESSIONS_REMEMBERED:
                del self._passed[next(iter(self._passed))]

    def _judge_client(self) -> httpx.Client:
        """The one client for judges, whose connections stay open between compactions."""
        with self._guard:
            if self._client is None:
                from lcc.judge.client import build_client

                self._client = build_client()
            return self._client

    def _measure(self, session_id: str, transcript: Transcript) -> None:
        """A followed session's tokens, before a compaction asks for them; whoever is served meanwhile goes first."""
        self._book.measure(session_id, transcript, self._give_way)

    def _give_way(self) -> None:
        while self._serving:
            time.sleep(0.01)

    def _figures(self, event: Event, result: TranscriptCompactionResult) -> Figures:
        path = event.transcript_path
        file = Path(path) if path.startswith("/") and not event.agent_id else None
        return self._book.figures(event.session_id, file, result.transcript, result.edits, result.report)

    def _keep_report(self, state: Path, event: Event, report: Report) -> str | None:
        """Where the report will stand; it is written while the answer is already on its way."""
        session = event.session_id if _SAFE_ID.match(event.session_id) else "session"
        name = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 10**6:06d}-{session}.json"
        path = state / "reports" / name
        self._later.submit(self._write_report, path, report)
        return str(path)

    def _write_report(self, path: Path, report: Report) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, orjson.dumps(report, option=orjson.OPT_INDENT_2))
            for old in sorted(path.parent.glob("*.json"))[:-REPORTS_KEPT]:
                old.unlink(missing_ok=True)
        except (OSError, TypeError) as error:
            self._log.warning("report not kept: %s", failure_of(error))

    # ---------------------------------------------------------------- command hooks

    def _session_start(self, request: Request, call: Call) -> Answer:
        hook = _hook_input(request)
        data = request.env.get("CLAUDE_PLUGIN_DATA", "")
        if data.startswith("/") and read_small(self._folder + b"/plugin-data") != os.fsencode(data):
            write_small(self._folder + b"/plugin-data", os.fsencode(data))
        session, path = hook.get("session_id", ""), hook.get("transcript_path", "")
        if not hook.get("agent_id") and session and path.startswith("/"):
            self.sessions.follow(session, Path(path))
        if hook.get("source") != "compact" or hook.get("agent_id"):
            return Answer()
        kept = self._guide_folder(state_folder(self._environment(request)), session) / "give-back.txt"
        try:
            fresh = time.time() - kept.stat().st_mtime < GIVE_BACK_SECONDS
            text = kept.read_bytes() if fresh else b""
            kept.unlink()
        except OSError:
            return Answer()
        return Answer(text)

    def _pre_compact(self, request: Request, call: Call) -> Answer:
        """The module did not replace: run the same pass over the session file, and guide the summariser with it."""
        hook = _hook_input(request)
        env = self._environment(request)
        session, path, cwd = (hook.get(key, "") for key in ("session_id", "transcript_path", "cwd"))
        if hook.get("agent_id") or not path.startswith("/") or not cwd.startswith("/"):
            return Answer()
        try:
            config = load_config(env, _options_of(env))
            if not config.enabled:
                return Answer()
            transcript = self.sessions.transcript(session, Path(path))
            return Answer(self._guide(transcript, config, session, cwd, hook.get("custom_instructions", ""), env))
        except (ConfigError, SessionFileError, TranscriptError, OSError) as error:
            self._stats.error(f"pre-compact: {type(error).__name__}")
            self._log.warning("pre-compact: no guide: %s", type(error).__name__)
            return Answer(text=f"lcc: no guide for this summary: {type(error).__name__}\n")

    def _guide(
        self, transcript: Transcript, config: Config, session: str, cwd: str, question: str, env: Mapping[str, str]
    ) -> bytes:
        """The guide's text; the compacted session, the report and what to give back are kept privately beside it."""
        # No judge here: the summary asks one anyway, and only what is proven on disk is of use to it.
        request = request_for(replace(config, provider="rules"), question, cwd, None)
        compacted, report = run_pass(
            transcript, request, lambda result: (render(transcript, result.edits), result.report)
        )
        folder = self._guide_folder(state_folder(env), session)
        messages = guide.user_messages(transcript)
        words = "\n\n".join(messages).encode("utf-8", "surrogatepass")
        back = guide.give_back_text(messages, guide.pointers(report), str(folder / "user-messages.txt"))
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(folder / "user-messages.txt", words)
            write_private(folder / "give-back.txt", back.encode("utf-8", "replace"))
        except OSError as error:  # a full disk takes nothing from what the summariser is told
            self._log.warning("nothing kept to give back: %s", failure_of(error))
        self._later.submit(self._write_guide, folder, compacted, report)
        return guide.guide_text(report).encode("utf-8", "replace")

    def _write_guide(self, folder: Path, compacted: bytes, report: Report) -> None:
        try:
            write_private(folder / "compacted.jsonl", compacted)
            write_private(folder / "report.json", orjson.dumps(report, option=orjson.OPT_INDENT_2))
            folders = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime)
            for old in folders[:-GUIDES_KEPT]:
                for file in old.iterdir():
                    file.unlink()
                old.rmdir()
        except (OSError, TypeError) as error:
            self._log.warning("guide not kept: %s", failure_of(error))

    def _post_compact(self, request: Request, call: Call) -> Answer:
        hook = _hook_input(request)
        how = "summarised" if hook.get("compact_summary") else "replaced"
        self._log.info("post-compact: session %s %s", _id_of(hook), how)
        return Answer()

    def _session_end(self, request: Request, call: Call) -> Answer:
        hook = _hook_input(request)
        self.sessions.unfollow(hook.get("session_id", ""))
        self._log.info("session %s ended", _id_of(hook))
        return Answer()

    # ---------------------------------------------------------------- around them

    def _environment(self, request: Request) -> dict[str, str]:
        """The asking session's LCC_* variables over the daemon's other ones: a daemon is not of one session."""
        own = {key: value for key, value in self._env.items() if not key.startswith("LCC_") or key in _PLACES}
        # The daemon's own folder is /, so a relative place of the session's is no place here.
        return {**own, **{k: v for k, v in request.env.items() if k != "LCC_STATE_DIR" or v.startswith(("/", "~"))}}

    def _parts_folder(self) -> Path:
        return Path(os.fsdecode(self._folder)) / "parts"

    @staticmethod
    def _guide_folder(state: Path, session: str) -> Path:
        return state / "guides" / (session if _SAFE_ID.match(session) else "session")

    def _note_hook(self, command: str, state: Path) -> None:
        """When each hook last came, for `lcc doctor`."""
        file = state / "hooks.json"
        try:
            try:
                known: Any = orjson.loads(file.read_bytes())
            except (OSError, ValueError):
                known = {}
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            times = {**(known if isinstance(known, dict) else {}), command: time.strftime("%Y-%m-%dT%H:%M:%S%z")}
            write_private(file, orjson.dumps(times))
        except OSError as error:
            self._log.warning("hooks.json: %s", error.strerror)


_PLACES = frozenset(("LCC_CONFIG", "LCC_STATE_DIR", "LCC_STASH_DIR"))
"""LCC_* variables of the daemon's own environment that hold for sessions that do not set them."""


def _options_of(env: Mapping[str, str]) -> dict[str, str]:
    """The plugin's options as Claude Code gives them to a command hook: variables, all text."""
    start = "CLAUDE_PLUGIN_OPTION_"
    return {key.removeprefix(start).lower(): value for key, value in env.items() if key.startswith(start)}


def _refusal(reason: str, say: str) -> Done:
    plan = HandOver(reason, say)
    return Done(plan, plan.encode())


def _hook_input(request: Request) -> dict[str, str]:
    """A command hook's fields that are texts; empty for what is no JSON object."""
    if len(request.body) > HOOK_INPUT_LIMIT:
        return {}
    try:
        value = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        return {}
    return {key: found for key, found in value.items() if isinstance(found, str)} if isinstance(value, dict) else {}


def _id_of(hook: Mapping[str, str]) -> str:
    session = hook.get("session_id", "")
    return session if _SAFE_ID.match(session) else "?"
