"""Monthly totals of a bank statement."""
