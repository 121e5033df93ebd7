"""Ask models on behalf of a job, and turn whatever stops the asking into a state of its rows."""

import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from memory.consolidation.blame import blame_episodes
from memory.consolidation.cycle import TIME_IS_UP, budget_policy, has_time_for_a_call, seconds_left, spend_budget
from memory.consolidation.leases import JobLease, fail_job, hold_back
from memory.consolidation.setting_aside import BrokenBy
from memory.domain.lifecycle import describe_own_error
from memory.domain.policy import holds_a_call
from memory.llm.call_log import (
    CallBudget,
    CallScope,
    DailyCapReached,
    LeaseLost,
    OutOfBudget,
    RetryLater,
    abandon_calls,
)
from memory.llm.embeddings import embed_for_workspace, embedder_of
from memory.llm.registry import CallFailed, Embedder, FailureKind, language_model
from memory.llm.runner import BACKOFF_SECONDS, FATAL_KINDS, FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.models import ClusterJob, StructuralJob
from memory.signals import is_shutting_down

log = structlog.get_logger(__name__)

Vector = NDArray[np.float32]

SERVER_IS_BUSY = "a model server asks to wait longer than the cycle lasts"

_NEVER_BETTER = {*FATAL_KINDS, FailureKind.BAD_REQUEST}


def ask_models(
    *, lease: JobLease[Any], asks: Sequence[ModelRequest], store: Callable[[Sequence[ModelAnswer]], None]
) -> bool:
    """Answer all asks, storing each as it comes; false if some are left, the reason being in the rows by then."""
    if not asks:
        return True
    job = lease.job
    scope = _scope(job)
    if lease.is_inherited:
        abandon_calls(workspace_id=job.workspace_id, job_id=scope.job_id, structural_job_id=scope.structural_job_id)
    of_cycle = seconds_left(cycle_id=lease.cycle_id)
    of_step = lease.seconds_left()
    try:
        failures = run_requests(
            asks=asks,
            scope=scope,
            budget=CallBudget.of_step(seconds=min(of_cycle, of_step), policy=budget_policy()),
            model=language_model(),
            store=store,
            fence=lease.renew,
        )
    except RetryLater as wait:
        _wait(lease=lease, seconds=wait.seconds)
        return False
    except DailyCapReached as spent:
        spend_budget(cycle_id=lease.cycle_id, reason=str(spent))
        return False
    except OutOfBudget:
        _stop(lease=lease, is_cycle_spent=of_cycle <= of_step and not is_shutting_down())
        return False
    except LeaseLost:
        return False
    if failures:
        _raise_if_ours(lease, failures)
        _fail(lease, failures)
    return not failures


def _raise_if_ours(lease: JobLease[Any], failures: Sequence[FailedRequest]) -> None:
    """Raise what rules on this machine broke over, and nothing that a server may have had a part in."""
    ours = [failure for failure in failures if failure.kind is FailureKind.OWN_ERROR]
    if not ours or not language_model().is_offline or not isinstance(lease.job, ClusterJob):
        return
    alone = {
        failure.request.episodes[0].id: describe_own_error(failure.message)
        for failure in ours
        if len(failure.request.episodes) == 1
    }
    raise BrokenBy(ours[0].message, reasons=alone)


def _fail(lease: JobLease[Any], failures: Sequence[FailedRequest]) -> None:
    """Mark the job failed and its episodes where they are the reason; a refused key ends the cycle's calls.

    What nothing but a key was wrong with is carried over with the cycle's other structural jobs, and no claim counted.
    """
    reason = f"{failures[0].kind}: {failures[0].message}"
    if failures[0].kind in FATAL_KINDS:
        spend_budget(cycle_id=lease.cycle_id, reason=reason)
        if isinstance(lease.job, StructuralJob):
            return
    if isinstance(lease.job, ClusterJob):
        blame_episodes(job_id=lease.job_id, failures=failures)
    fail_job(lease=lease, reason=reason)


def _scope(job: ClusterJob | StructuralJob) -> CallScope:
    if isinstance(job, StructuralJob):
        return CallScope(workspace_id=job.workspace_id, cycle_id=job.cycle_id, structural_job_id=job.pk)
    return CallScope(workspace_id=job.workspace_id, cycle_id=job.cycle_id, job_id=job.pk)


def embed_statement(*, lease: JobLease[Any], statement: str) -> Vector | None:
    """Embed a candidate (768); None if a server would not, the job then waiting or failed, its reply in the ledger."""
    model = embedder_of(lease.job.workspace_id)
    if not model.is_local and not has_time_for_a_call(cycle_id=lease.cycle_id):
        _stop(lease=lease, is_cycle_spent=True)
        return None
    if not model.is_local and not holds_a_call(seconds=lease.seconds_left(), budget=budget_policy()):
        _stop(lease=lease, is_cycle_spent=False)
        return None
    try:
        vector: Vector = embed_patiently(
            scope=_scope(lease.job), model=model, texts=[statement], seconds=lease.seconds_left()
        )[0]
    except DailyCapReached as spent:
        spend_budget(cycle_id=lease.cycle_id, reason=str(spent))
        return None
    except CallFailed as failure:
        if failure.retry_after is not None:
            _wait(lease=lease, seconds=failure.retry_after)
        else:
            if failure.kind in FATAL_KINDS:
                spend_budget(cycle_id=lease.cycle_id, reason=f"embedding: {failure.kind}")
            fail_job(lease=lease, reason=f"embedding: {failure.kind}")
        return None
    return vector


def embed_patiently(
    *,
    scope: CallScope,
    model: Embedder,
    texts: Sequence[str],
    episodes: Collection[str] = (),
    seconds: float = math.inf,
) -> Vector:
    """Embed texts (n, 768), asking again after short pauses; raise the last CallFailed, or one that asks for long.

    Several texts that together take too long are not sent again: the caller cuts them into fewer. Nor is anything sent
    again that would take more than so many seconds altogether.
    """
    policy, ends_at = budget_policy(), time.monotonic() + seconds
    for pauses in range(policy.call_attempts):
        try:
            return embed_for_workspace(
                scope=scope, model=model, texts=texts, timeout=policy.call_seconds, episodes=episodes
            )
        except CallFailed as failure:
            pause = BACKOFF_SECONDS * 2**pauses if failure.retry_after is None else failure.retry_after
            is_last = pauses + 1 == policy.call_attempts
            is_hopeless = failure.kind in _NEVER_BETTER or (failure.kind is FailureKind.TIMEOUT and len(texts) > 1)
            is_late = not holds_a_call(seconds=ends_at - time.monotonic() - pause, budget=policy)
            if is_last or is_hopeless or is_late or pause > policy.wait_seconds:
                raise
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def _wait(*, lease: JobLease[Any], seconds: float) -> None:
    """Hold the job back for as long as a server asked; a wait that the budget does not outlast ends the cycle's."""
    if has_time_for_a_call(cycle_id=lease.cycle_id, after=seconds):
        hold_back(lease=lease, seconds=seconds)
    else:
        spend_budget(cycle_id=lease.cycle_id, reason=SERVER_IS_BUSY)


def _stop(*, lease: JobLease[Any], is_cycle_spent: bool) -> None:
    """Put the job back for good where the cycle's time is up; else let another message carry it on."""
    if is_cycle_spent:
        spend_budget(cycle_id=lease.cycle_id, reason=TIME_IS_UP)
    else:
        hold_back(lease=lease, seconds=0.0)
