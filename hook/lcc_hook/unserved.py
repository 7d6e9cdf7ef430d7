"""What the hook client does where a call is not simply answered: have a daemon serve it after all, or say why not.

Loaded by ``client.py`` only then. What takes long to load is loaded by the part that needs it, since a reason must be
said on the slowest machine. Standard library only; runs on Python 3.8 and up.
"""

from lcc_hook.client import (
    BUDGET,
    START_BUDGET,
    AbsentError,
    GiveUpError,
    OutOfTimeError,
    SilentError,
    arm,
    ask,
    name_of,
    runtime_folder,
)

LONGEST_BUDGET_MS = 3_600_000
STARTING_COMMANDS = ("compact", "session-start", "pre-compact", "allow-recall", "between-turns", "slash")
"""The others only tell something to a daemon that runs: none is started to hear that a session has ended."""


def budgets(env: "dict[bytes, bytes]") -> "tuple[float, float]":
    """Seconds for a call to a warm daemon, and for one that must start it, as the variables say."""
    return seconds_in(env, b"LCC_BUDGET_MS", BUDGET), seconds_in(env, b"LCC_START_BUDGET_MS", START_BUDGET)


def recall_field(env: "dict[bytes, bytes]") -> bytes:
    """The header's field of a session start whose shells will find our `lcc`; else nothing."""
    from lcc_hook.shell_path import put_lcc_on_path

    return b"\0can_recall=1" if put_lcc_on_path(env) else b""


def serve(
    command: str,
    folder: bytes,
    env: "dict[bytes, bytes]",
    header: bytes,
    chunks: "list[bytes]",
    silent: "SilentError | None",
    budget: float,
) -> "tuple[str, bytes | bytearray]":
    """Finish a call that no daemon answered, within ``budget`` seconds. ``silent``: one is there and does not greet."""
    if command not in STARTING_COMMANDS:
        return "", b""
    from lcc_hook.reach import end_hung, greeted, wakes_up
    from lcc_hook.runtime_files import make_folder
    from lcc_hook.starter import start_daemon

    words = b""
    if command == "session-start":
        from lcc_hook.environment import prepare
        from lcc_hook.shell_path import note_session

        make_folder(folder)
        if b"can_recall=1" in header.split(b"\0"):
            note_session(folder, b"".join(chunks))
        words = prepare(folder, env)
        if not any(b'"compact"' in chunk for chunk in chunks):  # only then does the session wait for an answer
            if leave_to_a_child():
                return "", words
            arm(4 * budget)
    line = None
    if silent is not None:
        try:
            line = wakes_up(silent, folder)
            if line is None:
                end_hung(folder, silent)
        except AbsentError:  # it let go of the line, or somebody else has ended it
            pass
    if line is None:
        start_daemon(folder, env)
        line = greeted(None, folder, budget)  # the alarm ends it before
    if command != "session-start":
        from lcc_hook.environment import begin_quietly

        begin_quietly(folder, env)
    say, body = ask(line, header, chunks, env)
    return say, body or words


def leave_to_a_child() -> bool:
    """Go on in a process of its own. True in the one that Claude Code waits for, which is done."""
    import os

    if os.fork():
        return True
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    return False


def set_up(env: "dict[bytes, bytes]") -> bytes:
    """What a session start does where a daemon runs without the environment that it should have."""
    from lcc_hook.environment import prepare

    return prepare(runtime_folder(env), env)


def excuse(command: str, error: BaseException) -> "tuple[str, bytes]":
    """Why nothing was done, for stderr and in the form that Claude Code shows for this command."""
    if isinstance(error, GiveUpError):
        reason, why = error.reason, error.say
    elif isinstance(error, OutOfTimeError):
        reason, why = "out-of-time", "no answer in time; see lcc-daemon status"
    elif isinstance(error, SilentError):
        reason, why = "unresponsive", "the daemon does not answer: run lcc-daemon restart"
    elif isinstance(error, AbsentError):
        reason, why = "start-failed", "the daemon went as it came: see lcc-daemon logs"
    else:
        reason, why = "client-error", f"{type(error).__name__} in the hook client: {error}"
    why = " ".join(why.split())
    plan = {"v": 1, "action": "hand-over", "reason": reason, "say": f"left to the built-in summary: {why}"}
    shown = {
        "compact": plan,
        "session-start": {"systemMessage": f"lcc: {why}"},
        "slash": {"decision": "block", "reason": f"lcc: {why}"},
    }.get(command)
    if shown is None:
        return f"lcc: {why}\n", b""
    import json

    return f"lcc: {why}\n", json.dumps(shown, separators=(",", ":")).encode()


def seconds_in(env: "dict[bytes, bytes]", name: bytes, usual: float) -> float:
    """A time that a variable gives in ms; unset, empty and 0 mean the usual one."""
    text = env.get(name, b"").strip()
    if text.strip(b"0") == b"":
        return usual
    if not text.isdigit() or len(text) > 9 or int(text) > LONGEST_BUDGET_MS:
        what = f"{name.decode()} is {name_of(text[:40])!r}"
        raise GiveUpError("config", f"{what}: give a whole number of milliseconds, {LONGEST_BUDGET_MS} at most")
    return int(text) / 1000
