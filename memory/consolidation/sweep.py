"""Find what lost its worker or its message, and wake it (every few seconds, anywhere, any number at once)."""

from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from memory.consolidation.cycle import begin_attempt, budget_policy
from memory.consolidation.finish import close_cycle
from memory.domain.lifecycle import WORKSPACE_ERRORS, CycleState
from memory.domain.policy import step_seconds
from memory.llm.call_log import abandon_calls
from memory.models import CallOutcome, ClusterJob, Cycle, Heartbeat, ModelCall, StructuralJob
from memory.signals import cycle_ready

log = structlog.get_logger(__name__)

SWEEP = "sweep"


def sweep() -> int:
    """Wake every abandoned cycle and every job whose wait is over; return how many cycles were woken."""
    woken = {cycle.pk for cycle in Cycle.objects.abandoned() if _try_to_take_over(cycle)}
    woken |= _wake_waiting()
    _close_lost_calls()
    if woken:
        log.info("cycles_woken", cycles=sorted(woken))
    Heartbeat.objects.update_or_create(name=SWEEP, defaults={"seen_at": Now()})
    return len(woken)


def _try_to_take_over(cycle: Cycle) -> bool:
    """Take a cycle over, or log why not: those of other workspaces are taken over all the same (E6)."""
    try:
        return _take_over(cycle)
    except WORKSPACE_ERRORS:
        log.exception("cycle_not_taken_over", cycle=cycle.pk, workspace=cycle.workspace_id)
        return False


def _take_over(cycle: Cycle) -> bool:
    """Begin another attempt; a cycle that has had them all is closed as failed, its episodes given back.

    Attempts that no worker took up do not count: a queue may be long, and workers away, for as long as it takes. Where
    the installation keeps no beliefs (B22) it is cancelled.
    """
    if not settings.ENGRAM_BELIEFS:
        close_cycle(cycle=cycle, attempt=cycle.attempt, state=CycleState.CANCELLED, reason="beliefs are off")
        return False
    if cycle.claims < budget_policy().cycle_attempts:
        return begin_attempt(cycle_id=cycle.pk) is not None
    close_cycle(cycle=cycle, attempt=cycle.attempt, state=CycleState.FAILED, reason="too many attempts")
    return False


def _close_lost_calls() -> None:
    """Say of calls that nobody can be waiting for any more that they are lost; what they cost stays counted."""
    seconds = step_seconds(budget=budget_policy())
    lost = ModelCall.objects.filter(outcome=CallOutcome.OPEN, started_at__lt=Now() - timedelta(seconds=seconds))
    for workspace_id in set(lost.values_list("workspace_id", flat=True)):
        abandon_calls(workspace_id=workspace_id, older_than_seconds=seconds)


@transaction.atomic
def _wake_waiting() -> set[str]:
    """Clear the waits that are over, each once however many sweep, and send their cycles again (no new attempt)."""
    cycles = _end_waits(ClusterJob.objects.to_judge()) | _end_waits(StructuralJob.objects.open())
    for cycle_id, attempt in cycles:
        cycle_ready.send(sender=Cycle, cycle_id=cycle_id, attempt=attempt)
    return {cycle_id for cycle_id, _ in cycles}


def _end_waits(jobs: QuerySet[Any]) -> set[tuple[str, int]]:
    """Clear the waits that are over; return the cycles that they kept, with their attempts."""
    waiting = jobs.filter(not_before__lte=Now(), cycle__state=CycleState.RUNNING)
    over = list(
        waiting.select_for_update(skip_locked=True, of=("self",)).values_list("pk", "cycle_id", "cycle__attempt")
    )
    jobs.model._default_manager.filter(pk__in=[job for job, _, _ in over]).update(not_before=None)
    return {(cycle_id, attempt) for _, cycle_id, attempt in over}
