"""Which programs a shell command runs, each with its words, and what a person calls such a run.

A command is read as a person reads it, not as a shell would: what is quoted is one word, what stands behind
``&&``, ``|``, ``;`` or in ``$(…)`` is a run of its own, and the body of a here-document is no command.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LONGEST_COMMAND = 20_000  # characters; what stands behind them is not read
_HEREDOC = re.compile(r"<<-?[ \t]*+['\"]?(\w++)")
_SPLIT = str.maketrans(dict.fromkeys(";|&()`<>/", " "))
_TOKEN = re.compile(
    r"(?P<quoted>'[^']*+'|\"(?:[^\"\\]|\\.)*+\")|\\(?P<escaped>.)|(?P<redirect>[0-9]?[<>]++&?[0-9-]?)"
    r"|(?P<end>[;|&()`\n]++)|(?P<blank>\s++)|(?P<plain>[^\s'\"\\;|&()`<>]++)",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PLAIN = re.compile(r"[a-z][a-z0-9:_-]*+")
_WRAPPERS = frozenset("sudo env time nohup nice command exec stdbuf timeout xargs".split())
_KEYWORDS = frozenset("do then else elif if while until !".split())  # a program's name follows them
_RUNNERS = frozenset("run exec compose".split())
SEARCHES = frozenset("grep egrep fgrep rg ag ack find fd".split())
_PATTERN_OPTIONS = frozenset("-e --regexp -name -iname -path -ipath -regex -iregex".split())
_VALUE_OPTIONS = frozenset("-A -B -C -m -g -t -T -j --glob --type --include --exclude --max-count".split())
_GIT_VALUES = frozenset("-C -c --git-dir --work-tree --namespace --exec-path --config-env".split())
_PRINTS_SOURCE = SEARCHES | frozenset(
    "cat head tail sed nl less more bat ls tree wc cd pwd echo printf test [ for done fi read".split()
)
_GIT_PRINTS = frozenset("grep diff show log blame status".split())


@lru_cache(maxsize=4096)
def runs_of(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of each program that ``command`` runs, its name first and without its folder."""
    if len(command) > _LONGEST_COMMAND:
        command = command[:_LONGEST_COMMAND]
    if "<<" in command:
        command = _without_heredocs(command)
    runs: list[tuple[str, ...]] = []
    words: list[str] = []
    pieces: list[str] = []
    for token in _TOKEN.finditer(command):
        kind, text = token.lastgroup, token.group()
        if kind in ("plain", "escaped"):
            pieces.append(text.removeprefix("\\"))
            continue
        if kind == "quoted":
            pieces.append(text[1:-1])
            continue
        if pieces:
            words.append("".join(pieces))
            pieces = []
        if kind == "end" and words:
            runs.append(_run(words))
            words = []
    if pieces:
        words.append("".join(pieces))
    if words:
        runs.append(_run(words))
    return tuple(run for run in runs if run)


def words_of_ascii(command: str) -> set[str]:
    """All that the name of a program in ``command`` (ASCII) can begin with, up to a blank, in lower case; and more.

    Many times faster than `runs_of`, for the question whether that is worth it.
    """
    plain = command.lower().replace("'", "").replace('"', "").replace("\\", "")
    return set(plain.translate(_SPLIT).split())


def git_subcommand(run: tuple[str, ...]) -> str | None:
    """What git is told to do, past the options that stand before it (``-C``, ``--no-pager``); None: no git."""
    if run[0] != "git":
        return None
    words = iter(run[1:])
    for word in words:
        if not word.startswith("-"):
            return word
        if word in _GIT_VALUES:
            next(words, None)
    return None


def called(run: tuple[str, ...]) -> str | None:
    """What a person calls the run: ``git log``, ``npm run build``, ``cargo test``; None where its name is all."""
    subcommand = git_subcommand(run)
    if subcommand is not None:
        return f"git {subcommand}"
    if len(run) < 2 or not _PLAIN.fullmatch(run[1]):
        return None
    more = run[1] in _RUNNERS and len(run) > 2 and _PLAIN.fullmatch(run[2])
    return " ".join(run[: 3 if more else 2])


def searched_for(run: tuple[str, ...]) -> str | None:
    """The pattern that a search program was asked for; None for other programs, and where it cannot be told."""
    if run[0] not in SEARCHES and git_subcommand(run) != "grep":
        return None
    words = iter(run[1:] if run[0] != "git" else run[run.index("grep") + 1 :])
    for word in words:
        if word in _PATTERN_OPTIONS:
            return next(words, None)
        if word in _VALUE_OPTIONS:
            next(words, None)
        elif not word.startswith("-") and run[0] != "find":
            return word
    return None


def prints_source(command: str) -> bool:
    """Whether all that ``command`` runs only prints files or finds in them, so that its output is their text."""
    runs = runs_of(command)
    return bool(runs) and all(run[0] in _PRINTS_SOURCE or git_subcommand(run) in _GIT_PRINTS for run in runs)


def _without_heredocs(command: str) -> str:
    lines: list[str] = []
    end: str | None = None
    for line in command.split("\n"):
        if end is None:
            lines.append(line)
            begun = _HEREDOC.search(line)
            end = begun[1] if begun else None
        elif line.strip() == end:
            end = None
    return "\n".join(lines)


def _run(words: list[str]) -> tuple[str, ...]:
    """The words from the program's name on: no assignments before it, and no program that only starts it."""
    start = 0
    while start < len(words):
        word = words[start].rpartition("/")[2]
        if word in _KEYWORDS:
            start += 1
        elif word in _WRAPPERS:
            start += 1
            while start < len(words) and (words[start].startswith("-") or words[start][:1].isdigit()):
                start += 1
        elif _ASSIGNMENT.match(words[start]):
            start += 1
        else:
            return (word or words[start], *words[start + 1 :])
    return ()
