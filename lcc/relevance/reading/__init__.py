"""What a call is and what its result shows: its kind, its command, the file that it read, its rows."""
