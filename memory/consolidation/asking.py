"""Ask models on behalf of a job, and turn whatever stops the asking into a state of its rows."""

from collections.abc import Callable, Sequence

import numpy as np
import structlog
from numpy.typing import NDArray

from memory.consolidation.cycle import budget_policy, seconds_left, spend_budget
from memory.consolidation.leases import JobLease, fail_job, hold_back
from memory.llm.budget import DailyCapReached
from memory.llm.calls import Answer, Ask, CallBudget, CallScope, LeaseLost, MustWait, OutOfBudget, answer_asks
from memory.llm.embedding_calls import embed_in_ledger
from memory.llm.embeddings import embedder
from memory.llm.model import CallFailed, language_model
from memory.models import ClusterJob

log = structlog.get_logger(__name__)

Vector = NDArray[np.float32]

TIME_IS_UP = "working time"


def ask_models(*, lease: JobLease, job: ClusterJob, asks: Sequence[Ask], store: Callable[[Answer], None]) -> bool:
    """Answer all asks, storing each as it comes; false if some are left, the reason being in the rows by then."""
    of_cycle = seconds_left(cycle_id=job.cycle_id)
    of_step = budget_policy().last_call_seconds + budget_policy().call_seconds
    try:
        failures = answer_asks(
            asks=asks,
            scope=CallScope(workspace_id=job.workspace_id, cycle_id=job.cycle_id, job_id=job.pk),
            budget=CallBudget.of_step(seconds=min(of_cycle, of_step), policy=budget_policy()),
            model=language_model(),
            store=store,
            fence=lease.renew,
        )
    except MustWait as wait:
        hold_back(lease=lease, seconds=wait.seconds)
        return False
    except DailyCapReached as cap:
        spend_budget(cycle_id=lease.cycle_id, reason=str(cap))
        return False
    except OutOfBudget:
        _stop(lease=lease, is_cycle_spent=of_cycle <= of_step)
        return False
    except LeaseLost:
        return False
    if failures:
        fail_job(job_id=job.pk, owner=lease.owner, reason=f"{failures[0].kind}: {failures[0].message}")
    return not failures


def embed_statement(*, lease: JobLease, job: ClusterJob, statement: str) -> Vector | None:
    """Embed a candidate (768); None if a server would not, the job then waiting or failed, its reply in the ledger."""
    try:
        vector: Vector = embed_in_ledger(
            scope=CallScope(workspace_id=job.workspace_id, cycle_id=job.cycle_id, job_id=job.pk),
            model=embedder(),
            texts=[statement],
            timeout=budget_policy().call_seconds,
        )[0]
    except CallFailed as failure:
        if failure.retry_after is not None:
            hold_back(lease=lease, seconds=failure.retry_after)
        else:
            fail_job(job_id=lease.job_id, owner=lease.owner, reason=f"embedding: {failure.kind}")
        return None
    return vector


def _stop(*, lease: JobLease, is_cycle_spent: bool) -> None:
    """Put the job back for good where the cycle's time is up; else let another message carry it on."""
    if is_cycle_spent:
        spend_budget(cycle_id=lease.cycle_id, reason=TIME_IS_UP)
    else:
        hold_back(lease=lease, seconds=0.0)
