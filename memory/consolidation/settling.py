"""Where an episode goes when its jobs have ended: settled, pooled, or back to where it waits."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, F, OuterRef, QuerySet, Value
from django.db.models.functions import Coalesce

from memory.domain.lifecycle import ConsolidationState
from memory.models import ClusterMember, Cycle, Episode, Evidence
from memory.models.cycles import OPEN_JOB_STATES

PARTLY_ASKED = "more beliefs to be asked"
NO_BELIEF = "no_belief"


def pool(*, episodes: QuerySet[Episode], cycle: Cycle) -> int:
    """Let episodes wait for others like them; the first time counts for how long they have waited."""
    return episodes.update(
        state=ConsolidationState.POOLED,
        leased_by=None,
        state_reason="",
        pooled_at=Coalesce(F("pooled_at"), Value(cycle.now)),
    )


def put_back(*, episodes: QuerySet[Episode]) -> int:
    """Return episodes to the work that waits, as if this cycle had not begun."""
    pooled = episodes.filter(pooled_at__isnull=False).update(state=ConsolidationState.POOLED, leased_by=None)
    return pooled + episodes.filter(pooled_at__isnull=True).update(state=ConsolidationState.NEW, leased_by=None)


def settle_members(*, job_id: int, cycle: Cycle) -> None:
    """Settle a job's members that gained evidence; pool those whose last job of this cycle this was.

    An episode of which beliefs remain to be asked goes back to the new ones. Called after the job's own state is set.
    """
    leased = Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle.pk)
    members = leased.filter(pk__in=ClusterMember.objects.filter(job=job_id).values("episode"))
    has_evidence = Exists(Evidence.objects.filter(episode=OuterRef("pk")))
    members.filter(has_evidence).update(
        state=ConsolidationState.SETTLED, leased_by=None, state_reason="evidence", failures=0
    )
    elsewhere = ClusterMember.objects.filter(
        episode=OuterRef("pk"), job__cycle=cycle.pk, job__state__in=OPEN_JOB_STATES
    )
    ended = members.exclude(Exists(elsewhere))
    ended.filter(state_reason=PARTLY_ASKED).update(state=ConsolidationState.NEW, leased_by=None, state_reason="")
    pool(episodes=ended, cycle=cycle)


def fail_members(*, job_id: int, cycle: Cycle, reason: str) -> None:
    """Keep the members of a failed job pending, with the reason to be seen."""
    members = ClusterMember.objects.filter(job=job_id).values("episode")
    Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle.pk, pk__in=members).update(
        state=ConsolidationState.FAILED, leased_by=None, state_reason=reason[:200], failures=F("failures") + 1
    )


def settle_expired(*, cycle: Cycle) -> int:
    """Settle without a belief what has waited in the pool for its time (B1)."""
    since = cycle.now - timedelta(days=settings.POLICY.consolidation.pooled_days)
    expired = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.POOLED, pooled_at__lt=since
    )
    return expired.update(state=ConsolidationState.SETTLED, state_reason=NO_BELIEF)
