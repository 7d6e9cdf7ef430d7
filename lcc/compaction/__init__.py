"""Running one pass over a session, for every door that asks for it."""
