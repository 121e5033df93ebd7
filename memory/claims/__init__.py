"""Claims: what is said is read into them once, for every door (E1, E2)."""
