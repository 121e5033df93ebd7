"""What callers are answered: the one description of it, for the API, the tools and the client alike."""
