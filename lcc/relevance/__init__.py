"""Deciding what may go from a session, and proving it (the seed's sections 2 to 7)."""
