"""The kinds of numbers that a policy holds, each with the values that make sense for it."""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Range:
    """The values that make sense for a setting, both ends included."""

    low: float
    high: float = float("inf")


Share = Annotated[float, Range(0.0, 1.0)]
Amount = Annotated[float, Range(0.0)]
Positive = Annotated[float, Range(1e-9)]
Count = Annotated[int, Range(1)]
