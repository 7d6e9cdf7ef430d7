"""The real Claude Code client in a terminal of its own (tmux): what the user types, and what stands on the screen."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from client.claude_process import KEY_FOR_THE_FAKE, TOOLS, Lab, client_command

WAIT = 60.0
_LOOK_EVERY = 0.05
_HISTORY = 5_000  # lines of the scrollback


def settle_in(lab: Lab) -> None:
    """Leave behind what a user leaves who has started the client here before: it asks nothing at its start."""
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [KEY_FOR_THE_FAKE[-20:]], "rejected": []},
        "projects": {str(lab.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    (lab.home / ".claude.json").write_text(json.dumps(state), encoding="utf-8")


class Terminal:
    """One client in a terminal of ``columns`` by ``rows``. Leaving it ends the client and the terminal."""

    def __init__(
        self,
        binary: Path,
        lab: Lab,
        base_url: str,
        *,
        plugin_dirs: Sequence[Path] = (),
        resume: str | None = None,
        arguments: Sequence[str] = (),
        tools: str = TOOLS,
        columns: int = 120,
        rows: int = 50,
    ) -> None:
        settle_in(lab)
        self.lab = lab
        self._socket = lab.root / "tmux"
        self._environment = {**lab.environment(base_url), "TERM": "xterm-256color"}
        command = client_command(binary, lab, plugin_dirs, resume, tools)
        size = ["-x", str(columns), "-y", str(rows)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(lab.project), *command, *arguments)
        self._tmux("set-option", "-g", "history-limit", str(_HISTORY))

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tmux(self, *words: str) -> str:
        ran = subprocess.run(
            ["tmux", "-S", str(self._socket), *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        if ran.returncode:
            raise RuntimeError(f"tmux {words[0]}: {ran.stderr.strip()}")
        return ran.stdout

    def screen(self) -> str:
        """What stands on the screen and above it, without colours."""
        return self._tmux("capture-pane", "-p", "-J", "-S", f"-{_HISTORY}")

    def wait_for(self, wanted: str | Callable[[str], bool], seconds: float = WAIT) -> str:
        """Block until the screen shows ``wanted``; returns the screen."""
        until = time.monotonic() + seconds
        while True:
            shown = self.screen()
            if wanted in shown if isinstance(wanted, str) else wanted(shown):
                return shown
            if time.monotonic() > until:
                raise TimeoutError(f"the screen did not come to show {wanted!r}:\n{shown}")
            threading.Event().wait(_LOOK_EVERY)

    def type(self, text: str) -> None:
        """Type ``text`` and leave it standing in the prompt."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Escape, C-c."""
        self._tmux("send-keys", *keys)

    def enter(self, text: str) -> None:
        """Type ``text``, see it arrive in the prompt, and send it: a key that comes sooner is a pasted line break."""
        self.type(text)
        self.wait_for(text[:60])
        self.press("Enter")

    def close(self) -> None:
        """End the client as a closed window does."""
        if self._socket.exists():
            with contextlib.suppress(RuntimeError):  # the client may have ended by itself, and tmux with it
                self._tmux("kill-server")
