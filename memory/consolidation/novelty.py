"""Whether a cluster says something that no belief says yet (B8.4)."""

from django.db.models import F, Q

from memory.domain.gates.decisions import LIVE
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.models import JobVerdict


def is_novel(*, job_id: int) -> bool:
    """Tell whether no live belief had anything to do with the job's episodes.

    Nor was an archived one supported, or one that was closed since they were said (C2).
    """
    about_beliefs = JobVerdict.objects.filter(job=job_id, belief__isnull=False)
    concerned = Q(belief__status__in=LIVE) & ~Q(verdict=Verdict.IRRELEVANT)
    revived = Q(belief__status=BeliefStatus.ARCHIVED, verdict=Verdict.SUPPORTS)
    of_old = Q(
        belief__status=BeliefStatus.INVALIDATED,
        belief__valid_until__gt=F("episode__occurred_at"),
        verdict=Verdict.SUPPORTS,
    )
    return not about_beliefs.filter(concerned | revived | of_old).exists()
