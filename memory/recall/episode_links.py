"""What an episode is linked with, as far as a viewer may see it (L19)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.access import Viewer, visible_episodes
from memory.domain.edges import known_confidence
from memory.models import Edge, Episode, Mention

_MOST = 20  # of the edges shown, the strongest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An edge as the card of one of its ends shows it: `is_cause` if the other end is this one's cause."""

    episode: str
    text: str
    kind: str
    is_cause: bool
    weight: float
    confidence: float
    last_seen_at: datetime


def read_names(*, episode: Episode) -> list[str]:
    """Name whom and what an episode names."""
    return list(Mention.objects.filter(episode=episode).order_by("pk").values_list("name", flat=True))


def read_links(*, episode: Episode, viewer: Viewer) -> Sequence[Link]:
    """List the strongest edges of an episode whose other end is in sight."""
    edges = list(Edge.objects.for_workspace(episode.workspace_id).touching([episode.pk]).order_by("pk"))
    texts = dict(visible_episodes(viewer=viewer).filter(pk__in=_ends(edges)).values_list("pk", "text"))
    links = [_link(edge, episode, texts) for edge in edges if _other(edge, episode) in texts]
    return sorted(links, key=lambda link: (-link.weight * link.confidence, link.episode, link.kind))[:_MOST]


def _ends(edges: Sequence[Edge]) -> set[str]:
    return {end for edge in edges for end in (edge.source_id, edge.target_id)}


def _other(edge: Edge, episode: Episode) -> str:
    return edge.target_id if edge.source_id == episode.pk else edge.source_id


def _link(edge: Edge, episode: Episode, texts: dict[str, str]) -> Link:
    other = _other(edge, episode)
    return Link(
        episode=other,
        text=texts[other],
        kind=edge.kind,
        is_cause=edge.is_causal and other == edge.source_id,
        weight=edge.weight,
        confidence=known_confidence(edge.confidence),
        last_seen_at=edge.last_seen_at,
    )
