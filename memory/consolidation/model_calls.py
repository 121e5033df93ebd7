"""Ask models on behalf of a job, and turn whatever stops the asking into a state of its rows.

`ask_models` answers a job's requests within the budget of its cycle and step; the `read_` functions find the verdicts
that need not be asked for again (B7).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from memory.consolidation.cycle import TIME_SPENT, budget_policy, has_time_for_call, mark_budget_spent, seconds_left
from memory.consolidation.jobs import BrokenEpisodes, JobLease, blame_episodes, fail_job, postpone_job
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import describe_own_error
from memory.domain.time_limits import holds_a_call
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
from memory.llm.prompts import CLASSIFICATION_VERSION
from memory.llm.registry import language_model
from memory.llm.requests import Purpose
from memory.llm.runner import BACKOFF_SECONDS, FATAL_KINDS, FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.llm.types import CallFailed, Embedder, FailureKind
from memory.models import Basis, ChildVerdict, ClusterJob, Evidence, JobVerdict, StructuralJob
from memory.signals import is_shutting_down

log = structlog.get_logger(__name__)
SERVER_BUSY = "a model server asks to wait longer than the cycle lasts"


def ask_models(
    *, lease: JobLease[Any], asks: Sequence[ModelRequest], store: Callable[[Sequence[ModelAnswer]], None]
) -> bool:
    """Answer all asks, storing each as it comes; false if some are left, the reason being in the rows by then."""
    failures = ask_within_budget(lease=lease, asks=asks, store=store)
    if failures:
        _raise_own_errors(lease, failures)
        fail_job_of_calls(lease=lease, failures=failures)
    return failures is not None and not failures


def ask_within_budget(
    *,
    lease: JobLease[Any],
    asks: Sequence[ModelRequest],
    store: Callable[[Sequence[ModelAnswer]], None],
    call_seconds: float = 0.0,
) -> list[FailedRequest] | None:
    """Answer asks for a job, storing each as it comes; return what failed for good.

    None where asks are left over, the reason being in the rows by then. A call may take `call_seconds` where that is
    longer than usual.
    """
    if not asks:
        return []
    job = lease.job
    scope = _scope(job)
    if lease.is_inherited:
        abandon_calls(workspace_id=job.workspace_id, job_id=scope.job_id, structural_job_id=scope.structural_job_id)
    policy = replace(budget_policy(), call_seconds=max(budget_policy().call_seconds, call_seconds))
    of_cycle = seconds_left(cycle_id=lease.cycle_id)
    of_step = lease.seconds_left()
    try:
        return run_requests(
            asks=asks,
            scope=scope,
            budget=CallBudget.of_step(seconds=min(of_cycle, of_step), policy=policy),
            model=language_model(),
            store=store,
            fence=lease.renew,
        )
    except RetryLater as wait:
        wait_for_server(lease=lease, seconds=wait.seconds)
    except DailyCapReached as spent:
        mark_budget_spent(cycle_id=lease.cycle_id, reason=str(spent))
    except OutOfBudget:
        _stop_job(lease=lease, is_cycle_spent=of_cycle <= of_step and not is_shutting_down())
    except LeaseLost:
        pass
    return None


Vector = NDArray[np.float32]
_NOT_RETRIED = {*FATAL_KINDS, FailureKind.BAD_REQUEST}


def _raise_own_errors(lease: JobLease[Any], failures: Sequence[FailedRequest]) -> None:
    """Raise what rules on this machine broke over, and nothing that a server may have had a part in."""
    ours = [failure for failure in failures if failure.kind is FailureKind.OWN_ERROR]
    if not ours or not language_model().is_offline or not isinstance(lease.job, ClusterJob):
        return
    alone = {
        failure.request.episodes[0].id: describe_own_error(failure.message)
        for failure in ours
        if len(failure.request.episodes) == 1
    }
    raise BrokenEpisodes(ours[0].message, reasons=alone)


def fail_job_of_calls(*, lease: JobLease[Any], failures: Sequence[FailedRequest]) -> None:
    """Mark the job failed and its episodes where they are the reason; a refused key ends the cycle's calls.

    What nothing but a key was wrong with is carried over with the cycle's other structural jobs, and no claim counted.
    """
    reason = f"{failures[0].kind}: {failures[0].message}"
    if failures[0].kind in FATAL_KINDS:
        mark_budget_spent(cycle_id=lease.cycle_id, reason=reason)
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
    if not model.is_local and not has_time_for_call(cycle_id=lease.cycle_id):
        _stop_job(lease=lease, is_cycle_spent=True)
        return None
    if not model.is_local and not holds_a_call(seconds=lease.seconds_left(), budget=budget_policy()):
        _stop_job(lease=lease, is_cycle_spent=False)
        return None
    try:
        vector: Vector = embed_with_retries(
            scope=_scope(lease.job), model=model, texts=[statement], seconds=lease.seconds_left()
        )[0]
    except DailyCapReached as spent:
        mark_budget_spent(cycle_id=lease.cycle_id, reason=str(spent))
        return None
    except CallFailed as failure:
        if failure.retry_after is not None:
            wait_for_server(lease=lease, seconds=failure.retry_after)
        else:
            if failure.kind in FATAL_KINDS:
                mark_budget_spent(cycle_id=lease.cycle_id, reason=f"embedding: {failure.kind}")
            fail_job(lease=lease, reason=f"embedding: {failure.kind}")
        return None
    return vector


def embed_with_retries(
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
            is_hopeless = failure.kind in _NOT_RETRIED or (failure.kind is FailureKind.TIMEOUT and len(texts) > 1)
            is_late = not holds_a_call(seconds=ends_at - time.monotonic() - pause, budget=policy)
            if is_last or is_hopeless or is_late or pause > policy.wait_seconds:
                raise
            time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def wait_for_server(*, lease: JobLease[Any], seconds: float) -> None:
    """Hold the job back for as long as a server asked; a wait that the budget does not outlast ends the cycle's."""
    if has_time_for_call(cycle_id=lease.cycle_id, after=seconds):
        postpone_job(lease=lease, seconds=seconds)
    else:
        mark_budget_spent(cycle_id=lease.cycle_id, reason=SERVER_BUSY)


def _stop_job(*, lease: JobLease[Any], is_cycle_spent: bool) -> None:
    """Put the job back for good where the cycle's time is up; else let another message carry it on."""
    if is_cycle_spent:
        mark_budget_spent(cycle_id=lease.cycle_id, reason=TIME_SPENT)
    else:
        postpone_job(lease=lease, seconds=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownVerdict:
    """What a model said of an episode and a statement, and in which call."""

    verdict: Verdict
    reason: str
    call_id: int | None


def classification_model() -> str:
    """Name the model whose verdicts count as given."""
    return language_model().model_for(Purpose.CLASSIFY)


def read_known_verdicts(
    *, workspace_id: int, hashes: Collection[str], episodes: Collection[str]
) -> dict[tuple[str, str], KnownVerdict]:
    """Find the verdicts that today's model and prompt gave, by (statement hash, episode id)."""
    rows = _read_verdict_rows(workspace_id, hashes, episodes, "verdict", "reason", "call_id")
    return {
        (statement, episode): KnownVerdict(verdict=Verdict(verdict), reason=reason, call_id=call_id)
        for statement, episode, verdict, reason, call_id in rows
    }


def read_judged_pairs(
    *, workspace_id: int, hashes: Collection[str], episodes: Collection[str]
) -> dict[tuple[str, str], Verdict]:
    """Find what was said of pairs (statement hash, episode id), and nothing else of it: a pool has many of them."""
    rows = _read_verdict_rows(workspace_id, hashes, episodes, "verdict")
    return {(statement, episode): Verdict(verdict) for statement, episode, verdict in rows}


def _read_verdict_rows(
    workspace_id: int, hashes: Collection[str], episodes: Collection[str], *columns: str
) -> Iterator[tuple[Any, ...]]:
    """Yield statement hash, episode and columns of what was said of beliefs, candidates and children of structure."""
    about = {
        "child__statement_hash": ChildVerdict.objects.for_workspace(workspace_id),
        "statement_hash": JobVerdict.objects.for_workspace(workspace_id),
    }
    for statement_hash, said in about.items():
        rows = said.filter(
            **{f"{statement_hash}__in": hashes},
            episode__in=episodes,
            basis=Basis.MODEL,
            model=classification_model(),
            prompt_version=CLASSIFICATION_VERSION,
        )
        yield from rows.values_list(statement_hash, "episode_id", *columns).iterator(chunk_size=5000)


def read_evidenced_pairs(
    *, workspace_id: int, beliefs: Collection[str], episodes: Collection[str]
) -> set[tuple[str, str]]:
    """Find the pairs (belief id, episode id) that already are evidence."""
    rows = Evidence.objects.for_workspace(workspace_id).filter(belief__in=beliefs, episode__in=episodes)
    return set(rows.values_list("belief_id", "episode_id"))
