"""Conversations that were held elsewhere come in: each format is read as turns, and these go the way of all turns."""
