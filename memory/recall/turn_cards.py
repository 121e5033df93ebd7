"""The card of a turn: what was said, whether it was read by now, and what came of it (B18)."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.access import Viewer, visible_episodes, visible_turns
from memory.domain.buffering import TurnState
from memory.domain.conversation import Role
from memory.domain.ids import turn_id_of, turn_number_of
from memory.models import Turn
from memory.models.conversations import WAITING_STATES

WAITING = "waiting"  # for being read; it is recalled all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCard:
    """A turn with all that a viewer may know of it; `episodes` are the ids of those that it became."""

    turn: Turn
    episodes: Sequence[str]
    type: str = "turn"

    @property
    def id(self) -> str:
        """Return its public id."""
        return turn_id_of(self.turn.pk)

    @property
    def state(self) -> str:
        """Tell how far it has come: waiting, extracted, echo or failed."""
        return WAITING if self.turn.state in WAITING_STATES else TurnState(self.turn.state).value


def find_turn(*, memory_id: str, viewer: Viewer) -> Turn | None:
    """Return the turn of this id, if the viewer may see it; what a system is told is nobody's memory."""
    turns = visible_turns(viewer=viewer).exclude(role=Role.SYSTEM).select_related("conversation__project", "workspace")
    found: Turn | None = turns.filter(pk=turn_number_of(memory_id)).first()
    return found


def read_turn_card(*, turn: Turn, viewer: Viewer) -> TurnCard:
    """Gather a turn's card."""
    became = visible_episodes(viewer=viewer).filter(turns=turn, is_derived=False).order_by("pk")
    return TurnCard(turn=turn, episodes=list(became.values_list("pk", flat=True).distinct()))
