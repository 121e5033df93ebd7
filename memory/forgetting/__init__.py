"""What is forgotten, and what is erased so that nothing of it is left (B19)."""
