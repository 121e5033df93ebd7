"""How a belief was used, and how easily it comes to mind (B5, B18)."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from memory.domain.knowledge import Knowledge, knowledge_of_belief
from memory.domain.policy import RetrievalPolicy
from memory.domain.strength import retrieval_strength
from memory.models import Belief, BeliefAccess
from memory.recall.ranking import MemoryType


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What recall and feedback left on a belief; none of it moves its confidence."""

    knowledge: Knowledge
    access_count: int
    accessed_at: datetime | None
    stability: float
    retrieval_strength: float
    feedback: float
    type: MemoryType = MemoryType.BELIEF


def read_use(*, belief: Belief, now: datetime) -> Use:
    """Read how a belief was used; looking is no access."""
    policy: RetrievalPolicy = settings.POLICY.retrieval
    access = BeliefAccess.objects.filter(pk=belief.pk).first() or BeliefAccess(stability=policy.initial_stability)
    return Use(
        knowledge=knowledge_of_belief(fact_type=belief.fact_type),
        access_count=access.access_count,
        accessed_at=access.accessed_at,
        stability=access.stability,
        retrieval_strength=retrieval_strength(
            stability=access.stability,
            since_creation=now - belief.created_at,
            since_access=now - access.accessed_at if access.accessed_at else None,
            policy=policy,
        ),
        feedback=belief.feedback,
    )
