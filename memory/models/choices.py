"""Choices of a column from a closed set of the domain."""

from enum import StrEnum


def choices_of(closed_set: type[StrEnum]) -> list[tuple[str, str]]:
    """List the values of a domain enumeration as Django's choices."""
    return [(member.value, member.value.lower().replace("_", " ")) for member in closed_set]
