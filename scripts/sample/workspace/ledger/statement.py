"""Reading the bank's statement: a CSV file with one booking a line.

The format is the one in docs/format.md. Every line is checked, and the first that does not fit stops the
reading with its number: a total over half a statement is worse than none.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation

HEADER = ["date", "text", "category", "amount"]


class StatementError(ValueError):
    """A statement that cannot be read; the message has the file and the line."""


@dataclass(frozen=True)
class Booking:
    """One line of the statement. Money that came in is positive, money that went out is negative."""

    day: date
    text: str
    category: str
    amount: Decimal


def read_statement(path: str) -> list[Booking]:
    """All bookings of the statement in the order of the file. Raises StatementError."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, None)
        if header != HEADER:
            raise StatementError(f"{path}, line 1: expected the columns {', '.join(HEADER)}")
        return list(_bookings(rows, path))


def _bookings(rows: Iterator[list[str]], path: str) -> Iterator[Booking]:
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        place = f"{path}, line {number}"
        if len(row) != len(HEADER):
            raise StatementError(f"{place}: {len(row)} columns, and there must be {len(HEADER)}")
        day, text, category, amount = row
        yield Booking(_day(day, place), text, category, _amount(amount, place))


def _day(written: str, place: str) -> date:
    try:
        return date.fromisoformat(written)
    except ValueError:
        raise StatementError(f"{place}: {written!r} is not a date") from None


def _amount(written: str, place: str) -> Decimal:
    try:
        amount = Decimal(written)
    except InvalidOperation:
        raise StatementError(f"{place}: {written!r} is not an amount") from None
    if amount.as_tuple().exponent != -2:
        raise StatementError(f"{place}: {written!r} must have two decimal places")
    return amount
