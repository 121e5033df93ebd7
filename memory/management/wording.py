"""How commands put numbers into words."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 episode`, `2 episodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
