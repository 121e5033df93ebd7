"""A belief's status changes here and nowhere else, by the table of legal transitions."""

from datetime import datetime

from memory.domain.lifecycle import BeliefStatus, check_transition
from memory.models import Belief, BeliefEmbedding


def change_status(*, belief: Belief, new: BeliefStatus, reason: str, now: datetime) -> None:
    """Set a belief's status with its reason, and let searches see it; the caller holds the belief's lock."""
    check_transition(old=BeliefStatus(belief.status), new=new)
    belief.status, belief.status_reason, belief.updated_at = new, reason[:200], now
    belief.save(update_fields=["status", "status_reason", "updated_at"])
    BeliefEmbedding.objects.filter(belief=belief.pk).update(is_active=new == BeliefStatus.ACTIVE)
