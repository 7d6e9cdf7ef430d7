"""The way back: what a note stands for, and the original of a compacted session."""
