"""What Claude Code starts: the short-lived hook client (standard library only)."""
