"""Step 4: what do a job's episodes say about the beliefs near them, and about its own candidate?

First the existing beliefs; only where they turn out to have nothing to say is the candidate judged, too. Verdicts are
rows as soon as they are known, so that going on after a crash asks only what is missing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Q

from memory.consolidation.asking import ask_models
from memory.consolidation.known import evidenced_pairs, given_verdicts, judging_model
from memory.consolidation.leases import JobLease, leased_job
from memory.consolidation.novelty import is_novel
from memory.consolidation.put_off import founded_beside
from memory.consolidation.setting_aside import work_around
from memory.consolidation.singles import comparable
from memory.consolidation.sources import EpisodeSource, nearest_above, person_of, read_candidates, read_members
from memory.domain.clustering import batch_pairs, gather_pairs
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import BeliefStatus, JobState
from memory.ledger.beliefs import (
    BeliefSource,
    claim_key,
    cosine_matrix,
    is_statement_readable,
    may_be_related,
    parse_claim_key,
    passes_guard,
    read_beliefs_with_vectors,
    supports_by_guard,
)
from memory.llm.embeddings import embedder_of
from memory.llm.prompts import CLASSIFICATION_VERSION
from memory.llm.registry import Embedder
from memory.llm.replies import Verdicts
from memory.llm.requests import ClassificationRequest
from memory.llm.runner import ModelAnswer, ModelRequest
from memory.models import Basis, Belief, ClusterJob, JobKind, JobVerdict
from memory.models.fields import insert_new
from memory.search.vectors import Vectors

Pair = tuple[str, str]  # the key of a statement, and an episode's id

CANDIDATE = ""  # the key of what has no belief yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A statement to be judged, and how alike each of the job's episodes is to it (reference scale)."""

    belief: BeliefSource
    likeness: dict[str, float]
    gathered: Collection[str] | None = None  # the episodes found to be about it, None where all may be

    @property
    def is_candidate(self) -> bool:
        """Tell whether it is what the job itself may found."""
        return self.belief.id == CANDIDATE

    def can_hear(self, member: EpisodeSource) -> bool:
        """Tell whether an episode may be held against it: one found to be about it, and of its time (C2)."""
        is_gathered = self.gathered is None or member.id in self.gathered
        return is_gathered and not self.belief.was_over(at=member.occurred_at)


# A job of single episodes has no candidate to wait for.
READY = Q(state=JobState.SYNTHESIZED) | Q(kind=JobKind.SINGLES, state=JobState.QUEUED)


def classify_cluster(*, job_id: int, attempt: int) -> None:
    """Get every verdict that a job needs; a job that is not ours or not there yet is left alone."""
    with leased_job(job_id=job_id, attempt=attempt, ready=READY) as lease:
        if lease is not None:
            work_around(lease=lease, work=partial(_classify, lease))


def _classify(lease: JobLease[ClusterJob]) -> None:
    job, model = lease.job, embedder_of(lease.job.workspace_id)
    members, vectors = read_members(job=job, model=model.name)
    targets = _existing_targets(job=job, members=members, vectors=vectors, model=model)
    done = judge(lease=lease, members=members, targets=targets)
    if done and job.candidate_vector is not None and is_novel(job_id=job.pk):
        own = _candidate_target(job=job, members=members, vectors=vectors, model=model)
        done = judge(lease=lease, members=members, targets=[own])
    if done:
        lease.end(state=JobState.CLASSIFIED)


def _existing_targets(
    *, job: ClusterJob, members: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> list[Target]:
    """Choose the beliefs near the job: those it was gathered around, or the five nearest that all may see."""
    beliefs = Belief.objects.for_workspace(job.workspace_id).judgeable()
    if job.kind == JobKind.SINGLES:
        named = beliefs.filter(pk__in=list(job.pairs) or [job.belief_id])
        claims = [key for key in map(parse_claim_key, job.pairs) if key]
        found, found_vectors = read_beliefs_with_vectors(beliefs=named, model=model.name)
        told, told_vectors = read_candidates(claims=claims, model=model.name)
        all_vectors = np.concatenate([found_vectors, told_vectors]) if told else found_vectors
        targets = _targets([*found, *told], members, vectors, all_vectors, model)
        return [replace(target, gathered=job.pairs.get(target.belief.id)) for target in targets]
    if not any(member.is_saying for member in members):
        return []
    # What is founded beside it is met at the gate as a twin: who came first must not depend on who was fast.
    older = beliefs.visible_in(common_project(members)).exclude(founded_beside(job=job, members=members))
    found, belief_vectors = read_beliefs_with_vectors(beliefs=older, model=model.name)
    oldest = min(members, key=lambda member: member.occurred_at)
    near = _nearest(found, oldest, _cluster_likeness(job, vectors, belief_vectors), model)
    return _targets([found[i] for i in near], members, vectors, belief_vectors[near], model)


def common_project(members: Sequence[EpisodeSource]) -> int | None:
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
    alike = [place for place in near if comparable(episode=member, belief=beliefs[place], model=model)]
    return alike[: policy.match_beliefs]


def _targets(
    beliefs: Sequence[BeliefSource], members: Sequence[EpisodeSource], vectors: Vectors, belief_vectors: Vectors,
    model: Embedder,
) -> list[Target]:  # fmt: skip
    likeness = model.profile.reference(cosine_matrix(belief_vectors, vectors))
    return [
        Target(belief=belief, likeness={m.id: float(value) for m, value in zip(members, row, strict=True)})
        for belief, row in zip(beliefs, likeness, strict=True)
    ]


def _candidate_target(
    *, job: ClusterJob, members: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> Target:
    candidate = as_belief(job=job, members=members)
    own = np.asarray([job.candidate_vector], dtype=np.float32)
    return _targets([candidate], members, vectors, own, model)[0]


def as_belief(*, job: ClusterJob, members: Sequence[EpisodeSource]) -> BeliefSource:
    """Return a job's candidate as if it were a belief already."""
    candidate = job.candidate or {}
    return BeliefSource(
        id=CANDIDATE,
        statement=candidate["statement"],
        statement_hash=job.candidate_hash,
        subject=candidate["subject"],
        context=candidate["context"],
        language=job.candidate_language,
        project_id=common_project(members),
        user=members[0].user if members else "",
        status=BeliefStatus.ACTIVE,
    )


def judge(*, lease: JobLease[ClusterJob], members: Sequence[EpisodeSource], targets: Sequence[Target]) -> bool:
    """Store a verdict for every pair: by the guard, from an earlier verdict, else by asking; false if some are left."""
    targets = [target for target in targets if is_statement_readable(target.belief.claim)]
    if not targets:
        return True
    rows = _verdicts_without_asking(job=lease.job, members=members, targets=targets)
    insert_new(model=JobVerdict, rows=rows)
    judged = {_pair_of(row) for row in lease.job.verdicts.values("belief_id", "claim_id", "episode_id")}
    waiting = _waiting(job=lease.job, members=members, targets=targets, judged=judged)
    asks = _asks(members=members, targets=targets, waiting=waiting)
    by_id = {target.belief.id: target for target in targets}
    return ask_models(lease=lease, asks=asks, store=lambda answers: _store_answers(lease.job, by_id, waiting, answers))


def asks_about_beliefs(
    *, job: ClusterJob, members: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> list[ModelRequest]:
    """Return what a job would ask about the beliefs that are there already; nothing is written."""
    targets = _existing_targets(job=job, members=members, vectors=vectors, model=model)
    known = _verdicts_without_asking(job=job, members=members, targets=targets)
    judged = {_pair_of(row) for row in known}
    waiting = _waiting(job=job, members=members, targets=targets, judged=judged)
    return _asks(members=members, targets=targets, waiting=waiting)


def _pair_of(row: Mapping[str, Any]) -> Pair:
    key = claim_key(row["claim_id"]) if row["claim_id"] else row["belief_id"]
    return key or CANDIDATE, row["episode_id"]


def _verdicts_without_asking(
    *, job: ClusterJob, members: Sequence[EpisodeSource], targets: Sequence[Target]
) -> list[dict[str, Any]]:
    """Return the verdicts that were given before, and those that the guard gives."""
    hashes = [target.belief.statement_hash for target in targets]
    given = given_verdicts(workspace_id=job.workspace_id, hashes=hashes, episodes=[m.id for m in members])
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


def _passes_guard(*, member: EpisodeSource, target: Target) -> bool:
    """Tell whether a member supports a statement without a call (B8.4).

    An existing belief asks for near-identity besides. A candidate was made of this very cluster: there the guard is
    enough, and only the members that fail it are asked about.
    """
    statement = target.belief.claim
    if target.is_candidate:
        return passes_guard(left=member.claim, right=statement)
    return supports_by_guard(episode=member.claim, statement=statement, similarity=target.likeness[member.id])


def _waiting(
    *, job: ClusterJob, members: Sequence[EpisodeSource], targets: Sequence[Target], judged: set[Pair]
) -> dict[str, set[str]]:
    """Return by statement the episodes that are neither judged nor evidence, and may concern it."""
    beliefs = [target.belief.id for target in targets]
    judged = judged | evidenced_pairs(workspace_id=job.workspace_id, beliefs=beliefs, episodes=[m.id for m in members])
    return {
        target.belief.id: {
            member.id
            for member in members
            if (target.belief.id, member.id) not in judged and _may_concern(member=member, target=target)
        }
        for target in targets
    }


def _may_concern(*, member: EpisodeSource, target: Target) -> bool:
    """Tell whether a member is to be judged at all; a candidate was made of all of them."""
    if not target.can_hear(member):
        return False
    if target.gathered is not None or target.is_candidate:
        return True
    return may_be_related(episode=member.claim, statement=target.belief.claim, similarity=target.likeness[member.id])


def _asks(
    *, members: Sequence[EpisodeSource], targets: Sequence[Target], waiting: Mapping[str, set[str]]
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


def _request(targets: Sequence[Target], members: Sequence[EpisodeSource]) -> ClassificationRequest:
    return ClassificationRequest(
        beliefs=tuple(target.belief.as_stated() for target in targets),
        episodes=tuple(member.as_text() for member in members),
        similarities=tuple(tuple(target.likeness[member.id] for member in members) for target in targets),
        person=person_of(members),
    )


def _store_answers(
    job: ClusterJob, targets: Mapping[str, Target], waiting: Mapping[str, set[str]], answers: Sequence[ModelAnswer]
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
    job: ClusterJob, target: Target, episode_id: str, verdict: str, basis: Basis, reason: str, call_id: int | None
) -> dict[str, Any]:
    by_model = basis == Basis.MODEL
    return {
        "workspace_id": job.workspace_id,
        "job_id": job.pk,
        "belief_id": None if target.is_candidate or target.belief.claim_id else target.belief.id,
        "claim_id": target.belief.claim_id,
        "episode_id": episode_id,
        "statement_hash": target.belief.statement_hash,
        "verdict": verdict,
        "basis": basis,
        "reason": reason,
        "similarity": target.likeness[episode_id],
        "model": judging_model() if by_model else "",
        "prompt_version": CLASSIFICATION_VERSION if by_model else "",
        "call_id": call_id,
    }
