"""What is done to memories from time to time, step by step, each of which may be done again (L8)."""
