"""The kinds of texts that have vectors, and how much of a vector a model fills."""

from enum import StrEnum


class VectorKind(StrEnum):
    """A kind of memory, or of a part of one, as its tables are named."""

    EPISODE = "episode"
    BELIEF = "belief"
    CLAIM = "claim"

    @property
    def is_scoped(self) -> bool:
        """Tell whether its vectors know their project and user, and whether they are of something active."""
        return self != VectorKind.CLAIM


_FILLED = {"wordllama-l2-supercat-256": 256}


def filled_dimensions(*, model: str) -> int | None:
    """Return how many of a vector's dimensions a model fills, if it is known to leave the others 0; else None."""
    return _FILLED.get(model)
