"""Clusters that a cycle had no room or no time for: the next takes them up as they were.

A limit only delays. A cluster that waited is judged as if its turn had come in the cycle that formed it: what was
founded beside it meanwhile it meets at the gate, as the clusters of one cycle meet.
"""

from collections import defaultdict
from collections.abc import Sequence

from django.db.models import Max, Q

from memory.consolidation.sources import NO_CLAIM, EpisodeSource
from memory.domain.lifecycle import JobState
from memory.models import ClusterJob, ClusterMember, Cycle, JobKind

NO_ROOM = "no room in this cycle"


def read_put_off(*, workspace_id: int, sources: Sequence[EpisodeSource]) -> list[list[EpisodeSource]]:
    """Return the clusters that the last cycle put off, most central first, without those that lost an episode."""
    last = Cycle.objects.for_workspace(workspace_id).filter(finished_at__isnull=False).order_by("-opened_at").first()
    members = ClusterMember.objects.filter(job__cycle=last, job__kind=JobKind.CLUSTER, job__state=JobState.DEFERRED)
    ids: dict[int, list[tuple[str, int]]] = defaultdict(list)
    rows = members.order_by("job__number", "position").values_list("job_id", "episode_id", "claim_id")
    for job_id, episode_id, claim_id in rows:
        ids[job_id].append((episode_id, claim_id or NO_CLAIM))
    here = {source.key: source for source in sources}
    return [[here[key] for key in keys] for keys in ids.values() if all(key in here for key in keys)]


def founded_beside(*, job: ClusterJob, members: Sequence[EpisodeSource]) -> Q:
    """Match the beliefs that were founded in a cluster's own cycle, and since it waits for its turn.

    What the same episodes once waited for, before they were judged, is over: it hides nothing founded since.
    """
    own = Q(born_in=job.cycle_id)
    turns = ClusterMember.objects.filter(
        episode=members[0].id, job__kind=JobKind.CLUSTER, job__members_hash=job.members_hash
    )
    judged = turns.filter(job__state__in=(JobState.APPLIED, JobState.REFUSED)).exclude(job=job.pk)
    waits = turns.filter(job__state=JobState.DEFERRED)
    if last := judged.aggregate(opened=Max("job__cycle__opened_at"))["opened"]:
        waits = waits.filter(job__cycle__opened_at__gt=last)
    since = waits.order_by("job__cycle__opened_at").values_list("job__cycle__opened_at", flat=True).first()
    return own | Q(born_in__opened_at__gte=since, lineage_depth=0) if since else own
