"""The direct path: a text is remembered at once, and its facts are matched with beliefs without waiting for a cycle."""
