"""Conversations: turns are accepted and buffered, and what they tell is read out of them later."""
