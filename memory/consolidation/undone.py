"""What an undone cycle leaves behind: changes that count for nothing, and episodes that wait for a person.

`read_undone_cycles` and `is_undone_change` tell which changes of status went back with a cycle. `quarantine_episodes`
keeps a cycle's episodes out of later ones until `release_quarantined` (B22).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.consolidation.episode_states import resettle_after_split
from memory.consolidation.related_beliefs import find_unjudged_pairs
from memory.consolidation.sources import read_episodes
from memory.domain.errors import EngramError
from memory.domain.lifecycle import ConsolidationState, JobState
from memory.llm.embeddings import embedder_of
from memory.models import (
    Belief,
    Claim,
    ClusterMember,
    Cycle,
    Episode,
    Evidence,
    StructuralJob,
    StructuralKind,
    Transition,
)

UndoneCycles = Mapping[str, tuple[str, datetime]]  # by cycle: by whom and when


def read_undone_cycles(*, workspace_id: int) -> UndoneCycles:
    """Read which cycles of a workspace were undone."""
    undone = Cycle.objects.for_workspace(workspace_id).exclude(undone_at=None)
    return {key: (by, at) for key, by, at in undone.values_list("pk", "undone_by", "undone_at")}


def is_undone_change(*, change: Transition, undoings: UndoneCycles) -> bool:
    """Tell whether a change of status went back with a cycle that was undone."""
    return any(
        (change.actor, change.at) == act and change.reason.startswith(undo_reason(key)) for key, act in undoings.items()
    )


def undo_reason(cycle_id: str) -> str:
    """Word why something goes back with its cycle; a person's own reason may follow."""
    return f"cycle {cycle_id} undone"


_QUARANTINABLE_STATES = (
    ConsolidationState.NEW, ConsolidationState.POOLED, ConsolidationState.SETTLED, ConsolidationState.FAILED,
    ConsolidationState.HELD,
)  # fmt: skip


class CycleNotUndone(EngramError, ValueError):
    """Only a cycle that was undone holds episodes."""


def quarantine_episodes(*, cycle: Cycle) -> int:
    """Hold what a cycle made evidence of, and what would do the same in its place; return how many.

    Called while the cycle's evidence is still there. Held are of its jobs' episodes those it made evidence of, of its
    applied jobs' those that are evidence of nothing, and those that were pooled because their cluster was full. What is
    evidence by another cycle's word alone stays settled: no cycle takes it up. One that another undone cycle holds is
    held for this one from here on.
    """
    _resettle_splits(cycle)
    mine = ClusterMember.objects.filter(episode=OuterRef("pk"), job__cycle=cycle)
    evidence = Evidence.objects.filter(episode=OuterRef("pk"))
    became_evidence = Exists(mine) & Exists(evidence.filter(cycle=cycle))
    was_looked_at = Exists(mine.filter(job__state=JobState.APPLIED)) & ~Exists(evidence)
    was_left_out = Q(pk__in=_find_pooled_alike(cycle))
    episodes = Episode.objects.for_workspace(cycle.workspace_id).filter(became_evidence | was_looked_at | was_left_out)
    return episodes.filter(state__in=_QUARANTINABLE_STATES).update(
        state=ConsolidationState.HELD, state_reason=undo_reason(cycle.pk)
    )


def _resettle_splits(cycle: Cycle) -> None:
    """Settle what the cycle's splits had pooled, as evidence of the beliefs that stand again."""
    splits = StructuralJob.objects.filter(cycle=cycle, kind=StructuralKind.SPLIT, state=JobState.APPLIED)
    for job in splits.select_related("belief"):
        resettle_after_split(belief=job.belief)


def _find_pooled_alike(cycle: Cycle) -> set[str]:
    """Find what was pooled by then near a belief that the cycle gave evidence, and was not asked about it."""
    model = embedder_of(cycle.workspace_id)
    mine = Episode.objects.for_workspace(cycle.workspace_id).active()
    beliefs = Belief.objects.filter(pk__in=Evidence.objects.filter(cycle=cycle).values("belief"))
    if not beliefs.exists():
        return set()
    pool, vectors = read_episodes(
        episodes=mine.filter(state=ConsolidationState.POOLED, pooled_at__lte=cycle.now), model=model.name
    )
    unheard = find_unjudged_pairs(
        workspace_id=cycle.workspace_id, episodes=pool, vectors=vectors, beliefs=beliefs, model=model
    )
    return {pair.episode.id for pair in unheard}


def select_quarantined(*, cycle: Cycle) -> QuerySet[Episode]:
    """Return the episodes that are held since a cycle was undone; raise CycleNotUndone where it was not."""
    if cycle.undone_at is None:
        raise CycleNotUndone(f"Cycle {cycle.pk} was not undone, so no episodes are held for it.")
    held: QuerySet[Episode] = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.HELD, state_reason=undo_reason(cycle.pk)
    )
    return held


@transaction.atomic
def release_quarantined(*, episodes: QuerySet[Episode]) -> int:
    """Let the held ones among some episodes take part again as if they were new, and be read anew; return how many."""
    ids = episodes.filter(state=ConsolidationState.HELD).order_by().values_list("pk", flat=True)
    return _begin_anew(Episode.objects.filter(pk__in=list(ids), state=ConsolidationState.HELD))


def read_again(*, episodes: Collection[str]) -> int:
    """Have those of some episodes read anew that are evidence of nothing any more; return how many."""
    evidence = Evidence.objects.filter(episode=OuterRef("pk"))
    free = Episode.objects.active().filter(~Exists(evidence), pk__in=episodes, state=ConsolidationState.SETTLED)
    return _begin_anew(Episode.objects.filter(pk__in=list(free.values_list("pk", flat=True))))


def _begin_anew(episodes: QuerySet[Episode]) -> int:
    Claim.objects.filter(episode__in=episodes.values("pk")).delete()
    return episodes.update(
        state=ConsolidationState.NEW, state_reason="", pooled_at=None, failures=0, dead_at=None, read_at=None
    )
