"""The full card of a belief: what it rests on, where it came from, and what the gates decided (B18)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from django.conf import settings
from django.db.models import QuerySet

from memory.access import Viewer, visible_beliefs, visible_episodes
from memory.domain.beta import Beta
from memory.domain.evidence import WeighedEvidence, weigh_evidence
from memory.domain.lifecycle import EpisodeStatus
from memory.history.as_of import Rows, beliefs_as_of, evidence_as_of, evidence_values, lineage_as_of
from memory.ledger.confidence import confidence_policy, read_evidence_rows
from memory.models import (
    Belief,
    BeliefEvent,
    Claim,
    ClusterJob,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    UndoneEvidence,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """One episode's word on the belief, with what it weighs among the others."""

    episode: str
    text: str
    claim: str  # the sentence of it that counts; "" where nothing but the whole text does
    speaker: str
    origin: str
    occurred_at: datetime
    verdict: str
    kind: str
    basis: str
    weight: float
    reason: str
    cycle: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """A belief that this one came from, or that came from it."""

    id: str
    statement: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Founding:
    """What a belief was born of: a job of a cycle, and how many of its episodes bore the candidate out or did not."""

    cycle: str
    job: int
    verdicts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefCard:
    """A belief with all that a viewer may know of it."""

    belief: Belief | BeliefEvent  # an event where it is shown as it stood
    interval: tuple[float, float]
    evidence: Sequence[EvidenceLine]
    hidden_evidence: int
    origins: Mapping[str, int]
    founding: Founding | None
    decisions: Sequence[GateDecision]
    parents: Sequence[Relative]
    children: Sequence[Relative]
    additive_confidence: float | None  # of a workspace whose gates read it, and of a belief as it is now


def read_card(*, belief: Belief, viewer: Viewer) -> BeliefCard:
    """Gather a belief's card; evidence and relatives outside the viewer's sight are counted or left out."""
    return _compose(
        belief=belief,
        shown=belief,
        weighed=weigh_evidence(
            rows=read_evidence_rows(belief_id=belief.pk), policy=confidence_policy(belief.workspace)
        ),
        evidence=[Evidence.objects.filter(belief=belief)],
        decisions=GateDecision.objects.filter(belief=belief),
        lineage=[Lineage.objects.all()],
        viewer=viewer,
    )


def read_card_as_of(*, belief: Belief, at: datetime, viewer: Viewer) -> BeliefCard | None:
    """Gather a belief's card as it stood at a time; None if there was no such belief then.

    Evidence of episodes that were forgotten since still counts, and is not shown any more. What was undone since is.
    """
    event = beliefs_as_of(beliefs=Belief.objects.filter(pk=belief.pk), at=at).select_related("project").first()
    if event is None:
        return None
    rows = evidence_as_of(belief_id=belief.pk, at=at)
    return _compose(
        belief=belief,
        shown=event,
        weighed=weigh_evidence(rows=evidence_values(rows=rows), policy=confidence_policy(belief.workspace)),
        evidence=[table.exclude(episode__status=EpisodeStatus.FORGOTTEN) for table in rows],
        decisions=GateDecision.objects.filter(belief=belief, cycle__now__lte=at),
        lineage=lineage_as_of(at=at),
        viewer=viewer,
    )


def _compose(
    *,
    belief: Belief,
    shown: Belief | BeliefEvent,
    weighed: WeighedEvidence,
    evidence: Rows,
    decisions: QuerySet[GateDecision],
    lineage: Rows,
    viewer: Viewer,
) -> BeliefCard:
    """Put a card together; all rows are weighed, seen or not: what one weighs depends on the others of its origin."""
    lines = _lines(evidence, weighed.weights, viewer)
    return BeliefCard(
        belief=shown,
        interval=interval_of(shown),
        evidence=lines,
        hidden_evidence=len(weighed.weights) - len(lines),
        origins={verdict.value: count for verdict, count in weighed.origins.items()},
        founding=find_founding(belief=belief),
        decisions=_without_hidden_twins(decisions, viewer),
        parents=_relatives([table.filter(child=belief) for table in lineage], "parent", viewer),
        children=_relatives([table.filter(parent=belief) for table in lineage], "child", viewer),
        additive_confidence=belief.additive_confidence if shown is belief and belief.workspace.is_additive else None,
    )


def find_founding(*, belief: Belief) -> Founding | None:
    """Return what a belief was born of; none for one that no cluster founded, or whose cycle is gone."""
    job = ClusterJob.objects.for_workspace(belief.workspace_id).filter(created_belief=belief).order_by("pk").first()
    if job is None:
        return None
    verdicts = JobVerdict.objects.filter(job=job, belief=None).values_list("verdict", flat=True)
    return Founding(cycle=job.cycle_id, job=job.number, verdicts=Counter(verdicts))


def interval_of(belief: Belief | BeliefEvent) -> tuple[float, float]:
    """Return the credible interval of a belief's confidence (B4)."""
    mass: float = settings.POLICY.confidence.interval_mass
    return Beta(alpha=belief.alpha, beta=belief.beta).interval(mass=mass)


def _without_hidden_twins(rows: QuerySet[GateDecision], viewer: Viewer) -> list[GateDecision]:
    """Read the gates' decisions, newest first, without a word on a twin that the viewer may not see."""
    decisions = list(rows.select_related("cycle").order_by("-created_at", "-pk"))
    twins = {decision.twin_id for decision in decisions if decision.twin_id}
    seen = set(visible_beliefs(viewer=viewer).filter(pk__in=twins).values_list("pk", flat=True))
    for decision in decisions:
        if decision.twin_id not in seen:
            decision.twin = None
            decision.facts = {name: fact for name, fact in decision.facts.items() if not _tells_of_twin(name)}
    return decisions


def _tells_of_twin(fact: str) -> bool:
    return fact.startswith("twin_") or fact in {"similarity", "passes_guard"}


def _lines(rows: Rows, weights: Mapping[str, float], viewer: Viewer) -> list[EvidenceLine]:
    """Read the evidence that counts and that the viewer may see, in the order in which it occurred."""
    visible = visible_episodes(viewer=viewer)
    seen = [table.filter(episode__in=visible).select_related("episode").defer("episode__search") for table in rows]
    ordered = sorted(chain(*seen), key=lambda row: (row.episode.occurred_at, row.created_at, row.pk))
    claims = _claims_of([row for row in ordered if isinstance(row, Evidence)])
    return [_line(row, weights[row.episode_id], claims) for row in ordered if row.episode_id in weights]


def _claims_of(rows: Sequence[Evidence]) -> dict[str, str]:
    """Return by episode the sentence that counts, of rows of one belief."""
    sentences = dict(Claim.objects.filter(pk__in=[row.claim_id for row in rows]).values_list("pk", "sentence"))
    return {row.episode_id: sentences[row.claim_id] for row in rows if row.claim_id in sentences}


def _line(row: Evidence | UndoneEvidence, weight: float, claims: Mapping[str, str]) -> EvidenceLine:
    return EvidenceLine(
        episode=row.episode_id,
        text=row.episode.text,
        claim=claims.get(row.episode_id, ""),
        speaker=row.episode.speaker,
        origin=row.episode.origin,
        occurred_at=row.episode.occurred_at,
        verdict=row.verdict,
        kind=row.kind,
        basis=row.basis,
        weight=weight,
        reason=row.reason,
        cycle=row.cycle_id,
    )


def _relatives(lineage: Rows, end: str, viewer: Viewer) -> list[Relative]:
    rows = {getattr(row, f"{end}_id"): row for table in lineage for row in table.order_by("pk")}
    beliefs = visible_beliefs(viewer=viewer).only("statement").in_bulk(list(rows))
    return [
        Relative(id=key, statement=beliefs[key].statement, kind=row.kind, reason=row.reason)
        for key, row in rows.items()
        if key in beliefs
    ]
