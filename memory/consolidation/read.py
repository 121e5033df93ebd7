"""Step 2: read the leased messages, one stream after the other's batches in order, against what is believed (F2, F3).

`plan_readings` writes a job for each batch, `read_messages` reads one: it asks the reader and applies the reply at
once, since the next batch of the stream is read against what came of it. What cannot be read is halved, down to the
one message that spoils it; that one stays pending with its reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q

from memory.consolidation.cycle import (
    TIME_SPENT,
    claim_attempt,
    enter_step,
    has_time_for_call,
    lock_running_cycle,
    mark_budget_spent,
    read_current_cycle,
)
from memory.consolidation.episode_states import fail_unread
from memory.consolidation.jobs import JobLease, is_to_blame, leased_job, postpone_job
from memory.consolidation.leases import leased_stream
from memory.consolidation.model_calls import (
    ask_within_budget,
    embed_with_retries,
    fail_job_of_calls,
    wait_for_server,
)
from memory.consolidation.sources import hash_members
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import ConsolidationState, JobState
from memory.ledger.beliefs import CreationOutcome
from memory.ledger.transactions import Author, lock_workspace
from memory.llm.call_log import CallScope, DailyCapReached
from memory.llm.embeddings import embedder_of
from memory.llm.prompts import VERSIONS
from memory.llm.registry import language_model
from memory.llm.replies import Reading
from memory.llm.requests import Purpose, ReadingRequest
from memory.llm.runner import FATAL_KINDS, FailedRequest, ModelAnswer, ModelRequest
from memory.llm.types import CallFailed, FailureKind
from memory.models import (
    Basis,
    CallOutcome,
    Claim,
    ClusterJob,
    ClusterMember,
    Cycle,
    Episode,
    JobKind,
    JobVerdict,
    ModelCall,
    ModelCallEpisode,
)
from memory.models.audit import PURPOSE_EMBED
from memory.models.fields import insert_new
from memory.reading.apply import (
    READ_REASON,
    AnsweredReading,
    AppliedReading,
    FoundedStatement,
    apply_reading,
    compare_statements,
)
from memory.reading.messages import build_request, plan_batches, select_unread

log = structlog.get_logger(__name__)
READY_TO_READ = Q(kind=JobKind.READING, state=JobState.QUEUED)
_PLANNED_FROM = 1_000_000  # number of the first reading until it is applied; then all jobs stand in the order of that
_STREAM_PAUSE = 1.0  # seconds to wait for a stream that somebody else reads
# What fewer messages may mend: the rest of a batch is not at fault for one that no reader can read.
_HALVED_KINDS = frozenset({FailureKind.MALFORMED, FailureKind.BAD_REQUEST, FailureKind.TIMEOUT, FailureKind.OWN_ERROR})


def plan_readings(*, cycle_id: str, attempt: int) -> list[list[int]]:
    """Write a job for each batch of leased messages, once; return those that are still to be read, by stream."""
    with enter_step(cycle_id=cycle_id, attempt=attempt, name="read", enter=claim_attempt) as step:
        if step is None:
            return []
        if not step.is_done:
            step.counts = _store_plan(step.cycle)
    return list_readings(cycle_id=cycle_id)


def list_readings(*, cycle_id: str) -> list[list[int]]:
    """List the readings of a cycle that are open and free, in the order of each stream."""
    by_stream: dict[str, list[int]] = defaultdict(list)
    free = ClusterJob.objects.filter(cycle=cycle_id, state=JobState.QUEUED).readings().free()
    for job_id, stream in free.values_list("pk", "stream"):
        by_stream[stream].append(job_id)
    return list(by_stream.values())


def are_all_read(*, cycle: Cycle) -> bool:
    """Tell whether no reading of a cycle is open any more."""
    return not ClusterJob.objects.filter(cycle=cycle).readings().open().exists()


def _store_plan(cycle: Cycle) -> dict[str, int]:
    leased = Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle)
    failed_before = leased.filter(failures__gt=0)  # each alone: one of them may have failed its whole batch
    batches = plan_batches(
        episodes=select_unread(episodes=leased), alone=set(failed_before.values_list("pk", flat=True))
    )
    jobs = [
        ClusterJob(
            workspace_id=cycle.workspace_id,
            cycle=cycle,
            number=number,
            kind=JobKind.READING,
            stream=batch.stream,
            members_hash=hash_members(row.pk for row in batch.messages),
        )
        for number, batch in enumerate(batches, start=_PLANNED_FROM)
    ]
    ClusterJob.objects.bulk_create(jobs)
    ClusterMember.objects.bulk_create(
        [
            ClusterMember(workspace_id=cycle.workspace_id, job=job, episode=row, position=position)
            for job, batch in zip(jobs, batches, strict=True)
            for position, row in enumerate(batch.messages)
        ],
        batch_size=1000,
    )
    return {
        "messages": sum(len(batch.messages) for batch in batches),
        "batches": len(batches),
        "streams": len({batch.stream for batch in batches}),
    }


def read_messages(*, job_id: int, attempt: int) -> None:
    """Read a job's messages and apply what they say; a batch waits for those of its stream before it."""
    with leased_job(job_id=job_id, attempt=attempt, ready=READY_TO_READ) as lease:
        if lease is None or _waits_for_another(lease.job):
            return
        with leased_stream(workspace_id=lease.job.workspace_id, name=lease.job.stream) as is_ours:
            if not is_ours:
                postpone_job(lease=lease, seconds=_STREAM_PAUSE)
                return
            cycle = read_current_cycle(cycle_id=lease.cycle_id, attempt=attempt)
            if cycle is not None and _read(lease, cycle, _unread_members(lease.job)):
                _end(lease)


def _waits_for_another(job: ClusterJob) -> bool:
    """Tell whether a batch of the stream before this one is still to be read.

    One that failed keeps nobody waiting, since it might fail in every cycle: the gate sets its messages aside with the
    reason, and they come late, against beliefs with their dates (F2).
    """
    earlier = ClusterJob.objects.filter(cycle=job.cycle_id, stream=job.stream, number__lt=job.number)
    return bool(earlier.readings().open().exists())


def _unread_members(job: ClusterJob) -> list[Episode]:
    members = Episode.objects.filter(pk__in=job.members.values("episode"), leased_by=job.cycle_id)
    place = dict(job.members.values_list("episode_id", "position"))
    return sorted(select_unread(episodes=members).defer("search"), key=lambda row: place[row.pk])


def _read(lease: JobLease[ClusterJob], cycle: Cycle, messages: Sequence[Episode]) -> bool:
    """Read messages, in halves where together they cannot be; false where some are left to another time."""
    if not messages:
        return True
    request = build_request(messages=messages, now=cycle.now)
    if request is None:
        Episode.objects.filter(pk__in=[row.pk for row in messages]).update(read_at=cycle.now)
        return True
    applied: list[bool] = []
    failures = ask_within_budget(
        lease=lease,
        asks=[ModelRequest(key="", request=request)],
        store=lambda answers: applied.extend(_apply(lease, cycle, answer) for answer in answers),
        call_seconds=settings.POLICY.reading.seconds,
    )
    if failures is None:
        return False
    if failures:
        return _go_on_without(lease, cycle, messages, failures[0])
    return all(applied)


def _go_on_without(
    lease: JobLease[ClusterJob], cycle: Cycle, messages: Sequence[Episode], failure: FailedRequest
) -> bool:
    """Read the halves of what could not be read, or set the one message aside that cannot be."""
    if failure.kind not in _HALVED_KINDS:
        fail_job_of_calls(lease=lease, failures=[failure])
        return False
    if len(messages) > 1:
        middle = len(messages) // 2
        return _read(lease, cycle, messages[:middle]) and _read(lease, cycle, messages[middle:])
    is_blamed = is_to_blame(cycle_id=cycle.pk, kind=failure.kind)
    fail_unread(cycle=cycle, ids=[messages[0].pk], kind=failure.kind, is_blamed=is_blamed)
    return True


def _apply(lease: JobLease[ClusterJob], cycle: Cycle, answer: ModelAnswer) -> bool:
    """Embed what a reply states and apply it in one transaction; false where that must wait."""
    request, reply = answer.request, answer.reply
    if not isinstance(request, ReadingRequest) or not isinstance(reply, Reading):
        raise TypeError(f"A reading was asked for, and {type(reply).__name__} came.")
    vectors = _embed_statements(lease, list(dict.fromkeys(line.statement for line in reply.new if line is not None)))
    if vectors is None:
        return False
    answered = AnsweredReading(
        request=request,
        reply=reply,
        reader=name_reader(),
        call_id=answer.call_id,
        model=embedder_of(cycle.workspace_id).name,
        vectors=vectors,
    )
    compare_statements(answered=answered)
    with transaction.atomic():
        lock_workspace(cycle.workspace_id)
        if not lock_running_cycle(cycle=cycle) or not lease.mine.select_for_update(no_key=True).exists():
            return False
        applied = apply_reading(answered=answered, author=Author.of_cycle(cycle, reason=READ_REASON))
        for statement in applied.statements:
            if statement.draft is not None:
                _store_statement_job(cycle, statement, answer.call_id)
        _store_verdicts(lease.job, cycle, applied, answer.call_id)
    return True


def name_reader() -> str:
    """Name the model that reads, with the version of the prompt, as claims keep it."""
    return f"{language_model().model_for(Purpose.READ)} {VERSIONS[Purpose.READ]}"


def _embed_statements(lease: JobLease[ClusterJob], texts: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the vectors of statements, by their words; none of those refused, None where the job must wait."""
    if not texts:
        return {}
    model = embedder_of(lease.job.workspace_id)
    if not model.is_local and not has_time_for_call(cycle_id=lease.cycle_id):
        mark_budget_spent(cycle_id=lease.cycle_id, reason=TIME_SPENT)
        return None
    scope = CallScope(workspace_id=lease.job.workspace_id, cycle_id=lease.cycle_id, job_id=lease.job_id)
    try:
        vectors = embed_with_retries(scope=scope, model=model, texts=texts, seconds=lease.seconds_left())
    except DailyCapReached as spent:
        mark_budget_spent(cycle_id=lease.cycle_id, reason=str(spent))
        return None
    except CallFailed as failure:
        if failure.kind in _EMBEDDED_IN_PARTS:
            return _embed_parts(lease, texts, failure)
        _wait_for_vectors(lease, failure)
        return None
    return dict(zip(texts, vectors, strict=True))


_EMBEDDED_IN_PARTS = (FailureKind.BAD_REQUEST, FailureKind.TIMEOUT)


def _embed_parts(lease: JobLease[ClusterJob], texts: Sequence[str], failure: CallFailed) -> Mapping[str, Any] | None:
    """Embed the halves of what is refused or takes too long; one statement that is refused is kept without a vector."""
    if len(texts) > 1:
        middle = len(texts) // 2
        early = _embed_statements(lease, texts[:middle])
        late = None if early is None else _embed_statements(lease, texts[middle:])
        return None if early is None or late is None else {**early, **late}
    if failure.kind is FailureKind.BAD_REQUEST:
        log.warning("statement_not_embedded", job=lease.job_id, cycle=lease.cycle_id)
        return {}
    _wait_for_vectors(lease, failure)
    return None


def _wait_for_vectors(lease: JobLease[ClusterJob], failure: CallFailed) -> None:
    """Put a job off, each time for longer; a refused key ends the cycle's work, as for any other call."""
    if failure.kind in FATAL_KINDS:
        mark_budget_spent(cycle_id=lease.cycle_id, reason=f"embedding: {failure.kind}")
        return
    failed = ModelCall.objects.filter(job=lease.job_id, purpose=PURPOSE_EMBED).exclude(outcome=CallOutcome.OK).count()
    pause = _STREAM_PAUSE * 2 ** (failed // settings.POLICY.budget.call_attempts)
    wait_for_server(lease=lease, seconds=pause if failure.retry_after is None else failure.retry_after)


def _store_verdicts(reading: ClusterJob, cycle: Cycle, applied: AppliedReading, call_id: int | None) -> None:
    """Keep what was said of beliefs behind the new statements, so that rebuilding can say it again.

    It is done with as a job of its own: the reading may be one half of a batch whose other half fails or must wait.
    """
    if not applied.verdicts:
        return
    job = ClusterJob.objects.create(
        workspace_id=cycle.workspace_id,
        cycle=cycle,
        number=next_job_number(cycle=cycle),
        kind=JobKind.READING,
        state=JobState.APPLIED,
        stream=reading.stream,
    )
    rows = [
        {
            "workspace_id": job.workspace_id,
            "job_id": job.pk,
            "belief_id": verdict.belief_id,
            "claim_id": None,
            "episode_id": verdict.episode_id,
            "statement_hash": "",
            "verdict": verdict.verdict,
            "basis": Basis.MODEL,
            "reason": verdict.reason,
            "ends_belief": verdict.ends,
            "valid_at": verdict.valid_at,
            "model": "",
            "prompt_version": "",
            "call_id": call_id,
        }
        for verdict in applied.verdicts
    ]
    insert_new(model=JobVerdict, rows=rows)


def _store_statement_job(cycle: Cycle, statement: FoundedStatement, call_id: int | None) -> None:
    """Keep what a statement was to found and what came of it, as the job of one claim that is done with."""
    draft, made, claim = statement.draft, statement.made, statement.claim
    assert draft is not None
    assert made is not None
    is_joined = made.outcome is CreationOutcome.JOINED
    job = ClusterJob.objects.create(
        workspace_id=cycle.workspace_id,
        cycle=cycle,
        number=next_job_number(cycle=cycle),
        kind=JobKind.CLAIM,
        state=JobState.APPLIED if made.belief else JobState.REFUSED,
        claim=claim,
        members_hash=hash_members([claim.episode_id]),
        candidate=_as_candidate(statement),
        candidate_hash=draft.statement_hash,
        candidate_language=draft.language,
        candidate_vector=None if statement.vector is None else np.asarray(statement.vector, np.float32).tolist(),
        outcome=made.outcome,
        refusal="" if made.belief else made.outcome,
        created_belief=None if is_joined else made.belief,
        joined_belief=made.belief if is_joined else None,
        suppressed_by_id=made.tombstone,
    )
    ClusterMember.objects.create(
        workspace_id=cycle.workspace_id, job=job, episode_id=claim.episode_id, claim=claim, position=0
    )
    _store_own_verdict(job, claim, call_id)


def _store_own_verdict(job: ClusterJob, claim: Claim, call_id: int | None) -> None:
    JobVerdict.objects.create(
        workspace_id=job.workspace_id,
        job=job,
        episode_id=claim.episode_id,
        statement_hash=job.candidate_hash,
        verdict=Verdict.SUPPORTS,
        basis=Basis.MODEL,
        call_id=call_id,
    )


def _as_candidate(statement: FoundedStatement) -> dict[str, Any]:
    draft, descent = statement.draft, statement.descent
    assert draft is not None
    parents = [parent.pk for parent in descent.parents] if descent else []
    return {
        "statement": draft.statement,
        "subject": draft.subject,
        "predicate": draft.predicate,
        "context": draft.context,
        "timeframe": str(draft.timeframe),
        "fact_type": str(draft.fact_type),
        "importance": draft.importance,
        "valid_from": _written(draft.valid_from),
        "valid_until": _written(draft.valid_until),
        "parents": parents,
        "lineage": str(descent.kind) if descent else "",
        "lineage_reason": descent.reason if descent else "",
    }


def _written(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""


def next_job_number(*, cycle: Cycle) -> int:
    """Return the next number in the order of applying; the caller holds the workspace's lock."""
    applied = ClusterJob.objects.filter(cycle=cycle, number__lt=_PLANNED_FROM)
    highest: int = applied.aggregate(number=Max("number"))["number"] or 0
    return highest + 1


def _end(lease: JobLease[ClusterJob]) -> None:
    """End a reading whose messages are read or set aside, behind the statements that it made."""
    assert lease.job.cycle
    with transaction.atomic():
        lock_workspace(lease.job.workspace_id)
        lease.end(state=JobState.APPLIED, number=next_job_number(cycle=lease.job.cycle))


def let_pooled_be_read(*, workspace_id: int, most: int | None = None) -> tuple[int, int]:
    """Let messages of the pool that today's reader has not read wait for it; return how many, and how many are left.

    Those said first come first. What was claimed by an earlier reader goes now.
    """
    pooled = Episode.objects.for_workspace(workspace_id).active().speech().filter(state=ConsolidationState.POOLED)
    claims = Claim.objects.filter(episode=OuterRef("pk"))
    calls = ModelCallEpisode.objects.filter(
        episode=OuterRef("pk"),
        call__outcome=CallOutcome.OK,
        call__purpose=Purpose.READ,
        call__model=language_model().model_for(Purpose.READ),
        call__prompt_version=VERSIONS[Purpose.READ],
    )
    asserts_nothing = Q(read_at__isnull=False) & ~Exists(claims) & Exists(calls)
    unread = pooled.exclude(Exists(claims.filter(reader=name_reader())) | asserts_nothing)
    with transaction.atomic():
        lock_workspace(workspace_id)
        waiting = list(unread.order_by("occurred_at", "pk").values_list("pk", flat=True))
        rows = Episode.objects.filter(pk__in=waiting[:most], state=ConsolidationState.POOLED)
        # A cluster step may take up one of the pool meanwhile: that one keeps its claims.
        chosen = list(rows.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
        Claim.objects.filter(episode__in=chosen).delete()
        Episode.objects.filter(pk__in=chosen).update(state=ConsolidationState.NEW, state_reason="", read_at=None)
    return len(chosen), len(waiting) - len(chosen)
