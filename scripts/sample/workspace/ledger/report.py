"""Laying the monthly totals out as a table."""

from collections.abc import Sequence
from decimal import Decimal

from ledger.totals import MonthlyTotal

HEADS = ("month", "income", "spending", "balance", "bookings")


def table(totals: Sequence[MonthlyTotal]) -> str:
    """One line a month, the columns right-aligned, and a last line with the sums of the year."""
    rows = [_row(total) for total in totals]
    rows.append(_sums(totals))
    widths = [max(len(row[column]) for row in [HEADS, *rows]) for column in range(len(HEADS))]
    lines = [_line(HEADS, widths), "  ".join("-" * width for width in widths)]
    lines += [_line(row, widths) for row in rows]
    return "\n".join(lines)


def _row(total: MonthlyTotal) -> tuple[str, ...]:
    return (
        total.month,
        _money(total.income),
        _money(total.spending),
        _money(total.balance),
        str(total.bookings),
    )


def _sums(totals: Sequence[MonthlyTotal]) -> tuple[str, ...]:
    income = sum((total.income for total in totals), Decimal("0.00"))
    spending = sum((total.spending for total in totals), Decimal("0.00"))
    bookings = sum(total.bookings for total in totals)
    return ("year", _money(income), _money(spending), _money(income + spending), str(bookings))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _money(amount: Decimal) -> str:
    return f"{amount:,.2f}"
