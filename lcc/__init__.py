"""lcc: compaction of agent sessions that removes only what can be had back, byte for byte."""
