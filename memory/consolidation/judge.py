"""Steps 4 and 5, for one job: ask for the belief that a cluster supports, and what its episodes say of beliefs near it.

`synthesize_cluster` stores a candidate, `classify_cluster` the verdicts: on existing beliefs first, and on the
candidate only where these have nothing to say. Verdicts are rows as soon as they are known, so that going on asks
only what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import structlog
from django.conf import settings
from django.db.models import F, Max, Q

from memory.consolidation.jobs import JobLease, leased_job, retry_without_broken_members
from memory.consolidation.model_calls import (
    ask_models,
    classification_model,
    embed_statement,
    read_evidenced_pairs,
    read_known_verdicts,
)
from memory.consolidation.related_beliefs import is_comparable
from memory.consolidation.sources import EpisodeSource, nearest_above, read_members, shared_user_name
from memory.domain.clustering import batch_pairs, gather_pairs
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, BeliefStatus, JobState
from memory.domain.statements import refuse_statement
from memory.language.words import detect_language
from memory.ledger.beliefs import (
    BeliefSource,
    cosine_matrix,
    hash_statement,
    may_be_related,
    read_beliefs_with_vectors,
    says_the_same,
    supports_without_call,
)
from memory.llm.embeddings import embedder_of
from memory.llm.prompts import CLASSIFICATION_VERSION
from memory.llm.replies import Synthesis, Verdicts
from memory.llm.requests import ClassificationRequest, SynthesisRequest
from memory.llm.runner import ModelAnswer, ModelRequest
from memory.llm.types import Embedder
from memory.models import Basis, Belief, ClusterJob, ClusterMember, JobKind, JobVerdict
from memory.models.fields import insert_new
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)
CANDIDATE_KEY = ""  # the key of what has no belief yet
NO_STATEMENT = "no_statement"
TOO_FEW_MEMBERS = "too_few_members"  # some were forgotten since they were clustered


def synthesize_cluster(*, job_id: int, attempt: int) -> None:
    """Ask for a cluster's candidate, check it, embed it, store it; a job that is not ours or done is left alone."""
    with leased_job(job_id=job_id, attempt=attempt, ready=Q(state=JobState.QUEUED)) as lease:
        if lease is not None:
            retry_without_broken_members(lease=lease, work=partial(_synthesize, lease))


def _synthesize(lease: JobLease[ClusterJob]) -> None:
    members, _ = read_members(job=lease.job, model=embedder_of(lease.job.workspace_id).name)
    if len(members) < settings.POLICY.consolidation.cluster_min:
        _refuse_candidate(lease=lease, refusal=TOO_FEW_MEMBERS)
        return
    central = _choose_central(members)
    request = synthesis_request(members=members)
    answers: list[ModelAnswer] = []
    if ask_models(lease=lease, asks=[ModelRequest(key="candidate", request=request)], store=answers.extend):
        reply = answers[0].reply
        assert isinstance(reply, Synthesis)  # a synthesis is answered with one
        _store_candidate(lease=lease, reply=reply, members=central)


def synthesis_request(*, members: Sequence[EpisodeSource]) -> SynthesisRequest:
    """Word the call for a cluster's candidate: its most central episodes (B8.3)."""
    shown = _choose_central(members)
    return SynthesisRequest(episodes=tuple(member.as_text() for member in shown), person=shared_user_name(shown))


def _choose_central(members: Sequence[EpisodeSource]) -> Sequence[EpisodeSource]:
    """Choose the episodes to show: half as many for each time that one was to blame for a failure (B11)."""
    policy = settings.POLICY.consolidation
    halvings = max(member.failures for member in members)
    return members[: max(policy.central_episodes >> halvings, policy.cluster_min)]


def _store_candidate(*, lease: JobLease[ClusterJob], reply: Synthesis, members: Sequence[EpisodeSource]) -> None:
    """Keep the candidate where it stands as a belief, else why it does not."""
    language = detect_language(reply.statement) or members[0].language
    refusal = NO_STATEMENT if not reply.statement else refuse_statement(statement=reply.statement)
    if refusal:
        _refuse_candidate(lease=lease, refusal=str(refusal), candidate=reply.model_dump(mode="json"))
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


def _refuse_candidate(*, lease: JobLease[ClusterJob], refusal: str, candidate: dict[str, Any] | None = None) -> None:
    """Go on without a candidate: the members are still held against the beliefs there are."""
    lease.end(state=JobState.SYNTHESIZED, refusal=refusal, candidate=candidate)
    log.info("candidate_refused", job=lease.job_id, cycle=lease.cycle_id, refusal=refusal)


def classify_cluster(*, job_id: int, attempt: int) -> None:
    """Get every verdict that a job needs; a job that is not ours or not there yet is left alone."""
    with leased_job(job_id=job_id, attempt=attempt, ready=READY_TO_CLASSIFY) as lease:
        if lease is not None:
            retry_without_broken_members(lease=lease, work=partial(_classify, lease))


def _classify(lease: JobLease[ClusterJob]) -> None:
    job, model = lease.job, embedder_of(lease.job.workspace_id)
    members, vectors = read_members(job=job, model=model.name)
    targets = _find_existing_targets(job=job, members=members, vectors=vectors, model=model)
    done = judge_targets(lease=lease, members=members, targets=targets)
    if done and job.candidate_vector is not None and is_novel(job_id=job.pk):
        own = _candidate_target(job=job, members=members, vectors=vectors, model=model)
        done = judge_targets(lease=lease, members=members, targets=[own])
    if done:
        lease.end(state=JobState.CLASSIFIED)


# A job of single episodes has no candidate to wait for.
READY_TO_CLASSIFY = Q(state=JobState.SYNTHESIZED) | Q(kind=JobKind.SINGLES, state=JobState.QUEUED)


def judge_targets(
    *, lease: JobLease[ClusterJob], members: Sequence[EpisodeSource], targets: Sequence[JudgedStatement]
) -> bool:
    """Store a verdict for every pair: by the guard, from an earlier verdict, else by asking; false if some are left."""
    if not targets:
        return True
    rows = _verdicts_without_asking(job=lease.job, members=members, targets=targets)
    insert_new(model=JobVerdict, rows=rows)
    judged = {_pair_of(row) for row in lease.job.verdicts.values("belief_id", "episode_id")}
    waiting = _pairs_to_judge(job=lease.job, members=members, targets=targets, judged=judged)
    asks = _build_requests(members=members, targets=targets, waiting=waiting)
    by_id = {target.belief.id: target for target in targets}
    return ask_models(lease=lease, asks=asks, store=lambda answers: _store_answers(lease.job, by_id, waiting, answers))


def _find_existing_targets(
    *, job: ClusterJob, members: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> list[JudgedStatement]:
    """Choose the beliefs near the job: those it was gathered around, or the five nearest that all may see."""
    beliefs = Belief.objects.for_workspace(job.workspace_id).judgeable()
    if job.kind == JobKind.SINGLES:
        named = beliefs.filter(pk__in=list(job.pairs) or [job.belief_id])
        found, found_vectors = read_beliefs_with_vectors(beliefs=named, model=model.name)
        targets = _make_targets(found, members, vectors, found_vectors, model)
        return [replace(target, gathered=job.pairs.get(target.belief.id)) for target in targets]
    # What is founded beside it is met at the gate as a twin: who came first must not depend on who was fast.
    older = beliefs.visible_in(shared_project(members)).exclude(created_alongside(job=job, members=members))
    found, belief_vectors = read_beliefs_with_vectors(beliefs=older, model=model.name)
    oldest = min(members, key=lambda member: member.occurred_at)
    near = _nearest(found, oldest, _cluster_likeness(job, vectors, belief_vectors), model)
    return _make_targets([found[i] for i in near], members, vectors, belief_vectors[near], model)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedStatement:
    """A statement to be judged, and how alike each of the job's episodes is to it (reference scale)."""

    belief: BeliefSource
    likeness: dict[str, float]
    gathered: Collection[str] | None = None  # the episodes found to be about it, None where all may be

    @property
    def is_candidate(self) -> bool:
        """Tell whether it is what the job itself may found."""
        return self.belief.id == CANDIDATE_KEY

    def can_hear(self, member: EpisodeSource) -> bool:
        """Tell whether an episode may be held against it: one found to be about it, and of its time (C2)."""
        is_gathered = self.gathered is None or member.id in self.gathered
        return is_gathered and not self.belief.was_over(at=member.occurred_at)


StatementPair = tuple[str, str]  # the key of a statement, and an episode's id


def shared_project(members: Sequence[EpisodeSource]) -> int | None:
    """Return the one project of all episodes, or None: what they found is global then (B8.3)."""
    projects = {member.project_id for member in members}
    return projects.pop() if len(projects) == 1 else None


def _cluster_likeness(job: ClusterJob, vectors: Vectors, belief_vectors: Vectors) -> Any:
    """Return for each belief its greatest raw cosine to a member or to the candidate."""
    own = [] if job.candidate_vector is None else [np.asarray(job.candidate_vector, dtype=np.float32)]
    return cosine_matrix(np.stack([*vectors, *own]), belief_vectors).max(axis=0)


def _nearest(beliefs: Sequence[BeliefSource], member: EpisodeSource, cosines: Any, model: Embedder) -> list[int]:
    policy = settings.POLICY.consolidation
    threshold = model.profile.raw(policy.match_similarity)
    near = nearest_above(cosines=cosines, threshold=threshold)
    # The cluster has one user and one language, so its oldest speaks for all; its project was asked for above.
    alike = [place for place in near if is_comparable(episode=member, belief=beliefs[place], model=model)]
    return alike[: policy.match_beliefs]


def _make_targets(
    beliefs: Sequence[BeliefSource], members: Sequence[EpisodeSource], vectors: Vectors, belief_vectors: Vectors,
    model: Embedder,
) -> list[JudgedStatement]:  # fmt: skip
    likeness = model.profile.reference(cosine_matrix(belief_vectors, vectors))
    return [
        JudgedStatement(belief=belief, likeness={m.id: float(value) for m, value in zip(members, row, strict=True)})
        for belief, row in zip(beliefs, likeness, strict=True)
    ]


def _candidate_target(
    *, job: ClusterJob, members: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> JudgedStatement:
    candidate = candidate_as_belief(job=job, members=members)
    own = np.asarray([job.candidate_vector], dtype=np.float32)
    return _make_targets([candidate], members, vectors, own, model)[0]


def candidate_as_belief(*, job: ClusterJob, members: Sequence[EpisodeSource]) -> BeliefSource:
    """Return a job's candidate as if it were a belief already."""
    candidate = job.candidate or {}
    return BeliefSource(
        id=CANDIDATE_KEY,
        statement=candidate["statement"],
        statement_hash=job.candidate_hash,
        subject=candidate["subject"],
        context=candidate["context"],
        language=job.candidate_language,
        project_id=shared_project(members),
        user=members[0].user if members else "",
        status=BeliefStatus.ACTIVE,
    )


def requests_about_beliefs(
    *, job: ClusterJob, members: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> list[ModelRequest]:
    """Return what a job would ask about the beliefs that are there already; nothing is written."""
    targets = _find_existing_targets(job=job, members=members, vectors=vectors, model=model)
    known = _verdicts_without_asking(job=job, members=members, targets=targets)
    judged = {_pair_of(row) for row in known}
    waiting = _pairs_to_judge(job=job, members=members, targets=targets, judged=judged)
    return _build_requests(members=members, targets=targets, waiting=waiting)


def _pair_of(row: Mapping[str, Any]) -> StatementPair:
    return row["belief_id"] or CANDIDATE_KEY, row["episode_id"]


def _verdicts_without_asking(
    *, job: ClusterJob, members: Sequence[EpisodeSource], targets: Sequence[JudgedStatement]
) -> list[dict[str, Any]]:
    """Return the verdicts that were given before, and those that the guard gives."""
    hashes = [target.belief.statement_hash for target in targets]
    given = read_known_verdicts(workspace_id=job.workspace_id, hashes=hashes, episodes=[m.id for m in members])
    rows = []
    for target, member in product(targets, members):
        if not target.can_hear(member):
            continue
        known = given.get((target.belief.statement_hash, member.id))
        if known is not None:
            rows.append(_verdict(job, target, member.id, known.verdict, Basis.MODEL, known.reason, known.call_id))
        elif _passes_guard(member=member, target=target):
            rows.append(_verdict(job, target, member.id, Verdict.SUPPORTS, Basis.GUARD, "", None))
    return rows


def _passes_guard(*, member: EpisodeSource, target: JudgedStatement) -> bool:
    """Tell whether a member supports a statement without a call (B8.4).

    An existing belief asks for near-identity besides. A candidate was made of this very cluster: there the guard is
    enough, and only the members that fail it are asked about.
    """
    statement = target.belief.claim
    if target.is_candidate:
        return says_the_same(left=member.claim, right=statement)
    return supports_without_call(episode=member.claim, statement=statement, similarity=target.likeness[member.id])


def _pairs_to_judge(
    *, job: ClusterJob, members: Sequence[EpisodeSource], targets: Sequence[JudgedStatement], judged: set[StatementPair]
) -> dict[str, set[str]]:
    """Return by statement the episodes that are neither judged nor evidence, and may concern it."""
    beliefs = [target.belief.id for target in targets]
    judged = judged | read_evidenced_pairs(
        workspace_id=job.workspace_id, beliefs=beliefs, episodes=[m.id for m in members]
    )
    return {
        target.belief.id: {
            member.id
            for member in members
            if (target.belief.id, member.id) not in judged and _may_concern(member=member, target=target)
        }
        for target in targets
    }


def _may_concern(*, member: EpisodeSource, target: JudgedStatement) -> bool:
    """Tell whether a member is to be judged at all; a candidate was made of all of them."""
    if not target.can_hear(member):
        return False
    if target.gathered is not None or target.is_candidate:
        return True
    return may_be_related(episode=member.claim, statement=target.belief.claim, similarity=target.likeness[member.id])


def _build_requests(
    *, members: Sequence[EpisodeSource], targets: Sequence[JudgedStatement], waiting: Mapping[str, set[str]]
) -> list[ModelRequest]:
    """Return the calls for what waits: of at most twelve episodes, about the statements that wait for the same ones."""
    policy = settings.POLICY.consolidation
    by_id, said = {target.belief.id: target for target in targets}, {member.id: member for member in members}
    is_gathered = any(target.gathered is not None for target in targets)
    batch = gather_pairs if is_gathered else partial(batch_pairs, most_statements=policy.classify_statements)
    batches = batch(waiting=waiting, texts=list(said), most_texts=policy.classify_episodes)
    return [
        ModelRequest(
            key=str(number), request=_request([by_id[key] for key in one.statements], [said[key] for key in one.texts])
        )
        for number, one in enumerate(batches)
    ]


def _request(targets: Sequence[JudgedStatement], members: Sequence[EpisodeSource]) -> ClassificationRequest:
    return ClassificationRequest(
        beliefs=tuple(target.belief.as_stated() for target in targets),
        episodes=tuple(member.as_text() for member in members),
        similarities=tuple(tuple(target.likeness[member.id] for member in members) for target in targets),
        person=shared_user_name(members),
    )


def _store_answers(
    job: ClusterJob,
    targets: Mapping[str, JudgedStatement],
    waiting: Mapping[str, set[str]],
    answers: Sequence[ModelAnswer],
) -> None:
    """Store what was waited for; a pair that was judged before and asked about beside others stays as it was."""
    rows = []
    for answer in answers:
        assert isinstance(answer.reply, Verdicts)  # a classification is answered with verdicts
        rows += [
            _verdict(job, targets[item.belief], item.id, item.verdict, Basis.MODEL, item.reason, answer.call_id)
            for item in answer.reply.verdicts
            if item.id in waiting[item.belief]
        ]
    insert_new(model=JobVerdict, rows=rows)


def _verdict(
    job: ClusterJob,
    target: JudgedStatement,
    episode_id: str,
    verdict: str,
    basis: Basis,
    reason: str,
    call_id: int | None,
) -> dict[str, Any]:
    by_model = basis == Basis.MODEL
    return {
        "workspace_id": job.workspace_id,
        "job_id": job.pk,
        "belief_id": None if target.is_candidate else target.belief.id,
        "claim_id": None,
        "episode_id": episode_id,
        "statement_hash": target.belief.statement_hash,
        "verdict": verdict,
        "basis": basis,
        "reason": reason,
        "similarity": target.likeness[episode_id],
        "model": classification_model() if by_model else "",
        "prompt_version": CLASSIFICATION_VERSION if by_model else "",
        "call_id": call_id,
    }


def is_novel(*, job_id: int) -> bool:
    """Tell whether no live belief had anything to do with the job's episodes, and no archived one was supported.

    Nor did most of them bear out what was closed since they were said (C2).
    """
    about_beliefs = JobVerdict.objects.filter(job=job_id, belief__isnull=False)
    concerned = Q(belief__status__in=LIVE) & ~Q(verdict=Verdict.IRRELEVANT)
    revived = Q(belief__status=BeliefStatus.ARCHIVED, verdict=Verdict.SUPPORTS)
    if about_beliefs.filter(concerned | revived).exists():
        return False
    of_old = about_beliefs.filter(
        belief__status=BeliefStatus.INVALIDATED,
        belief__valid_until__gt=F("episode__occurred_at"),
        verdict=Verdict.SUPPORTS,
    )
    members = ClusterMember.objects.filter(job=job_id)
    return 2 * of_old.values("episode").distinct().count() <= members.count()


def created_alongside(*, job: ClusterJob, members: Sequence[EpisodeSource]) -> Q:
    """Match the beliefs that were founded in a cluster's own cycle, and since it waits for its turn.

    What the same episodes once waited for, before they were judged, is over: it hides nothing founded since.
    """
    own = Q(created_in=job.cycle_id)
    turns = ClusterMember.objects.filter(
        episode=members[0].id, job__kind=JobKind.CLUSTER, job__members_hash=job.members_hash
    )
    judged = turns.filter(job__state__in=(JobState.APPLIED, JobState.REFUSED)).exclude(job=job.pk)
    waits = turns.filter(job__state=JobState.DEFERRED)
    if last := judged.aggregate(opened=Max("job__cycle__opened_at"))["opened"]:
        waits = waits.filter(job__cycle__opened_at__gt=last)
    since = waits.order_by("job__cycle__opened_at").values_list("job__cycle__opened_at", flat=True).first()
    return own | Q(created_in__opened_at__gte=since, lineage_depth=0) if since else own
