"""When there is nothing left to do (B7)."""

from memory.domain.lifecycle import ConsolidationState, CycleState
from memory.models import ClusterJob, Cycle, Episode


def is_idle_after(*, cycle: Cycle) -> bool:
    """Tell whether another cycle would find nothing to do, or nothing that the last one could do either.

    Episodes stay pending without end where a model keeps failing: a cycle that applied nothing is the last.
    """
    if cycle.state in (CycleState.FAILED, CycleState.CANCELLED):
        return True
    jobs = ClusterJob.objects.filter(cycle=cycle)
    if not Episode.objects.for_workspace(cycle.workspace_id).pending().exists() and not jobs.exists():
        return True
    return not _moved_on(cycle)


def _moved_on(cycle: Cycle) -> bool:
    """Tell whether a cycle got anything out of the way: a job judged, or an episode pooled for want of company."""
    judged = ClusterJob.objects.filter(cycle=cycle).judged().exists()
    pooled = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.POOLED, pooled_at=cycle.now
    )
    return judged or pooled.exists()
