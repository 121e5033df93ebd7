"""The kinds of memory that have vectors, and how much of a vector a model fills."""

from enum import StrEnum


class VectorKind(StrEnum):
    """A kind of memory, as its tables are named."""

    EPISODE = "episode"
    BELIEF = "belief"


_FILLED = {"wordllama-l2-supercat-256": 256}


def filled_dimensions(*, model: str) -> int | None:
    """Return how many of a vector's dimensions a model fills, if it is known to leave the others 0; else None."""
    return _FILLED.get(model)
