"""python -m ledger STATEMENT"""

import sys

from ledger.report import table
from ledger.statement import StatementError, read_statement
from ledger.totals import monthly_totals


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: python -m ledger STATEMENT", file=sys.stderr)
        return 2
    try:
        bookings = read_statement(sys.argv[1])
    except StatementError as error:
        print(f"ledger: {error}", file=sys.stderr)
        return 2
    print(table(monthly_totals(bookings)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
