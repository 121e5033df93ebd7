"""Episodes that failed too often: they wait for a person, who sees why and may have them tried again (B11)."""

from django.db.models import QuerySet

from memory.domain.lifecycle import ConsolidationState
from memory.models import Episode


def list_dead_letters(*, workspace_id: int) -> QuerySet[Episode]:
    """Return a workspace's dead letters, the newest first."""
    return Episode.objects.for_workspace(workspace_id).dead().order_by("-dead_at", "pk")


def retry_dead_letters(*, letters: QuerySet[Episode]) -> int:
    """Let the dead letters among some episodes take part again as if they had never failed; return how many."""
    dead = Episode.objects.dead().filter(pk__in=letters.order_by().values("pk"))
    return dead.update(state=ConsolidationState.NEW, state_reason="", failures=0, dead_at=None)
