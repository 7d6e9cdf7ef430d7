"""Made-up sessions of any length, alike every time: reads, edits, searches and commands over a few hundred files."""

from __future__ import annotations

import random
from typing import Any

WORDS = (
    "value result index node parser token buffer request handler config session cursor state error widget "
    "render update insert remove filter group order total count first last begin finish queue worker"
).split()
MESSAGES_A_CALL = 2


def source_file(number: int, version: int, choose: random.Random) -> list[str]:
    """The lines of a made-up source file; a version differs from the one before in a few lines."""
    lines = [f"# module {number}"]
    for line in range(20 + number % 60):
        first, second, third = (choose.choice(WORDS) for _ in range(3))
        lines.append(f"    {first}_{line} = {second}({third}, {number * 31 + line})")
    lines[version % len(lines)] = f"    # revised {version}"
    return lines


def session(calls: int, seed: int = 11) -> list[dict[str, Any]]:
    """A session of ``calls`` calls in the seed's payload form; about two kilobytes a call."""
    choose = random.Random(seed)
    files = {number: source_file(number, 0, choose) for number in range(300)}
    messages: list[dict[str, Any]] = [{"role": "user", "text": "Mend the parser. Never edit src/generated."}]
    for number in range(calls):
        which = choose.randrange(300)
        path = f"/work-of-nobody/src/module_{which}.py"
        kind = choose.random()
        failed = False
        if kind < 0.45:
            tool, given = "Read", {"file_path": path}
            text = "\n".join(f"{at}\t{line}" for at, line in enumerate(files[which], 1))
        elif kind < 0.6:
            files[which] = source_file(which, number, choose)
            tool, given = "Edit", {"file_path": path, "old_string": WORDS[which % 30], "new_string": str(number)}
            text = f"The file {path} has been updated."
        elif kind < 0.75:
            tool, given = "Grep", {"pattern": choose.choice(WORDS)}
            text = "\n".join(f"src/module_{choose.randrange(300)}.py:{choose.randrange(90)}:" for _ in range(25))
        else:
            tool, given = "Bash", {"command": f"pytest -q tests/test_{which % 40}.py"}
            failed = choose.random() < 0.1
            text = "\n".join(f"test_{choose.choice(WORDS)}_{at} {number} passed" for at in range(40))
        use = {"tool_use_id": f"toolu_{number:06d}", "tool": tool, "input": given}
        result: dict[str, Any] = {"tool_use_id": use["tool_use_id"], "text": text}
        if failed:
            result["is_error"] = True
        messages.append({"role": "assistant", "text": f"Step {number}.", "toolUses": [use]})
        messages.append({"role": "user", "toolResults": [result]})
    return messages
