"""Step 3: one call per cluster for the belief that its episodes support."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db.models import Q

from memory.consolidation.asking import ask_models, embed_statement
from memory.consolidation.leases import JobLease, leased_job
from memory.consolidation.setting_aside import work_around
from memory.consolidation.sources import EpisodeSource, person_of, read_members
from memory.domain.lifecycle import JobState
from memory.language.analysis import SpokenText
from memory.language.refusals import refuse_statement
from memory.language.words import detect_language
from memory.ledger.beliefs import hash_statement, is_statement_readable
from memory.llm.embeddings import embedder_of
from memory.llm.replies import Synthesis
from memory.llm.requests import SynthesisRequest
from memory.llm.runner import ModelAnswer, ModelRequest
from memory.models import ClusterJob

log = structlog.get_logger(__name__)

NO_STATEMENT = "no_statement"
NOTHING_SAID = "nothing_said"
UNREADABLE = "unreadable"  # our own checks break over it (E6)
TOO_FEW_MEMBERS = "too_few_members"  # some were forgotten since they were clustered


def synthesize_cluster(*, job_id: int, attempt: int) -> None:
    """Ask for a cluster's candidate, check it, embed it, store it; a job that is not ours or done is left alone."""
    with leased_job(job_id=job_id, attempt=attempt, ready=Q(state=JobState.QUEUED)) as lease:
        if lease is not None:
            work_around(lease=lease, work=partial(_synthesize, lease))


def _synthesize(lease: JobLease[ClusterJob]) -> None:
    members, _ = read_members(job=lease.job, model=embedder_of(lease.job.workspace_id).name)
    if len(members) < settings.POLICY.consolidation.cluster_min:
        _refuse(lease=lease, refusal=TOO_FEW_MEMBERS)
        return
    if not any(member.is_saying for member in members):
        _refuse(lease=lease, refusal=NOTHING_SAID)
        return
    central = _central(members)
    request = synthesis_request(members=members)
    answers: list[ModelAnswer] = []
    if ask_models(lease=lease, asks=[ModelRequest(key="candidate", request=request)], store=answers.extend):
        reply = answers[0].reply
        assert isinstance(reply, Synthesis)  # a synthesis is answered with one
        _store_candidate(lease=lease, reply=reply, members=central)


def synthesis_request(*, members: Sequence[EpisodeSource]) -> SynthesisRequest:
    """Word the call for a cluster's candidate: its most central episodes (B8.3)."""
    shown = _central(members)
    return SynthesisRequest(episodes=tuple(member.as_text() for member in shown), person=person_of(shown))


def _central(members: Sequence[EpisodeSource]) -> Sequence[EpisodeSource]:
    """Choose the episodes to show: half as many for each time that one was to blame for a failure (B11)."""
    policy = settings.POLICY.consolidation
    halvings = max(member.failures for member in members)
    return members[: max(policy.central_episodes >> halvings, policy.cluster_min)]


def _store_candidate(*, lease: JobLease[ClusterJob], reply: Synthesis, members: Sequence[EpisodeSource]) -> None:
    """Keep the candidate where it stands as a belief, else why it does not."""
    language = detect_language(reply.statement) or members[0].language
    refusal = NO_STATEMENT if not reply.statement else refuse_statement(reply.statement, language=language)
    if not refusal and not is_statement_readable(
        SpokenText(text=reply.statement, speaker=reply.subject, language=language)
    ):
        refusal = UNREADABLE
    if refusal:
        _refuse(lease=lease, refusal=str(refusal), candidate=reply.model_dump(mode="json"))
        return
    vector = embed_statement(lease=lease, statement=reply.statement)
    if vector is None:
        return
    lease.end(
        state=JobState.SYNTHESIZED,
        candidate=reply.model_dump(mode="json"),
        candidate_hash=hash_statement(reply.statement, reply.subject, reply.context),
        candidate_language=language,
        candidate_vector=vector.tolist(),
    )


def _refuse(*, lease: JobLease[ClusterJob], refusal: str, candidate: dict[str, Any] | None = None) -> None:
    """Go on without a candidate: the members are still held against the beliefs there are."""
    lease.end(state=JobState.SYNTHESIZED, refusal=refusal, candidate=candidate)
    log.info("candidate_refused", job=lease.job_id, cycle=lease.cycle_id, refusal=refusal)
