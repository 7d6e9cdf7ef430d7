"""Shell commands, as far as a decision needs them: which are read-only, and which read just one file.

The rules are the seed's section 5 (`recoverable`): an allowlist, and no pipes, redirects, substitutions or
environment prefixes. A command that this module does not fully understand is not read-only.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

# One word: plain characters, single quotes, or double quotes in which the shell expands nothing.
# A word that starts with ~ or holds an unquoted glob, brace or escape would be expanded, so it is no match.
_PIECE = r"""(?:[\w@%+=:,./^-]|'[^'\n]*+'|"[^"$`\\!\n]*+")"""
_WORD = rf"{_PIECE}(?:{_PIECE}|~)*+"
_SIMPLE = re.compile(rf"[ \t]*+{_WORD}(?:[ \t]++{_WORD})*+[ \t]*+", re.ASCII)
_WORDS = re.compile(_WORD, re.ASCII)
_QUOTED = re.compile(r"""'([^']*+)'|"([^"]*+)\"""")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_SED_LINES = re.compile(r"([0-9]{1,12})(?:,([0-9]{1,12}|\$))?p", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,12}", re.ASCII)

_FIND_ACTS = {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}
_GIT_READS = {"status", "diff", "log", "show"}
# Git takes the beginnings of its options' names too.
_GIT_ACTS = ("--ou", "--ext", "--textc", "-O", "--op", "--show-s")
_STANDARD_INPUT = ("-", "-f-", "--file=-", "--files0-from=-")
_PATTERNS_FROM_INPUT = re.compile("-[A-Za-z]*f-")
_LINES_OR_BYTES = ("-n", "-c", "--lines", "--bytes")
_TAKES_VALUE = {
    "head": _LINES_OR_BYTES,
    "tail": (*_LINES_OR_BYTES, "-s", "--pid", "--sleep-interval"),
    "nl": tuple(f"-{letter}" for letter in "bdfhilnsvw"),
}
# The programs that print their version and do nothing else; any other may be a script of the project.
_KNOWN_PROGRAMS = frozenset(
    "ansible aws awk az bash black bun bundle cargo clang clang++ cmake conda composer curl dart deno docker dotnet "
    "elixir eslint fd ffmpeg flake8 flutter fzf g++ gawk gcc gcloud gem gh git go gofmt gradle grep helm java javac "
    "jest jq julia kubectl ld less lua make meson mvn mypy nasm ninja node npm npx nvim ocaml openssl perl php pip "
    "pip3 pipenv pnpm podman poetry prettier psql pyright pytest python python3 R rails rg ruby ruff rustc rustup sbt "
    "scala sed sqlite3 ssh swift tar terraform tmux tree tsc uv vim wget yarn yq zig zsh".split()
)
_GIT_WORKTREE = {
    "am", "apply", "bisect", "checkout", "cherry-pick", "clean", "clone", "filter-branch", "merge", "mv", "pull",
    "rebase", "reset", "restore", "revert", "rm", "sparse-checkout", "stash", "submodule", "switch", "worktree",
}  # fmt: skip
_GIT_COMMAND = re.compile(r"\bgit\b(?:[ \t]++-\S++(?:[ \t]++[^-\s]\S*+)?)*?[ \t]++([a-z][a-z-]*+)")


class LineRange(NamedTuple):
    """Lines ``first`` to ``last`` of a file, 1-based and inclusive; ``last`` None: to the end of the file."""

    first: int
    last: int | None


class CommandRead(NamedTuple):
    """A command that prints one file, or a part of it, and nothing else."""

    path: str
    span: LineRange | None
    """None: the whole file."""
    tail: int | None = None
    """The last so many lines (``tail -n``); then ``span`` is None."""
    numbered: bool = False
    """Whether the command numbers the lines (``cat -n``, ``nl -ba``)."""


Effect = Literal["read_only", "git_worktree", "opaque"]


@lru_cache(maxsize=8192)
def simple_words(command: str) -> tuple[str, ...] | None:
    """The words of a command that the shell runs as it stands: one program, nothing expanded; else None."""
    if len(command) > 4096 or not _SIMPLE.fullmatch(command):
        return None
    words = tuple(_QUOTED.sub(lambda m: m[1] if m[1] is not None else m[2], word) for word in _WORDS.findall(command))
    return None if _ASSIGNMENT.match(words[0]) else words


@lru_cache(maxsize=8192)
def command_effect(command: str) -> Effect:
    """What running ``command`` can do to files: nothing, change a git worktree, or anything."""
    words = simple_words(command)
    if words and _is_read_only(words):
        return "read_only"
    for found in _GIT_COMMAND.finditer(command[:20000]):
        if found[1] in _GIT_WORKTREE:
            return "git_worktree"
    return "opaque"


@lru_cache(maxsize=8192)
def command_read(command: str) -> CommandRead | None:
    """The single file that ``command`` prints (``cat``, ``head``, ``tail``, ``sed -n``, ``nl -ba``), or None."""
    words = simple_words(command)
    if not words or len(words) < 2 or words[-1].startswith("-") or words[-1] == "":
        return None
    program, options, path = words[0], words[1:-1], words[-1]
    match program:
        case "cat" if not options:
            return CommandRead(path, None)
        case "cat" if options == ("-n",):
            return CommandRead(path, None, numbered=True)
        case "nl" if options in (("-ba",), ("-b", "a")):
            return CommandRead(path, None, numbered=True)
        case "sed" if len(options) == 2 and options[0] == "-n":
            span = _sed_span(options[1])
            return CommandRead(path, span) if span else None
        case "head" | "tail":
            count = _line_count(options)
            if count is None:
                return None
            if program == "tail":
                return CommandRead(path, None, tail=count)
            return CommandRead(path, LineRange(1, count))
    return None


def _sed_span(script: str) -> LineRange | None:
    match = _SED_LINES.fullmatch(script)
    if not match or int(match[1]) < 1:
        return None
    first = int(match[1])
    if match[2] == "$":
        return LineRange(first, None)
    last = int(match[2]) if match[2] else first
    return LineRange(first, max(first, last))  # sed prints the first line even when the range is backwards


def _line_count(options: tuple[str, ...]) -> int | None:
    """The number of lines that ``head`` or ``tail`` prints with these options; None when it is not lines."""
    match options:
        case ():
            return 10
        case ("-n", number) if _NUMBER.fullmatch(number):
            return int(number) or None
        case (option,) if option.startswith("-n") and _NUMBER.fullmatch(option[2:]):
            return int(option[2:]) or None
        case (option,) if option.startswith("--lines=") and _NUMBER.fullmatch(option[8:]):
            return int(option[8:]) or None
        case (option,) if option.startswith("-") and _NUMBER.fullmatch(option[1:]):
            return int(option[1:]) or None
    return None


def _is_read_only(words: tuple[str, ...]) -> bool:
    program, arguments = words[0], words[1:]
    # Neither a device nor standard input ever ends; a name from a list on standard input is the same.
    if any(word in _STANDARD_INPUT or word.startswith("/dev/") for word in arguments):
        return False
    if len(arguments) == 1 and arguments[0] == "--version":
        return program in _KNOWN_PROGRAMS
    operands = [word for word in arguments if not word.startswith("-")]
    match program:
        case "ls" | "pwd":
            return True
        case "cat" | "head" | "wc" | "nl":
            return bool(operands) and not _has(arguments, "", ("--files0-from",)) and not _is_value(program, arguments)
        case "tail":
            follows = _has(arguments, "fF", ("--follow", "--retry", "--f", "--r"))
            return bool(operands) and not follows and not _is_value(program, arguments)
        case "grep":
            if any(_PATTERNS_FROM_INPUT.fullmatch(word) for word in arguments):
                return False
            return _has(arguments, "rR", ("--recursive", "--dereference-recursive")) or len(operands) > 1
        case "find":
            return _FIND_ACTS.isdisjoint(arguments) and "-files0-from" not in arguments
        case "rg":
            return not any(word.startswith(("--pre", "--hostname-bin")) for word in arguments)
        case "tree":
            return not _has(arguments, "oR", ("--output", "--fromfile", "--fromtabfile"))
        case "sed":
            return (
                len(arguments) >= 2
                and arguments[0] == "-n"
                and _sed_span(arguments[1]) is not None
                and len(operands) > 1
                and len(operands) == len(arguments) - 1
            )
        case "git":
            return (
                bool(arguments)
                and arguments[0] in _GIT_READS
                and not any(word.startswith(_GIT_ACTS) for word in arguments[1:])
            )
    return False


def _has(arguments: tuple[str, ...], letters: str, long: tuple[str, ...]) -> bool:
    """Whether an option of one of ``letters`` is given, alone or among others behind one dash, or one of ``long``."""
    return any(
        word.startswith(long) if word.startswith("--") else word[:1] == "-" and any(c in word[1:] for c in letters)
        for word in arguments
    )


def _is_value(program: str, arguments: tuple[str, ...]) -> bool:
    """Whether the only operand is the value of the option ahead of it (``head -n 5``), so that no file is named."""
    operands = [index for index, word in enumerate(arguments) if not word.startswith("-")]
    return len(operands) == 1 and operands[0] > 0 and arguments[operands[0] - 1] in _TAKES_VALUE.get(program, ())
