"""Memories are linked with each other once they are stored, where nobody waits."""
