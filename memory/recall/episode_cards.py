"""The full card of an episode: what became of it, and what it bears witness to (B18)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from memory.access import Viewer, visible_beliefs, visible_turns
from memory.domain.evidence import weigh_evidence
from memory.domain.knowledge import Knowledge, knowledge_of_episode
from memory.ledger.confidence import confidence_policy, read_evidence_rows_of
from memory.models import Belief, Episode, EpisodeAccess, Evidence, Transition, Turn
from memory.recall.episode_links import Link, read_links, read_names
from memory.recall.ranking import MemoryType

_MOST = 20  # of the turns shown, the latest


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
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
    beliefs: Sequence[Word]
    hidden_beliefs: int
    transitions: Sequence[Transition]
    names: Sequence[str]
    links: Sequence[Link]
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
        beliefs=list(_words(rows, beliefs, viewer)),
        hidden_beliefs=sum(row.belief_id not in beliefs for row in rows),
        transitions=list(Transition.objects.filter(episode=episode).order_by("-pk")),
        names=read_names(episode=episode),
        links=read_links(episode=episode, viewer=viewer),
        turns=_latest(turns),
        other_turns=max(0, turns.count() - _MOST),
    )


def _turns(episode: Episode, viewer: Viewer) -> QuerySet[Turn]:
    """Find the turns that an episode was read from, of conversations in sight.

    Those that tell what was forgotten are left out.
    """
    return visible_turns(viewer=viewer).filter(episodes=episode)


def _latest(turns: QuerySet[Turn]) -> Sequence[Turn]:
    """List the latest of some turns by conversation, in the order they were said."""
    latest = turns.select_related("conversation").order_by("-occurred_at", "-number", "-pk")[:_MOST]
    return sorted(latest, key=lambda turn: (turn.conversation_id, turn.number))


def _words(rows: Sequence[Evidence], beliefs: Mapping[str, Belief], viewer: Viewer) -> Iterator[Word]:
    """Yield what an episode says of each belief that is in sight."""
    policy = confidence_policy(viewer.workspace)
    evidence = read_evidence_rows_of(beliefs=beliefs)
    for row in rows:
        if row.belief_id in beliefs:
            weights = weigh_evidence(rows=evidence[row.belief_id], policy=policy).weights
            yield _word(row, beliefs[row.belief_id], weights.get(row.episode_id, 0.0))


def _word(row: Evidence, belief: Belief, weight: float) -> Word:
    return Word(
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
