"""The episodes of a cycle that was undone are held: nothing is made of them until a person releases them (B22)."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.consolidation.settling import settle_left_over
from memory.consolidation.singles import find_unheard
from memory.consolidation.sources import read_episodes
from memory.consolidation.touched import undoing_of
from memory.domain.lifecycle import ConsolidationState, JobState
from memory.llm.embeddings import embedder_of
from memory.models import Belief, ClusterMember, Cycle, Episode, Evidence, StructuralJob, StructuralKind

_HOLDABLE = (
    ConsolidationState.NEW, ConsolidationState.POOLED, ConsolidationState.SETTLED, ConsolidationState.FAILED,
    ConsolidationState.HELD,
)  # fmt: skip


class NotUndone(ValueError):
    """Only a cycle that was undone holds episodes."""


def hold_episodes(*, cycle: Cycle) -> int:
    """Hold what a cycle made evidence of, and what would do the same in its place; return how many.

    Called while the cycle's evidence is still there. Held are of its jobs' episodes those it made evidence of, of its
    applied jobs' those that are evidence of nothing, and those that were pooled because their cluster was full. What is
    evidence by another cycle's word alone stays settled: no cycle takes it up. One that another undone cycle holds is
    held for this one from here on.
    """
    _settle_left_over(cycle)
    mine = ClusterMember.objects.filter(episode=OuterRef("pk"), job__cycle=cycle)
    evidence = Evidence.objects.filter(episode=OuterRef("pk"))
    became_evidence = Exists(mine) & Exists(evidence.filter(cycle=cycle))
    was_looked_at = Exists(mine.filter(job__state=JobState.APPLIED)) & ~Exists(evidence)
    was_left_out = Q(pk__in=_left_out(cycle))
    episodes = Episode.objects.for_workspace(cycle.workspace_id).filter(became_evidence | was_looked_at | was_left_out)
    return episodes.filter(state__in=_HOLDABLE).update(state=ConsolidationState.HELD, state_reason=undoing_of(cycle.pk))


def _settle_left_over(cycle: Cycle) -> None:
    """Settle what the cycle's splits had pooled, as evidence of the beliefs that stand again."""
    splits = StructuralJob.objects.filter(cycle=cycle, kind=StructuralKind.SPLIT, state=JobState.APPLIED)
    for job in splits.select_related("belief"):
        settle_left_over(belief=job.belief)


def _left_out(cycle: Cycle) -> set[str]:
    """Find what was pooled by then near a belief that the cycle gave evidence, and was not asked about it."""
    model = embedder_of(cycle.workspace_id)
    mine = Episode.objects.for_workspace(cycle.workspace_id).active()
    beliefs = Belief.objects.filter(pk__in=Evidence.objects.filter(cycle=cycle).values("belief"))
    if not beliefs.exists():
        return set()
    pool, vectors = read_episodes(
        episodes=mine.filter(state=ConsolidationState.POOLED, pooled_at__lte=cycle.now), model=model.name
    )
    unheard = find_unheard(
        workspace_id=cycle.workspace_id, episodes=pool, vectors=vectors, beliefs=beliefs, model=model
    )
    return {pair.episode.id for pair in unheard}


def held_for(*, cycle: Cycle) -> QuerySet[Episode]:
    """Return the episodes that are held since a cycle was undone; raise NotUndone where it was not."""
    if cycle.undone_at is None:
        raise NotUndone(f"Cycle {cycle.pk} was not undone, so no episodes are held for it.")
    held: QuerySet[Episode] = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.HELD, state_reason=undoing_of(cycle.pk)
    )
    return held


def release_held(*, episodes: QuerySet[Episode]) -> int:
    """Let the held ones among some episodes take part again as if they were new; return how many."""
    held = Episode.objects.filter(pk__in=episodes.order_by().values("pk"), state=ConsolidationState.HELD)
    return held.update(state=ConsolidationState.NEW, state_reason="", pooled_at=None, failures=0, dead_at=None)
