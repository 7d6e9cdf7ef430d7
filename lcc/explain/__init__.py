"""What a report says, for a person: grouped for a terminal, or as a page."""
