"""What an agent lived through, and the beliefs made of it."""
