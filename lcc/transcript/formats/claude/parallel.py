"""Parallel calls in a Claude Code session: the lines that were sent although the walk passes them by."""

from __future__ import annotations

from collections.abc import Iterable

from lcc.transcript.formats.claude.entry import Entry


def with_parallel_lines(chain: list[Entry], live: Iterable[Entry]) -> list[Entry]:
    """Add what the walk passes by when calls ran in parallel: lines of the same API message, and results.

    They stand on branches of their own, but were sent. A message's lines then stand together in the order in
    which they were written, at its first line on the walk; added results stand behind its last one.
    """
    steps = _steps(chain)
    step_of_id = {step[0].message_id: number for number, step in enumerate(steps) if step[0].message_id is not None}
    step_of_line = {entry.uuid: number for number, step in enumerate(steps) for entry in step}
    on_chain = {entry.uuid for entry in chain}
    beside = [entry for entry in live if entry.uuid not in on_chain]
    lines: dict[int, list[Entry]] = {}
    for entry in beside:
        if entry.kind == "assistant" and entry.message_id in step_of_id:
            number = step_of_id[entry.message_id]
            step_of_line[entry.uuid] = number
            lines.setdefault(number, []).append(entry)
    results = _results_beside(chain, beside, step_of_line)
    if not lines and not results:
        return chain
    whole: list[Entry] = []
    for entry in chain:
        number = step_of_line.get(entry.uuid, -1)
        if number not in lines:
            whole.append(entry)
        elif entry is steps[number][0]:
            whole.extend(sorted((*steps[number], *lines[number]), key=lambda e: e.document))
        if number in results and entry is steps[number][-1]:
            whole.extend(results[number])
    return whole


def _results_beside(chain: list[Entry], beside: list[Entry], step_of_line: dict[str, int]) -> dict[int, list[Entry]]:
    """The result lines beside the walk, by the step they answer: as their line says, else by the call's id."""
    step_of_call: dict[str, int] = {}
    for entry in (*chain, *beside):
        if entry.content is not None and entry.uuid in step_of_line:
            step_of_call.update(dict.fromkeys((use.id for use in entry.content.uses), step_of_line[entry.uuid]))
    for entry in chain:
        if entry.content is not None:
            for result in entry.content.results:
                step_of_call.pop(result.tool_use_id, None)
    found: dict[int, list[Entry]] = {}
    for entry in beside:
        if entry.kind != "user" or entry.content is None or not entry.content.results:
            continue
        step = step_of_line.get(entry.source or "", step_of_line.get(entry.parent or ""))
        if step is None:
            step = next(
                (step_of_call[r.tool_use_id] for r in entry.content.results if r.tool_use_id in step_of_call), None
            )
        if step is not None:
            found.setdefault(step, []).append(entry)
            for result in entry.content.results:
                step_of_call.pop(result.tool_use_id, None)
    return found


def _steps(chain: Iterable[Entry]) -> list[list[Entry]]:
    """The assistant lines of each API message; an id that comes back after another one is another message."""
    steps: list[list[Entry]] = []
    message_id: str | None = None
    for entry in chain:
        if entry.kind == "assistant":
            if entry.message_id is None or entry.message_id != message_id:
                steps.append([])
            steps[-1].append(entry)
            message_id = entry.message_id
    return steps
