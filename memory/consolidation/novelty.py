"""Whether a cluster says something that no belief says yet (B8.4)."""

from django.db.models import Q

from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.models import JobVerdict

_LIVE = (BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED)


def is_novel(*, job_id: int) -> bool:
    """Tell whether no live belief had anything to do with the job's episodes, and no archived one was supported."""
    about_beliefs = JobVerdict.objects.filter(job=job_id, belief__isnull=False)
    concerned = Q(belief__status__in=_LIVE) & ~Q(verdict=Verdict.IRRELEVANT)
    revived = Q(belief__status=BeliefStatus.ARCHIVED, verdict=Verdict.SUPPORTS)
    return not about_beliefs.filter(concerned | revived).exists()
