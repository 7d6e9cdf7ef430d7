"""What a caller asks of a pass (the seed's section 8; every field of the report-format page)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcc.contract.modes import PROVIDERS, RULES_MODES, Provider, RulesMode, is_provider, is_rules_mode

if TYPE_CHECKING:
    import httpx

    from lcc.transcript import Json


class RequestError(ValueError):
    """An option that cannot be honoured; ``option`` names it as the Python field."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option}: {problem}")
        self.option = option
        self.problem = problem


def as_provider(value: object) -> Provider:
    """``value`` where it names a provider. Raises ``RequestError``."""
    if is_provider(value):
        return value
    if value == "mechanical":
        raise RequestError(
            "provider",
            "mechanical is refused in this mode: whether a tool output is still needed is a semantic "
            "question, and a lexical scorer cannot answer it honestly; use jev, laya, auto or rules",
        )
    raise RequestError("provider", f"{value!r} is none of {', '.join(PROVIDERS)}")


def as_rules_mode(value: object) -> RulesMode:
    """``value`` where it names a mode of the rules. Raises ``RequestError``."""
    if is_rules_mode(value):
        return value
    raise RequestError("rules_mode", f"{value!r} is none of {', '.join(RULES_MODES)}")


@dataclass(frozen=True, slots=True)
class TranscriptCompactionRequest:
    """One pass over one transcript.

    ``payload`` is the seed's payload (a messages array or ``{"messages": [...]}``). Budgets are in tokens,
    heads in characters. Raises ``RequestError`` for a value outside its range.
    """

    payload: Json
    question: str = ""
    provider: Provider = "auto"
    threshold: float = 0.5
    preserve_recent: int = 6
    trim_head_chars: int = 300
    max_state_tokens: int = 25000
    max_request_tokens: int = 30000
    batch_calls: int = 8
    max_workers: int = 4
    min_reduction: float = 0.25
    model: str | None = None
    jev_model: str = "jev-latest"
    laya_model: str | None = None
    client: httpx.Client | None = None
    rules_mode: RulesMode = "lossless"
    workspace_root: str | None = None
    disk_check: bool = True
    allow_command_pointers: bool = False
    decisions_cache: str | None = None
    """A file in which a judge's decisions are kept, so that a later pass asks only about what is new."""
    judge_key_file: str | None = None
    """A private file (mode 0600) that holds Jev's key, read when ``TYPESAFE_API_KEY`` is not set."""

    def __post_init__(self) -> None:
        as_provider(self.provider)
        as_rules_mode(self.rules_mode)
        for name in ("threshold", "min_reduction"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise RequestError(name, f"{value!r} is not between 0 and 1")
        for name in ("preserve_recent", "trim_head_chars"):
            if getattr(self, name) < 0:
                raise RequestError(name, f"{getattr(self, name)!r} is below 0")
        for name in ("max_state_tokens", "max_request_tokens", "batch_calls", "max_workers"):
            if getattr(self, name) < 1:
                raise RequestError(name, f"{getattr(self, name)!r} is below 1")
