"""A new belief is linked to what lies near it: not so near that it may say the same (R4)."""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings

from memory.domain.lifecycle import BeliefStatus
from memory.models import Belief, Link
from memory.search.vectors import NearBelief


def link_neighbours(*, belief: Belief, near: Sequence[tuple[NearBelief, float]], now: datetime) -> list[Link]:
    """Link a belief to its nearest neighbours, given with their similarity and the nearest first."""
    policy = settings.POLICY.remember
    chosen = [
        (one.id, likeness)
        for one, likeness in near
        if policy.link_from <= likeness <= policy.link_to and one.status == BeliefStatus.ACTIVE and one.id != belief.pk
    ][: policy.links]
    links = [
        Link(workspace_id=belief.workspace_id, belief=belief, other_id=key, similarity=likeness, created_at=now)
        for key, likeness in chosen
    ]
    return Link.objects.bulk_create(links, ignore_conflicts=True)
