"""The old evidence judged anew: each episode against each child, or united by episode in a merge (B12, B13, B15)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from django.conf import settings

from memory.consolidation.asking import ask_models
from memory.consolidation.known import given_verdicts, judging_model
from memory.consolidation.leases import JobLease
from memory.consolidation.sources import person_of
from memory.consolidation.testimony import Testimony, testimony_of, unite_testimony
from memory.domain.clustering import batch_pairs
from memory.domain.evidence import Verdict
from memory.language.analysis import SpokenText
from memory.ledger.beliefs import supports_by_guard
from memory.llm.embeddings import embedder_of
from memory.llm.prompts import CLASSIFICATION_VERSION
from memory.llm.replies import Verdicts
from memory.llm.requests import ClassificationRequest, StatedBelief
from memory.llm.runner import ModelAnswer, ModelRequest
from memory.models import Basis, ChildVerdict, StructuralChild, StructuralJob
from memory.search.vectors import read_episode_vectors

Likeness = dict[str, float]  # by episode id, reference scale; of those that have a vector


def judge_children(*, lease: JobLease[StructuralJob]) -> bool:
    """Store a verdict of every episode on every child, by the guard or by asking; false if some are left."""
    testimony = testimony_of(job=lease.job)
    said = {one.episode.id: one for one in testimony}
    children = {str(child.number): child for child in lease.job.children.all()}
    likeness = {key: _likeness(child, list(said)) for key, child in children.items()}
    unjudged = {key: _store_without_asking(child, testimony, likeness[key]) for key, child in children.items()}
    waiting = {key: {one.episode.id for one in those} for key, those in unjudged.items()}
    return ask_models(
        lease=lease,
        asks=_asks(children, said, waiting, likeness),
        store=lambda answers: _store_answers(children, said, waiting, answers),
    )


def unite_verdicts(*, job: StructuralJob) -> None:
    """Give a merge's child the evidence of both parents, one row an episode, what clashes as PARTIAL (B13)."""
    child = job.children.get()
    united = unite_testimony(belief_id=job.belief_id, twin_id=str(job.twin_id))
    _store(_inherited(child, said, verdict, clash) for said, verdict, clash in united)


def _inherited(child: StructuralChild, said: Testimony, verdict: Verdict, clash: str) -> ChildVerdict:
    """Hand on what was said, and how it was found; of a clash nobody said what the two come to."""
    if clash:
        return _verdict(child, said, verdict, basis=Basis.UNITED, reason=clash)
    inherited = _verdict(child, said, verdict, basis=Basis(said.basis), reason=said.reason)
    inherited.call_id = said.call_id  # whose model and prompt stand with the call, not with this pair
    return inherited


def _likeness(child: StructuralChild, episodes: Sequence[str]) -> Likeness:
    model = embedder_of(child.job.workspace_id)
    ids, vectors = read_episode_vectors(model=model.name, ids=episodes)
    if child.vector is None or not ids:
        return {}
    cosines = vectors @ np.asarray(child.vector, dtype=np.float32)
    return {key: model.profile.reference(float(cosine)) for key, cosine in zip(ids, cosines, strict=True)}


def _store_without_asking(
    child: StructuralChild, testimony: Sequence[Testimony], likeness: Likeness
) -> list[Testimony]:
    """Store what was said before, and what the guard alone can tell; return what nobody has judged yet."""
    statement = SpokenText(text=child.statement, speaker=child.subject, language=child.language)
    judged = set(child.verdicts.values_list("episode_id", flat=True))
    waiting = [said for said in testimony if said.episode.id not in judged]
    unheard = _repeat(child, waiting)
    sure = [
        said
        for said in unheard
        if supports_by_guard(
            episode=said.episode.claim, statement=statement, similarity=likeness.get(said.episode.id, 0.0)
        )
    ]
    _store(_verdict(child, said, Verdict.SUPPORTS, basis=Basis.GUARD) for said in sure)
    return [said for said in unheard if said not in sure]


def _repeat(child: StructuralChild, waiting: Sequence[Testimony]) -> list[Testimony]:
    """Store what today's model said of the same words before; return what it was never asked about (B7)."""
    given = given_verdicts(
        workspace_id=child.workspace_id, hashes=[child.statement_hash], episodes=[said.episode.id for said in waiting]
    )
    known = {said.episode.id: given.get((child.statement_hash, said.episode.id)) for said in waiting}
    _store(
        _verdict(child, said, was.verdict, basis=Basis.MODEL, reason=was.reason, call_id=was.call_id)
        for said in waiting
        if (was := known[said.episode.id])
    )
    return [said for said in waiting if not known[said.episode.id]]


def _asks(
    children: Mapping[str, StructuralChild],
    said: Mapping[str, Testimony],
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
                beliefs=tuple(_stated(children[key]) for key in one.statements),
                episodes=tuple(said[key].episode.as_text() for key in one.texts),
                similarities=_known([likeness[key] for key in one.statements], one.texts),
                person=person_of(said[key].episode for key in one.texts),
            ),
        )
        for number, one in enumerate(batches)
    ]


def _known(likeness: Sequence[Likeness], episodes: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """Return how alike episodes are to statements, or nothing where one of them has no vector."""
    if any(key not in row for row in likeness for key in episodes):
        return ()
    return tuple(tuple(row[key] for key in episodes) for row in likeness)


def _stated(child: StructuralChild) -> StatedBelief:
    return StatedBelief(
        statement=child.statement,
        subject=child.subject,
        context=child.context,
        language=child.language,
        id=str(child.number),
    )


def _store_answers(
    children: Mapping[str, StructuralChild],
    said: Mapping[str, Testimony],
    waiting: Mapping[str, set[str]],
    answers: Sequence[ModelAnswer],
) -> None:
    rows = []
    for answer in answers:
        assert isinstance(answer.reply, Verdicts)  # a classification is answered with verdicts
        rows += [
            _verdict(
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
    _store(rows)


def _verdict(
    child: StructuralChild,
    said: Testimony,
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
        model=judging_model() if call_id else "",
        prompt_version=CLASSIFICATION_VERSION if call_id else "",
        call_id=call_id,
    )


def _store(rows: Iterable[ChildVerdict]) -> None:
    ChildVerdict.objects.bulk_create(rows, ignore_conflicts=True)
