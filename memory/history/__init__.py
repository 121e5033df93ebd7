"""What was believed when, and why: who changes memories, and how they stood at a given time (R10)."""
