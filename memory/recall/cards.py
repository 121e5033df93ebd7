"""Everything a viewer may know of one memory (B18).

`read_card` for a belief, `read_episode_card` for an episode and `read_turn_card` for a buffered turn; also the claims
of a memory, and a belief's line of ancestors and descendants.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from memory.access import Viewer, visible_beliefs, visible_episodes, visible_turns
from memory.domain.evidence import Beta, WeighedEvidence, weigh_evidence
from memory.domain.identity import turn_id_of, turn_number_of
from memory.domain.lifecycle import EpisodeStatus, TurnState
from memory.domain.taxonomy import Knowledge, Role, knowledge_of_episode
from memory.graph.edges import EpisodeLink, read_entity_names, read_links
from memory.history import CurrentAndUndoneRows, beliefs_as_of, evidence_as_of, evidence_values, lineage_as_of
from memory.ledger.confidence import confidence_policy, read_evidence_rows, read_evidence_rows_of
from memory.models import (
    Belief,
    BeliefEvent,
    Claim,
    ClusterJob,
    Episode,
    EpisodeAccess,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    RevokedEvidence,
    Transition,
    Turn,
)
from memory.models.conversations import WAITING_STATES
from memory.recall.query import MemoryType


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
class BeliefCreation:
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
    founding: BeliefCreation | None
    decisions: Sequence[GateDecision]
    parents: Sequence[Relative]
    children: Sequence[Relative]
    additive_confidence: float | None  # of a workspace whose gates read it, and of a belief as it is now


def read_card(*, belief: Belief, viewer: Viewer) -> BeliefCard:
    """Gather a belief's card; evidence and relatives outside the viewer's sight are counted or left out."""
    return _build_card(
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
    return _build_card(
        belief=belief,
        shown=event,
        weighed=weigh_evidence(rows=evidence_values(rows=rows), policy=confidence_policy(belief.workspace)),
        evidence=[table.exclude(episode__status=EpisodeStatus.FORGOTTEN) for table in rows],
        decisions=GateDecision.objects.filter(belief=belief, cycle__now__lte=at),
        lineage=lineage_as_of(at=at),
        viewer=viewer,
    )


def _build_card(
    *,
    belief: Belief,
    shown: Belief | BeliefEvent,
    weighed: WeighedEvidence,
    evidence: CurrentAndUndoneRows,
    decisions: QuerySet[GateDecision],
    lineage: CurrentAndUndoneRows,
    viewer: Viewer,
) -> BeliefCard:
    """Put a card together; all rows are weighed, seen or not: what one weighs depends on the others of its origin."""
    lines = _evidence_lines(evidence, weighed.weights, viewer)
    return BeliefCard(
        belief=shown,
        interval=interval_of(shown),
        evidence=lines,
        hidden_evidence=len(weighed.weights) - len(lines),
        origins={verdict.value: count for verdict, count in weighed.origins.items()},
        founding=read_creation(belief=belief),
        decisions=_without_hidden_twins(decisions, viewer),
        parents=_relatives([table.filter(child=belief) for table in lineage], "parent", viewer),
        children=_relatives([table.filter(parent=belief) for table in lineage], "child", viewer),
        additive_confidence=belief.additive_confidence if shown is belief and belief.workspace.is_additive else None,
    )


def read_creation(*, belief: Belief) -> BeliefCreation | None:
    """Return what a belief was born of; none for one that no cluster founded, or whose cycle is gone."""
    job = ClusterJob.objects.for_workspace(belief.workspace_id).filter(created_belief=belief).order_by("pk").first()
    if job is None:
        return None
    verdicts = JobVerdict.objects.filter(job=job, belief=None).values_list("verdict", flat=True)
    return BeliefCreation(cycle=job.cycle_id, job=job.number, verdicts=Counter(verdicts))


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


def _evidence_lines(rows: CurrentAndUndoneRows, weights: Mapping[str, float], viewer: Viewer) -> list[EvidenceLine]:
    """Read the evidence that counts and that the viewer may see, in the order in which it occurred."""
    visible = visible_episodes(viewer=viewer)
    seen = [table.filter(episode__in=visible).select_related("episode").defer("episode__search") for table in rows]
    ordered = sorted(chain(*seen), key=lambda row: (row.episode.occurred_at, row.created_at, row.pk))
    claims = _claims_of([row for row in ordered if isinstance(row, Evidence)])
    return [_evidence_line(row, weights[row.episode_id], claims) for row in ordered if row.episode_id in weights]


def _claims_of(rows: Sequence[Evidence]) -> dict[str, str]:
    """Return by episode the sentence that counts, of rows of one belief."""
    sentences = dict(Claim.objects.filter(pk__in=[row.claim_id for row in rows]).values_list("pk", "sentence"))
    return {row.episode_id: sentences[row.claim_id] for row in rows if row.claim_id in sentences}


def _evidence_line(row: Evidence | RevokedEvidence, weight: float, claims: Mapping[str, str]) -> EvidenceLine:
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


def _relatives(lineage: CurrentAndUndoneRows, end: str, viewer: Viewer) -> list[Relative]:
    rows = {getattr(row, f"{end}_id"): row for table in lineage for row in table.order_by("pk")}
    beliefs = visible_beliefs(viewer=viewer).only("statement").in_bulk(list(rows))
    return [
        Relative(id=key, statement=beliefs[key].statement, kind=row.kind, reason=row.reason)
        for key, row in rows.items()
        if key in beliefs
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefLineage:
    """Beliefs, oldest first, and the changes that lead from one to another, in their order."""

    beliefs: Sequence[Belief]
    changes: Sequence[Lineage]


def read_lineage(*, belief: Belief, viewer: Viewer) -> BeliefLineage:
    """Gather a belief's ancestors and descendants, as far as the viewer may see them."""
    with connection.cursor() as cursor:
        cursor.execute(_LINEAGE, {"belief": belief.pk, "ws": belief.workspace_id})
        line = [key for (key,) in cursor.fetchall()]
    beliefs = visible_beliefs(viewer=viewer).filter(pk__in=line).select_related("project")
    seen = list(beliefs.order_by("created_at", "pk"))
    ids = {one.pk for one in seen}
    return BeliefLineage(
        beliefs=seen, changes=list(Lineage.objects.filter(parent__in=ids, child__in=ids).order_by("created_at", "pk"))
    )


# UNION, not UNION ALL: a row that was reached before is not followed again, so that the walk ends whatever is stored.
_LINEAGE = """
WITH RECURSIVE
    earlier (belief) AS (
        SELECT %(belief)s::varchar COLLATE "C" UNION
        SELECT parent_id FROM memory_lineage JOIN earlier ON child_id = belief WHERE workspace_id = %(ws)s
    ),
    later (belief) AS (
        SELECT %(belief)s::varchar COLLATE "C" UNION
        SELECT child_id FROM memory_lineage JOIN later ON parent_id = belief WHERE workspace_id = %(ws)s
    )
SELECT belief FROM earlier UNION SELECT belief FROM later
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceGiven:
    """What an episode says of a belief, with what it weighs among the belief's other evidence."""

    belief: str
    statement: str
    status: str
    confidence: float
    verdict: str
    kind: str
    basis: str
    weight: float
    reason: str
    cycle: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeCard:
    """An episode with all that a viewer may know of it."""

    episode: Episode
    knowledge: Knowledge
    access_count: int
    accessed_at: datetime | None
    beliefs: Sequence[EvidenceGiven]
    hidden_beliefs: int
    transitions: Sequence[Transition]
    names: Sequence[str]
    links: Sequence[EpisodeLink]
    turns: Sequence[Turn]
    other_turns: int
    type: MemoryType = MemoryType.EPISODE


def read_episode_card(*, episode: Episode, viewer: Viewer) -> EpisodeCard:
    """Gather an episode's card; beliefs outside the viewer's sight are counted and not named."""
    access = EpisodeAccess.objects.filter(pk=episode.pk).first()
    rows = list(Evidence.objects.filter(episode=episode).order_by("created_at", "pk"))
    beliefs = visible_beliefs(viewer=viewer).defer("search").in_bulk([row.belief_id for row in rows])
    turns = _turns(episode, viewer)
    return EpisodeCard(
        episode=episode,
        knowledge=knowledge_of_episode(category=episode.category),
        access_count=access.access_count if access else 0,
        accessed_at=access.accessed_at if access else None,
        beliefs=list(_evidence_given(rows, beliefs, viewer)),
        hidden_beliefs=sum(row.belief_id not in beliefs for row in rows),
        transitions=list(Transition.objects.filter(episode=episode).order_by("-pk")),
        names=read_entity_names(episode=episode),
        links=read_links(episode=episode, viewer=viewer),
        turns=_latest_turns(turns),
        other_turns=max(0, turns.count() - _MOST_TURNS),
    )


_MOST_TURNS = 20  # of the turns shown, the latest


def _turns(episode: Episode, viewer: Viewer) -> QuerySet[Turn]:
    """Find the turns that an episode was read from, of conversations in sight.

    Those that tell what was forgotten are left out.
    """
    return visible_turns(viewer=viewer).filter(episodes=episode)


def _latest_turns(turns: QuerySet[Turn]) -> Sequence[Turn]:
    """List the latest of some turns by conversation, in the order they were said."""
    latest = turns.select_related("conversation").order_by("-occurred_at", "-number", "-pk")[:_MOST_TURNS]
    return sorted(latest, key=lambda turn: (turn.conversation_id, turn.number))


def _evidence_given(rows: Sequence[Evidence], beliefs: Mapping[str, Belief], viewer: Viewer) -> Iterator[EvidenceGiven]:
    """Yield what an episode says of each belief that is in sight."""
    policy = confidence_policy(viewer.workspace)
    evidence = read_evidence_rows_of(beliefs=beliefs)
    for row in rows:
        if row.belief_id in beliefs:
            weights = weigh_evidence(rows=evidence[row.belief_id], policy=policy).weights
            yield _given_row(row, beliefs[row.belief_id], weights.get(row.episode_id, 0.0))


def _given_row(row: Evidence, belief: Belief, weight: float) -> EvidenceGiven:
    return EvidenceGiven(
        belief=belief.pk,
        statement=belief.statement,
        status=belief.status,
        confidence=belief.confidence,
        verdict=row.verdict,
        kind=row.kind,
        basis=row.basis,
        weight=weight,
        reason=row.reason,
        cycle=row.cycle_id,
    )


WAITING = "waiting"  # for being read; it is recalled all the same


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCard:
    """A turn with all that a viewer may know of it; `episodes` are the ids of those that it became."""

    turn: Turn
    episodes: Sequence[str]
    type: str = "turn"

    @property
    def id(self) -> str:
        """Return its public id."""
        return turn_id_of(self.turn.pk)

    @property
    def state(self) -> str:
        """Tell how far it has come: waiting, extracted, echo or failed."""
        return WAITING if self.turn.state in WAITING_STATES else TurnState(self.turn.state).value


def find_turn(*, memory_id: str, viewer: Viewer) -> Turn | None:
    """Return the turn of this id, if the viewer may see it; what a system is told is nobody's memory."""
    turns = visible_turns(viewer=viewer).exclude(role=Role.SYSTEM).select_related("conversation__project", "workspace")
    found: Turn | None = turns.filter(pk=turn_number_of(memory_id)).first()
    return found


def read_turn_card(*, turn: Turn, viewer: Viewer) -> TurnCard:
    """Gather a turn's card."""
    became = visible_episodes(viewer=viewer).filter(turns=turn, is_derived=False).order_by("pk")
    return TurnCard(turn=turn, episodes=list(became.values_list("pk", flat=True).distinct()))


MOST_CLAIMS = 200  # an episode has no more


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedBelief:
    """What a claim says of one belief."""

    id: str
    verdict: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownClaim:
    """A claim with the beliefs that it is evidence for or against."""

    claim: Claim
    beliefs: Sequence[ClaimedBelief]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryClaims:
    """The claims of a memory."""

    id: str
    read_at: datetime | None
    claims: Sequence[ShownClaim]
    other_claims: int  # that are not shown


def read_claims_of_episode(*, episode: Episode, viewer: Viewer) -> MemoryClaims:
    """Gather what an episode asserts, in its order, with what it says of the beliefs that the viewer may see."""
    claims = Claim.objects.filter(episode=episode).order_by("number")
    return _gather_claims(episode.pk, episode.read_at, list(claims[:MOST_CLAIMS]), claims, viewer)


def read_claims_of_belief(*, belief: Belief, viewer: Viewer) -> MemoryClaims:
    """Gather the claims in a belief's evidence, the newest first, of episodes that the viewer may see."""
    seen = visible_episodes(viewer=viewer).order_by().values("pk")
    claims = Claim.objects.filter(evidence__belief=belief, episode__in=seen)
    newest = claims.order_by("-episode__occurred_at", "-episode_id", "number")
    return _gather_claims(belief.pk, None, list(newest[:MOST_CLAIMS]), claims, viewer)


def _gather_claims(
    memory_id: str, read_at: datetime | None, shown: Sequence[Claim], claims: QuerySet[Claim], viewer: Viewer
) -> MemoryClaims:
    beliefs = _beliefs_of(shown, viewer)
    return MemoryClaims(
        id=memory_id,
        read_at=read_at,
        claims=[ShownClaim(claim=claim, beliefs=beliefs.get(claim.pk, ())) for claim in shown],
        other_claims=claims.count() - len(shown) if len(shown) == MOST_CLAIMS else 0,
    )


def _beliefs_of(claims: Sequence[Claim], viewer: Viewer) -> Mapping[int, Sequence[ClaimedBelief]]:
    seen = visible_beliefs(viewer=viewer).order_by().values("pk")
    rows = Evidence.objects.filter(claim__in=[claim.pk for claim in claims], belief__in=seen).order_by("pk")
    found: dict[int, list[ClaimedBelief]] = defaultdict(list)
    for claim, belief, verdict, statement in rows.values_list("claim_id", "belief_id", "verdict", "belief__statement"):
        found[claim].append(ClaimedBelief(id=belief, verdict=verdict, statement=statement))
    return found
