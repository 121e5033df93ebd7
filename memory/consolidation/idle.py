"""When there is nothing left to do (B7)."""

from memory.consolidation.blame import counting_blames
from memory.domain.lifecycle import ConsolidationState, CycleState, JobState
from memory.models import CallOutcome, ClusterJob, ClusterMember, Cycle, CycleStep, Episode, ModelCall, StructuralJob


def is_idle_after(*, cycle: Cycle) -> bool:
    """Tell whether another cycle would find nothing to do, or nothing that the last one could do either.

    Episodes stay pending without end where a model keeps failing: a cycle that applied nothing is the last.
    """
    if cycle.state in (CycleState.FAILED, CycleState.CANCELLED):
        return True
    return not _has_work(cycle) or not moved_on(cycle=cycle)


def _has_work(cycle: Cycle) -> bool:
    """Tell whether anything waits, or the cycle had something to judge, which may have made more to judge."""
    return (
        Episode.objects.for_workspace(cycle.workspace_id).pending().exists()
        or ClusterJob.objects.filter(cycle=cycle).exists()
        or StructuralJob.objects.for_workspace(cycle.workspace_id).open().exists()
    )


def moved_on(*, cycle: Cycle) -> bool:
    """Tell whether a cycle got anything out of the way, or paid for something that the next need not pay for.

    A job judged, an episode pooled for want of company or a step nearer to the dead letters, an answer stored.
    """
    if ModelCall.objects.filter(cycle=cycle, outcome=CallOutcome.OK).exists():
        return True
    if CycleStep.objects.filter(cycle=cycle, name="extract", counts__blamed__gt=0).exists():
        return True
    blamed = ClusterMember.objects.filter(job__cycle=cycle, job__state=JobState.FAILED)
    if blamed.filter(blame__in=counting_blames(cycle_id=cycle.pk)).exists():
        return True
    judged = ClusterJob.objects.filter(cycle=cycle).judged().exists()
    pooled = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.POOLED, pooled_at=cycle.now
    )
    return judged or pooled.exists() or StructuralJob.objects.filter(cycle=cycle).exists()
