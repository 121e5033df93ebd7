"""Step 3: one call per cluster for the belief that its episodes support."""

from typing import Any

import structlog
from django.conf import settings
from django.db.models import QuerySet

from memory.consolidation.asking import ask_models, embed_statement
from memory.consolidation.leases import JobLease, leased_job
from memory.consolidation.sources import EpisodeSource, hash_statement, read_members
from memory.domain.language import detect_language
from memory.domain.lifecycle import JobState
from memory.domain.refusals import refuse_statement
from memory.llm.calls import Answer, Ask
from memory.llm.embeddings import embedder
from memory.llm.replies import Synthesis
from memory.llm.requests import SynthesisRequest
from memory.models import ClusterJob

log = structlog.get_logger(__name__)

NO_STATEMENT = "no_statement"
TOO_FEW_MEMBERS = "too_few_members"  # some were forgotten since they were clustered


def synthesize_cluster(*, job_id: int, attempt: int) -> None:
    """Ask for a cluster's candidate, check it, embed it, store it; a job that is not ours or done is left alone."""
    with leased_job(job_id=job_id, attempt=attempt, state=JobState.QUEUED) as lease:
        if lease is None:
            return
        job = ClusterJob.objects.defer("candidate_vector").get(pk=job_id)
        members, _ = read_members(job=job, model=embedder().name)
        if len(members) < settings.POLICY.consolidation.cluster_min:
            _refuse(lease=lease, refusal=TOO_FEW_MEMBERS)
            return
        central = members[: settings.POLICY.consolidation.central_episodes]
        request = SynthesisRequest(episodes=tuple(member.as_text() for member in central))
        answers: list[Answer] = []
        if ask_models(lease=lease, job=job, asks=[Ask(key="candidate", request=request)], store=answers.append):
            reply = answers[0].reply
            assert isinstance(reply, Synthesis)  # a synthesis is answered with one
            _store_candidate(lease=lease, job=job, reply=reply, members=central)


def _store_candidate(*, lease: JobLease, job: ClusterJob, reply: Synthesis, members: list[EpisodeSource]) -> None:
    """Keep the candidate where it stands as a belief, else why it does not."""
    language = detect_language(reply.statement) or members[0].language
    refusal = NO_STATEMENT if not reply.statement else refuse_statement(reply.statement, language=language)
    if refusal:
        _refuse(lease=lease, refusal=str(refusal), candidate=reply.model_dump(mode="json"))
        return
    vector = embed_statement(lease=lease, job=job, statement=reply.statement)
    if vector is None:
        return
    _mine(lease).update(
        state=JobState.SYNTHESIZED,
        candidate=reply.model_dump(mode="json"),
        candidate_hash=hash_statement(reply.statement, reply.subject),
        candidate_language=language,
        candidate_vector=vector.tolist(),
    )


def _refuse(*, lease: JobLease, refusal: str, candidate: dict[str, Any] | None = None) -> None:
    """Go on without a candidate: the members are still held against the beliefs there are."""
    _mine(lease).update(state=JobState.SYNTHESIZED, refusal=refusal, candidate=candidate)
    log.info("candidate_refused", job=lease.job_id, cycle=lease.cycle_id, refusal=refusal)


def _mine(lease: JobLease) -> QuerySet[ClusterJob]:
    """Select the job while it is the lease's and as it was."""
    mine: QuerySet[ClusterJob] = ClusterJob.objects.filter(
        pk=lease.job_id, lease_owner=lease.owner, state=JobState.QUEUED
    )
    return mine
