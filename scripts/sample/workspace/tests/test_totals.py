"""The totals agree with the bank's to the cent."""

from datetime import date
from decimal import Decimal
from pathlib import Path

from ledger.report import table
from ledger.statement import Booking, read_statement
from ledger.totals import monthly_totals

STATEMENT = Path(__file__).parents[1] / "data" / "statement-2025.csv"


def booking(day: str, amount: str) -> Booking:
    return Booking(date.fromisoformat(day), "text", "category", Decimal(amount))


def test_income_and_spending_are_kept_apart() -> None:
    totals = monthly_totals([booking("2025-03-01", "10.00"), booking("2025-03-09", "-2.50")])

    assert [(t.month, t.income, t.spending) for t in totals] == [("2025-03", Decimal("10.00"), Decimal("-2.50"))]


def test_months_come_in_order() -> None:
    totals = monthly_totals([booking("2025-11-01", "1.00"), booking("2025-02-01", "1.00")])

    assert [t.month for t in totals] == ["2025-02", "2025-11"]


def test_many_small_amounts_add_up_exactly() -> None:
    totals = monthly_totals(booking("2025-05-02", "0.10") for _ in range(1_000))

    assert totals[0].income == Decimal("100.00")


def test_the_whole_year_agrees_with_the_bank() -> None:
    totals = monthly_totals(read_statement(str(STATEMENT)))

    assert sum(t.balance for t in totals) == Decimal("11319.22")
    assert len(table(totals).splitlines()) == len(totals) + 3
