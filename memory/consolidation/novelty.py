"""Whether a cluster says something that no belief says yet (B8.4)."""

from django.db.models import F, Q

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, BeliefStatus
from memory.models import ClusterMember, JobVerdict


def is_novel(*, job_id: int) -> bool:
    """Tell whether no live belief had anything to do with the job's episodes, and no archived one was supported.

    Nor did most of them bear out what was closed since they were said (C2).
    """
    about_beliefs = JobVerdict.objects.filter(job=job_id, belief__isnull=False)
    concerned = Q(belief__status__in=LIVE) & ~Q(verdict=Verdict.IRRELEVANT)
    revived = Q(belief__status=BeliefStatus.ARCHIVED, verdict=Verdict.SUPPORTS)
    if about_beliefs.filter(concerned | revived).exists():
        return False
    of_old = about_beliefs.filter(
        belief__status=BeliefStatus.INVALIDATED,
        belief__valid_until__gt=F("episode__occurred_at"),
        verdict=Verdict.SUPPORTS,
    )
    members = ClusterMember.objects.filter(job=job_id)
    return 2 * of_old.values("episode").distinct().count() <= members.count()
