"""The request log, which is off until the user switches it on, and its summary."""
