"""`lcc stash`: what the stash holds, whether it is whole, and collecting what nothing needs any more."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from lcc.commands.files import InputError, WriteError
from lcc.commands.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lcc.stash import GcPlan, Stash

app = typer.Typer(
    help="Look after the stash: the bytes of outputs that `stashed` compactions removed.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3}
_SPANS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command("list")
def list_objects(
    limit: Annotated[int, typer.Option("--limit", min=0, help="Objects to list at most; 0 for all.")] = 50,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only what this session named.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the objects, the newest first, with the sessions that name them."""
    from lcc.commands.text import cell, console, count, table

    stash = _stash()
    with progress("reading which sessions name the objects"):
        named = _named_by(stash)
    entries = [e for e in stash.entries() if session is None or session in named.get(e.sha256, ())]
    entries.sort(key=lambda entry: (-entry.modified_ns, entry.sha256))
    total = sum(entry.stored_bytes for entry in entries)
    shown = entries[:limit] if limit else entries
    if as_json:
        listed = [
            {
                "sha256": entry.sha256,
                "stored_bytes": entry.stored_bytes,
                "stored_at": _when(entry.modified_ns),
                "sessions": sorted(named.get(entry.sha256, ())),
            }
            for entry in shown
        ]
        _print_json({"folder": str(stash.folder), "objects": len(entries), "stored_bytes": total, "listed": listed})
        return
    out = console(sys.stdout)
    out.print(
        f"{count(len(entries))} object{'' if len(entries) == 1 else 's'}, {_size(total)} on disk, in {stash.folder}"
    )
    if shown:
        rows = [
            (
                e.sha256[:12],
                _size(e.stored_bytes),
                _when(e.modified_ns),
                cell(", ".join(sorted(named.get(e.sha256, ())))),
            )
            for e in shown
        ]
        out.print(table([("id", "left"), ("on disk", "right"), ("stored", "left"), ("sessions", "left")], rows))
    if len(shown) < len(entries):
        out.print(f"and {count(len(entries) - len(shown))} more; --limit 0 lists all")


@app.command()
def show(
    object_id: Annotated[str, typer.Argument(metavar="ID", help="12 or more digits of the object's sha256.")],
    as_json: Json = False,
) -> None:
    """Say what one object is, after reading it and checking its sha256; `lcc recall` gives its bytes."""
    from lcc.recovery.recall import recall
    from lcc.stash import StashError, UnknownObjectError

    stash = _stash()
    try:
        found = recall(stash, object_id)
    except UnknownObjectError as error:
        raise InputError(str(error)) from None
    except StashError as error:
        raise WriteError(str(error)) from None
    facts: dict[str, object] = {
        "sha256": found.sha256,
        "bytes": len(found.content),
        "kind": f"image/{found.image}" if found.image else "binary" if found.text is None else "text",
        "lines": None if found.text is None else found.text.count("\n") + 1,
        "sessions": sorted(_named_by(stash).get(found.sha256, ())),
    }
    if as_json:
        _print_json(facts)
        return
    for name, value in facts.items():
        if value is not None:
            typer.echo(f"{name:9} {', '.join(value) if isinstance(value, list) else value}")


@app.command()
def verify(
    object_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Objects to check; all of them when none is named.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read objects and check their sha256. Exit 1 when one is damaged or a note's object is missing."""
    from lcc.client_folders import session_holders
    from lcc.stash import missing_objects, pack_files, pack_problem

    stash = _stash()
    problems: list[str] = []
    checked = 0
    with progress("reading packs") as shown:
        if not object_ids:
            problems += filter(None, map(pack_problem, pack_files(stash.folder)))
        for _, problem in _named(stash, object_ids) if object_ids else stash.check():
            if problem is None:
                checked += 1
            else:
                problems.append(problem)
            shown.doing = f"checking objects: {checked + len(problems):,}"
        missing = []
        if not object_ids:
            shown.doing = "looking for notes in session files"
            try:
                missing = missing_objects(stash, session_holders(os.environ))
            except OSError as error:
                raise WriteError(f"a session file cannot be read: {error}") from None
        problems += [f"session {session}: its note names {sha[:12]}, which is missing" for session, sha in missing]
    if as_json:
        _print_json({"whole": checked, "problems": problems})
    else:
        typer.echo(f"{checked:,} object{' is' if checked == 1 else 's are'} whole.")
        for problem in problems:
            typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)


@app.command()
def gc(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Only objects this old: 12h, 30d or 8w.")
    ] = "30d",
    max_size: Annotated[
        str | None,
        typer.Option("--max-size", metavar="SIZE", help="Collect the oldest until this much is left: 500M, 2G."),
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only what this session named, whatever its age.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Remove them; without it nothing is changed.")] = False,
    as_json: Json = False,
) -> None:
    """Collect objects that no note names any more. Shows what would go; --apply removes it.

    Never collected: what a note in any session file of Claude Code or Codex, or in a file that lcc wrote,
    still names; what was stored in the last day; what a session without a file (any more) named in the last 90 days.
    """
    from lcc.client_folders import session_holders
    from lcc.stash import GcLimits, GcResult, collect, plan_collection

    limits = GcLimits(_span(older_than), _bytes(max_size), session)
    stash = _stash()
    result: GcResult | None = None
    try:
        with progress("looking for notes in session files") as shown:
            plan = plan_collection(stash, limits, session_holders(os.environ), time.time())
            if apply and (plan.remove or plan.leftovers):
                shown.doing = f"removing {len(plan.remove):,} objects"
                result = collect(stash, plan)
    except OSError as error:
        raise WriteError(f"gc stopped, and what it had not removed is untouched: {error}") from None
    if as_json:
        _print_json(_gc_facts(plan, apply, result.removed if result else 0, result.removed_bytes if result else 0))
        return
    typer.echo(f"{plan.total:,} object{'' if plan.total == 1 else 's'}, {_size(plan.total_bytes)}")
    typer.echo(f"  kept, a note in a session file names them      {plan.kept_by_notes:>9,}")
    typer.echo(f"  kept, named lately or by a session without file {plan.kept_by_references:>8,}")
    typer.echo(f"  kept, too young                                {plan.kept_by_age:>9,}")
    if result is not None:
        typer.echo(
            f"  removed                                        {result.removed:>9,}  {_size(result.removed_bytes)}"
        )
    else:
        typer.echo(
            f"  can go                                         {len(plan.remove):>9,}  {_size(plan.remove_bytes)}"
        )
        if plan.remove and not apply:
            typer.echo("Nothing was changed. Add --apply to remove them.")
    for name, sha in plan.missing:
        typer.echo(f"session {name}: its note names {sha[:12]}, which is missing", err=True)


def _gc_facts(plan: GcPlan, applied: bool, removed: int, removed_bytes: int) -> dict[str, object]:
    return {
        "objects": plan.total,
        "stored_bytes": plan.total_bytes,
        "kept_by_notes": plan.kept_by_notes,
        "kept_by_references": plan.kept_by_references,
        "kept_by_age": plan.kept_by_age,
        "can_go": [entry.sha256 for entry in plan.remove],
        "can_go_bytes": plan.remove_bytes,
        "applied": applied,
        "removed": removed,
        "removed_bytes": removed_bytes,
        "missing": [{"session": session, "sha256": sha} for session, sha in plan.missing],
    }


def _named(stash: Stash, object_ids: list[str]) -> Iterator[tuple[str, str | None]]:
    from lcc.stash import StashError

    for object_id in object_ids:
        try:
            stash.get(object_id)
            yield object_id, None
        except (StashError, OSError) as error:
            yield object_id, str(error)


def _stash() -> Stash:
    from lcc.stash import Stash, StashFolderError, stash_folder

    try:
        return Stash(stash_folder())
    except StashFolderError as error:
        raise InputError(str(error)) from None


def _named_by(stash: Stash) -> dict[str, set[str]]:
    """The sessions whose references name each object."""
    from lcc.stash import all_references

    named: dict[str, set[str]] = {}
    for references in all_references(stash.folder):
        for sha in references.named:
            named.setdefault(sha, set()).add(references.session)
    return named


def _span(written: str) -> float:
    number, unit = written[:-1], written[-1:].lower()
    if unit not in _SPANS or not number.isdecimal():
        raise InputError(f"--older-than {written}: give a whole number with h, d or w, as in 30d")
    return int(number) * _SPANS[unit]


def _bytes(written: str | None) -> int | None:
    if written is None:
        return None
    number = written.rstrip("kKmMgGbB")
    unit = written[len(number) :].lower().rstrip("b")
    if unit not in _UNITS or not number.isdecimal():
        raise InputError(f"--max-size {written}: give a whole number, with k, M or G, as in 500M")
    return int(number) * _UNITS[unit]


def _size(value: int) -> str:
    for unit, name in ((1000**3, "GB"), (1000**2, "MB"), (1000, "kB")):
        if value >= unit:
            return f"{value / unit:.1f} {name}"
    return f"{value} B"


def _when(modified_ns: int) -> str:
    return datetime.fromtimestamp(modified_ns / 1e9).astimezone().isoformat(timespec="seconds")


def _print_json(value: object) -> None:
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
