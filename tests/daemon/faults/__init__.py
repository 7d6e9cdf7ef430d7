"""Faults of the live path, a row each: what is done to a home, and how a call in it must end. Real processes only.

`scripts/fault_table.py` prints the table, and `test_fault_table.py` holds each row to its outcome.
"""
