"""What an episode asserts and what became of it; of a belief, the claims that it rests on (E1)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from memory.access import Viewer, visible_beliefs, visible_episodes
from memory.models import Belief, Claim, Episode, Evidence

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
    return _gather(episode.pk, episode.read_at, list(claims[:MOST_CLAIMS]), claims, viewer)


def read_claims_of_belief(*, belief: Belief, viewer: Viewer) -> MemoryClaims:
    """Gather the claims in a belief's evidence, the newest first, of episodes that the viewer may see."""
    seen = visible_episodes(viewer=viewer).order_by().values("pk")
    claims = Claim.objects.filter(evidence__belief=belief, episode__in=seen)
    newest = claims.order_by("-episode__occurred_at", "-episode_id", "number")
    return _gather(belief.pk, None, list(newest[:MOST_CLAIMS]), claims, viewer)


def _gather(
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
