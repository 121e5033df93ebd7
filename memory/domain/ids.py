"""Public ids: a prefix that names the kind of thing, and twelve hexadecimal digits, as in `ep_3f9a1c0b77de`."""

from enum import StrEnum


class IdKind(StrEnum):
    """What an id begins with, for the kind of thing that it names."""

    EPISODE = "ep"
    BELIEF = "bl"
    CYCLE = "cy"


def id_pattern(*kinds: IdKind) -> str:
    """Return the regular expression of a whole id of any of these kinds, unanchored."""
    prefix = kinds[0] if len(kinds) == 1 else f"(?:{'|'.join(kinds)})"
    return f"{prefix}_[0-9a-f]{{12}}"


def is_episode_id(memory_id: str) -> bool:
    """Tell by a memory's id whether it is an episode's; any other is a belief's."""
    return memory_id.startswith(f"{IdKind.EPISODE}_")
