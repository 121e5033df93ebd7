"""Public ids: a prefix that names the kind of thing, and twelve hexadecimal digits, as in `ep_3f9a1c0b77de`."""

from enum import StrEnum

_DIGITS = 12
FEWEST_DIGITS = 4  # of the beginning of an id that programs may name it by


class IdKind(StrEnum):
    """What an id begins with, for the kind of thing that it names."""

    EPISODE = "ep"
    BELIEF = "bl"
    CYCLE = "cy"
    TURN = "tn"  # of a conversation, while it waits to be read


def id_pattern(*kinds: IdKind) -> str:
    """Return the regular expression of a whole id of any of these kinds, unanchored."""
    return f"{_prefix(kinds)}_[0-9a-f]{{{_DIGITS}}}"


def beginning_pattern(*kinds: IdKind, fewest: int = FEWEST_DIGITS) -> str:
    """Return the regular expression of an id of any of these kinds, whole or cut short, unanchored."""
    return f"{_prefix(kinds)}_[0-9a-f]{{{fewest},{_DIGITS}}}"


def is_whole(memory_id: str) -> bool:
    """Tell whether a memory's id is whole, and not the beginning of one."""
    return len(memory_id.partition("_")[2]) == _DIGITS


def _prefix(kinds: tuple[IdKind, ...]) -> str:
    return kinds[0] if len(kinds) == 1 else f"(?:{'|'.join(kinds)})"


def turn_id_of(number: int) -> str:
    """Return the public id of the turn whose row has this number."""
    return f"{IdKind.TURN}_{number:0{_DIGITS}x}"


def turn_number_of(memory_id: str) -> int | None:
    """Return the number of the row that a turn's whole id names; None for any other id."""
    kind, _, digits = memory_id.partition("_")
    return int(digits, 16) if kind == IdKind.TURN and is_whole(memory_id) else None


def is_turn_id(memory_id: str) -> bool:
    """Tell by an id, or by the beginning of one, whether it is a turn's."""
    return memory_id.startswith(f"{IdKind.TURN}_")


def is_episode_id(memory_id: str) -> bool:
    """Tell by a memory's id whether it is an episode's; any other is a belief's."""
    return memory_id.startswith(f"{IdKind.EPISODE}_")
