"""What the outside sees is recorded."""
