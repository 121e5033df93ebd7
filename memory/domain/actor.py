"""Who changes memories: a cycle, the holder of a key, a person in the admin, a command (R10)."""

from dataclasses import dataclass
from enum import StrEnum


class ActorKind(StrEnum):
    """What kind of actor it is."""

    CYCLE = "cycle"
    KEY = "key"
    PERSON = "person"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """One that changes memories, as the history names it: `cycle cy_…`, `key engram_ab12`, `person lena`."""

    kind: ActorKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def read_actor(name: str) -> Actor:
    """Read an actor as the history names it."""
    kind, _, rest = name.partition(" ")
    return Actor(kind=ActorKind(kind), name=rest)


# Whoever reads conversations stores what they tell as nobody's own act.
READING = Actor(kind=ActorKind.COMMAND, name="extract_turns")
# What is done to memories from time to time is nobody's own act either.
MAINTAINING = Actor(kind=ActorKind.COMMAND, name="maintain_memory")
# The command that makes beliefs stand as was recorded; what it sets right is nobody's word on them.
REBUILDING = Actor(kind=ActorKind.COMMAND, name="rebuild_beliefs")


def cycle_actor(cycle_id: str) -> Actor:
    """Name a cycle as the one who acts."""
    return Actor(kind=ActorKind.CYCLE, name=cycle_id)
