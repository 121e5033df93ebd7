"""B22: beliefs made again from what cycles recorded, without asking a model."""
