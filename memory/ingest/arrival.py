"""The circumstances in which lines arrive, and what became of each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memory.domain.actor import Actor, ActorKind
from memory.models import Workspace

_IMPORT = Actor(kind=ActorKind.COMMAND, name="import_episodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Where and when lines arrive, and what holds for those that do not say otherwise."""

    workspace: Workspace
    now: datetime
    allowed_projects: Collection[int] | None = None  # None: the caller's key has no limit
    default_project: str | None = None
    file_name: str = ""
    actor: Actor = _IMPORT
    is_replay: bool = False  # stored at the time at which it happened, and waking nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An episode that stands for a line: a new one, or the one that was there already."""

    id: str
    is_duplicate: bool
    is_forgotten: bool = False  # it was forgotten, and stays so: nothing of the line can be recalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Why a line was not stored: a status as HTTP has it, and reasons by field."""

    status: int
    detail: str
    errors: Mapping[str, list[str]] = field(default_factory=dict)


ERASED = Rejected(status=409, detail="These words were erased from this memory, and are not taken again.")  # L4

Outcome = Stored | Rejected
