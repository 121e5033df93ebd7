"""What an agent lived through, and the beliefs made of it."""

VERSION = "0.2.0"  # the release; pyproject.toml says the same
