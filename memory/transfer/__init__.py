"""A workspace on its way out of a database and into another."""
