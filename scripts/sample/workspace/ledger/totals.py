"""Adding up the bookings of each month."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from ledger.statement import Booking


@dataclass(frozen=True)
class MonthlyTotal:
    """What came in and what went out in one month, and by how many bookings. Spending is negative."""

    month: str
    income: Decimal
    spending: Decimal
    bookings: int

    @property
    def balance(self) -> Decimal:
        return self.income + self.spending


def monthly_totals(bookings: Iterable[Booking]) -> list[MonthlyTotal]:
    """The totals of every month that has a booking, the earliest first. Exact to the cent."""
    amounts: dict[str, list[Decimal]] = {}
    for booking in bookings:
        amounts.setdefault(booking.day.strftime("%Y-%m"), []).append(booking.amount)
    return [_total(month, amounts[month]) for month in sorted(amounts)]


def _total(month: str, amounts: list[Decimal]) -> MonthlyTotal:
    income = sum((amount for amount in amounts if amount > 0), Decimal("0.00"))
    spending = sum((amount for amount in amounts if amount < 0), Decimal("0.00"))
    return MonthlyTotal(month, income, spending, len(amounts))
