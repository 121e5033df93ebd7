"""Ask a model what to believe instead of a belief, and judge its old evidence against each answer (B12, B13, B15).

`propose_children` stores the statements that can stand as the job's children; `reclassify_children` and
`merge_verdicts` give each child the verdicts of the old evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.gates import FOUND_DIFFERENT
from memory.consolidation.jobs import JobLease
from memory.consolidation.judge import NO_STATEMENT
from memory.consolidation.model_calls import ask_models, classification_model, read_known_verdicts
from memory.consolidation.sources import (
    EvidenceItem,
    merge_evidence_items,
    read_job_evidence_items,
    select_newest_contradictions,
    select_newest_of_both,
    shared_user_name,
)
from memory.domain.clustering import batch_pairs
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import JobState
from memory.domain.statements import refuse_statement
from memory.language.words import detect_language
from memory.ledger.beliefs import hash_statement, supports_without_call
from memory.llm.embeddings import embedder_of
from memory.llm.prompts import CLASSIFICATION_VERSION
from memory.llm.replies import Division, Reply, Statement, Synthesis, Union, Verdicts
from memory.llm.requests import (
    ClassificationRequest,
    MergeRequest,
    Request,
    RevisionRequest,
    SplitRequest,
    StatedBelief,
)
from memory.llm.runner import ModelAnswer, ModelRequest
from memory.models import Basis, Belief, ChildVerdict, StructuralChild, StructuralJob, StructuralKind
from memory.search.vectors import read_episode_vectors
from memory.text.names import SpokenText, name_user

log = structlog.get_logger(__name__)
NO_DIVISION = "no_division"
PARTS_ALIKE = "parts_alike"
UNCHANGED = "unchanged"


def propose_children(*, lease: JobLease[StructuralJob]) -> bool:
    """Ask what is to be believed instead and store it as the job's children; false if there is no answer to go on."""
    job, answers = lease.job, list[ModelAnswer]()
    asks = [ModelRequest(key=job.kind, request=_build_request(job))]
    if not ask_models(lease=lease, asks=asks, store=answers.extend):
        return False
    reply = answers[0].reply
    job.proposal, job.proposal_call_id = reply.model_dump(mode="json"), answers[0].call_id
    children = _read_proposals(job, reply)
    refusal = children if isinstance(children, str) else _find_refusal(job, children)
    return _store_children(lease=lease, children=() if isinstance(children, str) else children, refusal=refusal)


def _build_request(job: StructuralJob) -> Request:
    most = settings.POLICY.restructure.shown_episodes
    if job.kind == StructuralKind.MERGE:
        one, other = parents_by_evidence(job)
        return MergeRequest(
            beliefs=(_belief_as_stated(one), _belief_as_stated(other)),
            similarity=job.facts["similarity"],
            person=name_user(user=one.user),
        )
    testimony = read_job_evidence_items(job=job)
    is_revision = job.kind in (StructuralKind.REVISE, StructuralKind.CLOSE)
    shown = (select_newest_contradictions if is_revision else select_newest_of_both)(testimony, most=most)
    return (RevisionRequest if is_revision else SplitRequest)(
        belief=_belief_as_stated(job.belief),
        episodes=tuple(said.episode.as_text() for said in shown),
        verdicts=tuple(said.verdict for said in shown),
        person=shared_user_name(said.episode for said in shown),
    )


def _read_proposals(job: StructuralJob, reply: Reply) -> list[Proposed] | str:
    """Read the statements out of a reply, or why there are none."""
    match reply:
        case Synthesis():
            return [_proposed_statement(reply, job.belief)] if reply.statement else NO_STATEMENT
        case Division():
            return [_proposed_statement(part, job.belief) for part in reply.parts] or NO_DIVISION
        case Union():
            return [_merged_statement(job, reply)] if reply.same else FOUND_DIFFERENT
    raise TypeError(f"{type(reply).__name__} answers no structural request")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A statement that may take the place of a belief's."""

    statement: str
    subject: str
    predicate: str
    context: str
    timeframe: str
    language: str

    @property
    def hash(self) -> str:
        """Hash what verdicts on it will be about."""
        return hash_statement(self.statement, self.subject, self.context)


def parents_by_evidence(job: StructuralJob) -> tuple[Belief, Belief]:
    """Return the two beliefs of a merge, the better evidenced one first."""
    assert job.twin is not None  # a constraint of the table
    return order_by_evidence(job.belief, job.twin)


def order_by_evidence(one: Belief, other: Belief) -> tuple[Belief, Belief]:
    """Return the better evidenced of two beliefs, then the other."""
    first, second = sorted((one, other), key=lambda it: (-it.evidence_count, -it.confidence, it.pk))
    return first, second


def _belief_as_stated(belief: Belief) -> StatedBelief:
    return StatedBelief(
        statement=belief.statement, subject=belief.subject, context=belief.context, language=belief.language
    )


def _proposed_statement(reply: Statement | Union, parent: Belief) -> Proposed:
    return Proposed(
        statement=reply.statement,
        subject=reply.subject[:200],
        predicate=reply.predicate,
        context=reply.context,
        timeframe=reply.timeframe,
        language=detect_language(reply.statement) or parent.language,
    )


def _merged_statement(job: StructuralJob, reply: Union) -> Proposed:
    """Take the model's statement where it can stand, else the better evidenced belief's (B13)."""
    better = parents_by_evidence(job)[0]
    given = _proposed_statement(reply, better)
    if reply.statement and not refuse_statement(statement=given.statement):
        return given
    return Proposed(
        statement=better.statement,
        subject=better.subject,
        predicate=better.predicate,
        context=better.context,
        timeframe=better.timeframe,
        language=better.language,
    )


def _find_refusal(job: StructuralJob, children: Sequence[Proposed]) -> str:
    """Return why the statements can be no beliefs, or not in the place of the old one; else nothing."""
    for child in children:
        if refusal := refuse_statement(statement=child.statement):
            return str(refusal)
        if job.kind != StructuralKind.MERGE and _compared_words(child.statement) == _compared_words(
            job.belief.statement
        ):
            return UNCHANGED
    return PARTS_ALIKE if len({_compared_words(child.statement) for child in children}) < len(children) else ""


def _compared_words(statement: str) -> str:
    return statement.casefold().rstrip(" .!")


@transaction.atomic
def _store_children(*, lease: JobLease[StructuralJob], children: Sequence[Proposed], refusal: str) -> bool:
    if not lease.mine.select_for_update(no_key=True).exists():
        return False
    job = lease.job
    job.state = JobState.SYNTHESIZED
    job.save(update_fields=["proposal", "proposal_call", "state"])
    StructuralChild.objects.bulk_create(_child_row(job, number, child) for number, child in enumerate(children))
    if refusal:
        refuse_structural_job(job=job, refusal=refusal)
    return not refusal


def _child_row(job: StructuralJob, number: int, child: Proposed) -> StructuralChild:
    return StructuralChild(
        workspace_id=job.workspace_id,
        job=job,
        number=number,
        statement=child.statement,
        statement_hash=child.hash,
        subject=child.subject,
        predicate=child.predicate,
        context=child.context,
        timeframe=child.timeframe,
        language=child.language,
    )


@transaction.atomic
def refuse_structural_job(*, job: StructuralJob, refusal: str) -> None:
    """End a job without a change, and say why; the caller holds its lease or its row."""
    job.state, job.refusal = JobState.REFUSED, refusal
    job.save(update_fields=["state", "refusal"])
    log.info("structural_job_refused", job=job.pk, kind=job.kind, belief=job.belief_id, refusal=refusal)


def reclassify_children(*, lease: JobLease[StructuralJob]) -> bool:
    """Store a verdict of every episode on every child, by the guard or by asking; false if some are left."""
    testimony = read_job_evidence_items(job=lease.job)
    said = {one.episode.id: one for one in testimony}
    children = {str(child.number): child for child in lease.job.children.all()}
    likeness = {key: _measure_likeness(child, list(said)) for key, child in children.items()}
    unjudged = {key: _store_without_asking(child, testimony, likeness[key]) for key, child in children.items()}
    waiting = {key: {one.episode.id for one in those} for key, those in unjudged.items()}
    return ask_models(
        lease=lease,
        asks=_build_requests(children, said, waiting, likeness),
        store=lambda answers: _store_answers(children, said, waiting, answers),
    )


def merge_verdicts(*, job: StructuralJob) -> None:
    """Give a merge's child the evidence of both parents, one row an episode, what clashes as PARTIAL (B13)."""
    child = job.children.get()
    united = merge_evidence_items(belief_id=job.belief_id, twin_id=str(job.twin_id))
    _store_verdicts(_inherited_verdict(child, said, verdict, clash) for said, verdict, clash in united)


Likeness = dict[str, float]  # by episode id, reference scale; of those that have a vector


def _inherited_verdict(child: StructuralChild, said: EvidenceItem, verdict: Verdict, clash: str) -> ChildVerdict:
    """Hand on what was said, and how it was found; of a clash nobody said what the two come to."""
    if clash:
        return _verdict_row(child, said, verdict, basis=Basis.UNITED, reason=clash)
    inherited = _verdict_row(child, said, verdict, basis=Basis(said.basis), reason=said.reason)
    inherited.call_id = said.call_id  # whose model and prompt stand with the call, not with this pair
    return inherited


def _measure_likeness(child: StructuralChild, episodes: Sequence[str]) -> Likeness:
    model = embedder_of(child.job.workspace_id)
    ids, vectors = read_episode_vectors(model=model.name, ids=episodes)
    if child.vector is None or not ids:
        return {}
    cosines = vectors @ np.asarray(child.vector, dtype=np.float32)
    return {key: model.profile.reference(float(cosine)) for key, cosine in zip(ids, cosines, strict=True)}


def _store_without_asking(
    child: StructuralChild, testimony: Sequence[EvidenceItem], likeness: Likeness
) -> list[EvidenceItem]:
    """Store what was said before, and what the guard alone can tell; return what nobody has judged yet."""
    statement = SpokenText(text=child.statement, speaker=child.subject, language=child.language)
    judged = set(child.verdicts.values_list("episode_id", flat=True))
    waiting = [said for said in testimony if said.episode.id not in judged]
    unheard = _store_known_verdicts(child, waiting)
    sure = [
        said
        for said in unheard
        if supports_without_call(
            episode=said.episode.claim, statement=statement, similarity=likeness.get(said.episode.id, 0.0)
        )
    ]
    _store_verdicts(_verdict_row(child, said, Verdict.SUPPORTS, basis=Basis.GUARD) for said in sure)
    return [said for said in unheard if said not in sure]


def _store_known_verdicts(child: StructuralChild, waiting: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """Store what today's model said of the same words before; return what it was never asked about (B7)."""
    given = read_known_verdicts(
        workspace_id=child.workspace_id, hashes=[child.statement_hash], episodes=[said.episode.id for said in waiting]
    )
    known = {said.episode.id: given.get((child.statement_hash, said.episode.id)) for said in waiting}
    _store_verdicts(
        _verdict_row(child, said, was.verdict, basis=Basis.MODEL, reason=was.reason, call_id=was.call_id)
        for said in waiting
        if (was := known[said.episode.id])
    )
    return [said for said in waiting if not known[said.episode.id]]


def _build_requests(
    children: Mapping[str, StructuralChild],
    said: Mapping[str, EvidenceItem],
    waiting: Mapping[str, set[str]],
    likeness: Mapping[str, Likeness],
) -> list[ModelRequest]:
    """Return the calls for what waits; children that wait for the same episodes are asked about together."""
    policy = settings.POLICY.consolidation
    batches = batch_pairs(
        waiting=waiting,
        texts=list(said),
        most_statements=policy.classify_statements,
        most_texts=policy.classify_episodes,
    )
    return [
        ModelRequest(
            key=str(number),
            request=ClassificationRequest(
                beliefs=tuple(_child_as_stated(children[key]) for key in one.statements),
                episodes=tuple(said[key].episode.as_text() for key in one.texts),
                similarities=_known_likeness([likeness[key] for key in one.statements], one.texts),
                person=shared_user_name(said[key].episode for key in one.texts),
            ),
        )
        for number, one in enumerate(batches)
    ]


def _known_likeness(likeness: Sequence[Likeness], episodes: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """Return how alike episodes are to statements, or nothing where one of them has no vector."""
    if any(key not in row for row in likeness for key in episodes):
        return ()
    return tuple(tuple(row[key] for key in episodes) for row in likeness)


def _child_as_stated(child: StructuralChild) -> StatedBelief:
    return StatedBelief(
        statement=child.statement,
        subject=child.subject,
        context=child.context,
        language=child.language,
        id=str(child.number),
    )


def _store_answers(
    children: Mapping[str, StructuralChild],
    said: Mapping[str, EvidenceItem],
    waiting: Mapping[str, set[str]],
    answers: Sequence[ModelAnswer],
) -> None:
    rows = []
    for answer in answers:
        assert isinstance(answer.reply, Verdicts)  # a classification is answered with verdicts
        rows += [
            _verdict_row(
                children[item.belief],
                said[item.id],
                item.verdict,
                basis=Basis.MODEL,
                reason=item.reason,
                call_id=answer.call_id,
            )
            for item in answer.reply.verdicts
            if item.id in waiting[item.belief]
        ]
    _store_verdicts(rows)


def _verdict_row(
    child: StructuralChild,
    said: EvidenceItem,
    verdict: Verdict,
    *,
    basis: Basis,
    reason: str = "",
    call_id: int | None = None,
) -> ChildVerdict:
    return ChildVerdict(
        workspace_id=child.workspace_id,
        child=child,
        episode_id=said.episode.id,
        verdict=verdict,
        kind=said.kind,
        base_weight=said.base_weight,
        basis=basis,
        reason=reason,
        model=classification_model() if call_id else "",
        prompt_version=CLASSIFICATION_VERSION if call_id else "",
        call_id=call_id,
    )


def _store_verdicts(rows: Iterable[ChildVerdict]) -> None:
    ChildVerdict.objects.bulk_create(rows, ignore_conflicts=True)
