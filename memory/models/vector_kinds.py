"""The kinds of memory that have vectors."""

from enum import StrEnum


class VectorKind(StrEnum):
    """A kind of memory, as its tables are named."""

    EPISODE = "episode"
    BELIEF = "belief"
