"""Who acts when a command does (R10)."""

import getpass

from memory.domain.actor import Actor, ActorKind


def acting(name: str) -> Actor:
    """Name a command, and who runs it, as the one who acts."""
    return Actor(kind=ActorKind.COMMAND, name=f"{name} of {getpass.getuser()}")
