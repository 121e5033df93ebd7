"""B8.4: what is met at the gate and not asked about, because a cluster waited for its turn."""

from datetime import timedelta
from typing import Any

import pytest

from memory.consolidation.judge import created_alongside
from memory.consolidation.sources import EpisodeSource, read_sources
from memory.models import Belief, ClusterJob, ClusterMember, Cycle, Episode
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db

HASH = "a" * 64


def turn(day: int, state: str, members: list[EpisodeSource]) -> ClusterJob:
    """Store a cluster's turn in a cycle of that day."""
    at = NOW + timedelta(days=day)
    workspace = Episode.objects.get(pk=members[0].id).workspace
    ended: dict[str, Any] = {} if state == "queued" else {"state": "finished", "finished_at": at}
    cycle = Cycle.objects.create(workspace=workspace, trigger="person", now=at, opened_at=at, **ended)
    job = ClusterJob.objects.create(
        workspace=workspace, cycle=cycle, number=1, kind="cluster", members_hash=HASH, state=state
    )
    for position, member in enumerate(members):
        ClusterMember.objects.create(workspace=workspace, job=job, episode_id=member.id, position=position)
    return job


@pytest.mark.parametrize(
    ("turns", "hidden"),
    [
        (["deferred", "deferred", "queued"], [0, 1, 2]),
        (["deferred", "applied", "queued"], [2]),
        (["applied", "deferred", "queued"], [1, 2]),
        (["deferred", "refused", "deferred", "queued"], [2, 3]),
    ],
)
def test_only_since_it_was_judged_last_a_cluster_waits(turns: list[str], hidden: list[int]) -> None:
    """B8.4: what was founded before it began to wait again is asked about."""
    workspace = factories.workspace()
    for _ in range(3):
        factories.episode(workspace=workspace)
    members = read_sources(episodes=Episode.objects.all())
    jobs = [turn(day, state, members) for day, state in enumerate(turns)]
    born = [factories.belief(workspace=workspace, created_in=job.cycle).pk for job in jobs]

    found = Belief.objects.filter(created_alongside(job=jobs[-1], members=members))

    assert set(found.values_list("pk", flat=True)) == {born[day] for day in hidden}
