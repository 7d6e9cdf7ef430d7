"""Writes `session.jsonl` (and the statement it is about): the sample session that the demo compacts.

The session is made up. What its tools "printed" comes from the workspace beside this file, so that the two
always agree: run this after a change of the workspace.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent
WORKSPACE = HERE / "workspace"
ROOT = "/sample/ledger"
SESSION = "5a3f0c52-7d1e-4e0b-9a64-2f1c8e7b9d10"

OLD_TOTAL = (
    '    income = sum((amount for amount in amounts if amount > 0), Decimal("0.00"))\n'
    '    spending = sum((amount for amount in amounts if amount < 0), Decimal("0.00"))\n',
    "    income = round(sum(float(amount) for amount in amounts if amount > 0), 1)\n"
    "    spending = round(sum(float(amount) for amount in amounts if amount < 0), 1)\n",
)
OLD_REPORT = (
    'HEADS = ("month", "income", "spending", "balance", "bookings")\n',
    'HEADS = ("month", "income", "spending", "balance")\n',
)


@dataclass
class Session:
    """The lines written so far, chained as a client chains them."""

    lines: list[str] = field(default_factory=list)
    parent: str | None = None
    calls: int = 0

    def user(self, content: object, **more: object) -> None:
        self._add("user", {"role": "user", "content": content}, more)

    def assistant(self, block: dict[str, object]) -> None:
        message = {
            "model": "claude-sonnet-4-5-20250929",
            "id": f"msg_{len(self.lines):04d}",
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": None,
            "usage": {"input_tokens": 4, "cache_read_input_tokens": 12000 + 640 * len(self.lines), "output_tokens": 90},
        }
        self._add("assistant", message, {})

    def say(self, text: str) -> None:
        self.assistant({"type": "text", "text": text})

    def call(self, tool: str, given: dict[str, object], output: str, *, failed: bool = False) -> None:
        self.calls += 1
        call_id = f"toolu_sample{self.calls:03d}"
        self.assistant({"type": "tool_use", "id": call_id, "name": tool, "input": given})
        result: dict[str, object] = {"tool_use_id": call_id, "type": "tool_result", "content": output}
        if failed:
            result["is_error"] = True
        self.user([result], toolUseResult={"type": "text"})

    def _add(self, kind: str, message: dict[str, object], more: dict[str, object]) -> None:
        number = len(self.lines)
        line = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"lcc-sample-{number}")),
            "timestamp": f"2026-03-02T09:{number // 60:02d}:{number % 60:02d}.000Z",
            "userType": "external",
            "cwd": ROOT,
            "sessionId": SESSION,
            "version": "2.1.92",
            "gitBranch": "main",
            **more,
        }
        self.parent = str(line["uuid"])
        self.lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")))


def numbered(text: str, offset: int = 1, limit: int | None = None) -> str:
    """What the client's Read tool prints."""
    lines = text.split("\n")[offset - 1 :][:limit]
    return "\n".join(f"{offset + index}\t{line}" for index, line in enumerate(lines))


def statement() -> str:
    """A year of bookings, the same every time."""
    shops = ["Green Grocer", "Corner Bakery", "City Transport", "Book Nook", "Pharmacy", "Hardware, Paint & Co"]
    kinds = ["food", "food", "travel", "books", "health", "home"]
    lines = ["date,text,category,amount"]
    for month in range(1, 13):
        lines.append(f'2025-{month:02d}-01,"Rent, month {month}",home,-840.00')
        lines.append(f"2025-{month:02d}-02,Salary,work,2415.{(month * 37) % 100:02d}")
        for number in range(16):
            pick = (month * 7 + number * 5) % len(shops)
            shop = f'"{shops[pick]}"' if "," in shops[pick] else shops[pick]
            cents = 215 + (month * 613 + number * 1709) % 7400
            lines.append(f"2025-{month:02d}-{3 + number:02d},{shop},{kinds[pick]},-{cents / 100:.2f}")
    return "\n".join(lines) + "\n"


def balance(written: str) -> str:
    return str(sum(Decimal(line.rsplit(",", 1)[1]) for line in written.splitlines()[1:]))


def workspace() -> dict[str, str]:
    """The workspace's files as they are at the end of the session, by their path in it."""
    table = statement()
    files = {str(p.relative_to(WORKSPACE)): p.read_text() for p in sorted(WORKSPACE.rglob("*.*")) if p.is_file()}
    files["data/statement-2025.csv"] = table
    if balance(table) not in files["tests/test_totals.py"]:
        raise SystemExit(f"tests/test_totals.py must expect {balance(table)}")
    return files


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        (WORKSPACE / name).write_text(text)


def path(name: str) -> str:
    return f"{ROOT}/{name}"


def read(session: Session, name: str, text: str, offset: int | None = None, limit: int | None = None) -> None:
    given: dict[str, object] = {"file_path": path(name)}
    if offset is not None and limit is not None:
        given |= {"offset": offset, "limit": limit}
    session.call("Read", given, numbered(text, offset or 1, limit))


def tell(session: Session, files: dict[str, str]) -> None:
    totals, report, test = (files[n] for n in ("ledger/totals.py", "ledger/report.py", "tests/test_totals.py"))
    data, fixed_balance = files["data/statement-2025.csv"], balance(files["data/statement-2025.csv"])
    old_totals, old_report = totals.replace(*OLD_TOTAL), report.replace(*OLD_REPORT)
    listing = "\n".join(sorted(path(name) for name in files))

    session.user(
        "The report's total for the year is a few cents off from what the bank says. Find out why and mend it. "
        "The files in data/ come from the bank: never change them."
    )
    session.say("I'll look at how the project is laid out first.")
    session.call("Glob", {"pattern": "**/*", "path": ROOT}, listing)
    read(session, "README.md", files["README.md"])
    read(session, "docs/format.md", files["docs/format.md"])
    read(session, "ledger/statement.py", files["ledger/statement.py"])
    read(session, "ledger/totals.py", old_totals)
    read(session, "ledger/report.py", old_report)
    session.say("The amounts are read as Decimal. Now the statement itself and the tests.")
    read(session, "data/statement-2025.csv", data)
    read(session, "tests/test_totals.py", test)
    failure = (
        "Exit code 1\n...F                                                          [100%]\n"
        "=================================== FAILURES ===================================\n"
        "_______________ test_the_whole_year_agrees_with_the_bank _______________\n"
        f"E       AssertionError: assert 11319.099999999999 == Decimal('{fixed_balance}')\n"
        "tests/test_totals.py:41: AssertionError\n"
        "=========================== short test summary info ============================\n"
        "FAILED tests/test_totals.py::test_the_whole_year_agrees_with_the_bank\n"
        "1 failed, 3 passed in 0.06s"
    )
    session.call("Bash", {"command": "python -m pytest -q", "description": "Run the tests"}, failure, failed=True)
    session.call(
        "Grep",
        {"pattern": "round\\(|float\\(", "path": ROOT, "output_mode": "content", "-n": True},
        "\n".join(
            f"{path('ledger/totals.py')}:{n}:{t}" for n, t in enumerate(old_totals.splitlines(), 1) if "round(" in t
        ),
    )
    read(session, "ledger/totals.py", old_totals, 24, 12)
    session.say(
        "`_total` turns the amounts into floats and rounds each month to one place. That is where the cents go."
    )
    session.call(
        "Edit",
        {"file_path": path("ledger/totals.py"), "old_string": OLD_TOTAL[1], "new_string": OLD_TOTAL[0]},
        f"The file {path('ledger/totals.py')} has been updated successfully.",
    )
    passed = "....                                                          [100%]\n4 passed in 0.05s"
    session.call("Bash", {"command": "python -m pytest -q", "description": "Run the tests"}, passed)
    session.call(
        "Bash",
        {"command": "git diff --stat"},
        " ledger/totals.py | 4 ++--\n 1 file changed, 2 insertions(+), 2 deletions(-)",
    )
    session.say(f"Mended: the totals stay exact now, and the year comes to {fixed_balance}, as the bank says.")

    session.user("Thanks. Please add the number of bookings of each month as a last column.")
    read(session, "ledger/report.py", old_report)
    read(session, "ledger/statement.py", files["ledger/statement.py"], 20, 30)
    read(session, "data/statement-2025.csv", data, 1, 40)
    session.call(
        "Edit",
        {"file_path": path("ledger/report.py"), "old_string": OLD_REPORT[1], "new_string": OLD_REPORT[0]},
        f"The file {path('ledger/report.py')} has been updated successfully.",
    )
    session.call(
        "Bash", {"command": "python -m pytest -q", "description": "Run the tests"}, passed.replace("0.05", "0.06")
    )
    read(session, "README.md", files["README.md"])
    session.say("The column is there, the tests pass, and the README needs no change.")
    session.user("Good. What would be the next thing to look at?")
    session.say(
        "Bookings that were taken back: docs/format.md says that they stand twice, and no test covers them yet."
    )


def main() -> None:
    files = workspace()
    write(files)
    session = Session()
    tell(session, files)
    (HERE / "session.jsonl").write_text("\n".join(session.lines) + "\n")


if __name__ == "__main__":
    main()
