"""The full card of a belief: what it rests on, where it came from, and what the gates decided (B18)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import QuerySet

from memory.access.visibility import Viewer, visible_beliefs, visible_episodes
from memory.consolidation.evidence import confidence_policy, read_rows
from memory.domain.beta import Beta
from memory.domain.evidence import weigh_evidence
from memory.models import Belief, ClusterJob, Evidence, GateDecision, JobVerdict, Lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """One episode's word on the belief, with what it weighs among the others."""

    episode: str
    text: str
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

    belief: Belief
    interval: tuple[float, float]
    evidence: Sequence[EvidenceLine]
    hidden_evidence: int
    origins: Mapping[str, int]
    founding: Founding | None
    decisions: Sequence[GateDecision]
    parents: Sequence[Relative]
    children: Sequence[Relative]


def read_card(*, belief: Belief, viewer: Viewer) -> BeliefCard:
    """Gather a belief's card; evidence and relatives outside the viewer's sight are counted or left out."""
    # All rows are weighed, seen or not: what one weighs depends on the others of its origin.
    policy = confidence_policy(belief.workspace)
    weighed = weigh_evidence(rows=read_rows(belief_id=belief.pk), policy=policy)
    lines = _lines(belief, weighed.weights, viewer)
    return BeliefCard(
        belief=belief,
        interval=interval_of(belief),
        evidence=lines,
        hidden_evidence=len(weighed.weights) - len(lines),
        origins={verdict.value: count for verdict, count in weighed.origins.items()},
        founding=find_founding(belief=belief),
        decisions=list(GateDecision.objects.filter(belief=belief).order_by("-created_at", "-pk")),
        parents=_relatives(Lineage.objects.filter(child=belief), "parent", viewer),
        children=_relatives(Lineage.objects.filter(parent=belief), "child", viewer),
    )


def find_founding(*, belief: Belief) -> Founding | None:
    """Return what a belief was born of; none for one that no cluster founded, or whose cycle is gone."""
    job = ClusterJob.objects.for_workspace(belief.workspace_id).filter(created_belief=belief).order_by("pk").first()
    if job is None:
        return None
    verdicts = JobVerdict.objects.filter(job=job, belief=None).values_list("verdict", flat=True)
    return Founding(cycle=job.cycle_id, job=job.number, verdicts=Counter(verdicts))


def interval_of(belief: Belief) -> tuple[float, float]:
    """Return the credible interval of a belief's confidence (B4)."""
    mass: float = settings.POLICY.confidence.interval_mass
    return Beta(alpha=belief.alpha, beta=belief.beta).interval(mass=mass)


def _lines(belief: Belief, weights: Mapping[str, float], viewer: Viewer) -> list[EvidenceLine]:
    """Read the evidence that counts and that the viewer may see, in the order in which it occurred."""
    rows = Evidence.objects.filter(belief=belief, episode__in=visible_episodes(viewer=viewer))
    ordered = rows.select_related("episode").defer("episode__search").order_by("episode__occurred_at", "pk")
    return [_line(row, weights[row.episode_id]) for row in ordered if row.episode_id in weights]


def _line(row: Evidence, weight: float) -> EvidenceLine:
    return EvidenceLine(
        episode=row.episode_id,
        text=row.episode.text,
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


def _relatives(lineage: QuerySet[Lineage], end: str, viewer: Viewer) -> list[Relative]:
    rows = {getattr(row, f"{end}_id"): row for row in lineage.order_by("pk")}
    beliefs = visible_beliefs(viewer=viewer).only("statement").in_bulk(list(rows))
    return [
        Relative(id=key, statement=beliefs[key].statement, kind=row.kind, reason=row.reason)
        for key, row in rows.items()
        if key in beliefs
    ]
