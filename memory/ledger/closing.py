"""What held and holds no longer keeps its time: a belief is closed, and its successor says since when (C2)."""

from collections import Counter
from datetime import datetime

from django.db.models import QuerySet

from memory.domain.gates import Reason
from memory.domain.gates.decisions import LIVE
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.history.attribution import attribute_changes
from memory.ledger.author import Author
from memory.ledger.confidence import read_rows, recompute_beliefs
from memory.ledger.lineage import Descent, record_lineage
from memory.ledger.locks import lock_beliefs
from memory.ledger.status import change_status
from memory.models import Belief, Evidence, Lineage, LineageKind


def close_belief(*, belief: Belief, at: datetime, author: Author) -> Belief | None:
    """Close a belief that held until a time; return the belief that those who contradict it bear out, if one is there.

    What was said of it from then on counts no longer, neither for nor against. The caller holds the workspace's lock
    and the belief's.
    """
    against = _contradicting_since(belief, at)
    attribute_changes(actor=author.actor, reason=Reason.CHANGED)
    belief.valid_until = at
    belief.save(update_fields=["valid_until"])
    change_status(
        belief=belief, new=BeliefStatus.INVALIDATED, reason=Reason.CHANGED, actor=author.actor, now=author.now
    )
    recompute_beliefs(beliefs=[belief], now=author.now)
    if successor := _named_successor(belief):
        begin_belief(belief=successor, at=at, author=author)
    elif successor := _find_successor(belief, against):
        begin_belief(belief=successor, at=at, author=author)
        descent = Descent(parents=[belief], kind=LineageKind.SUPERSESSION, reason=Reason.CHANGED)
        record_lineage(child=successor, descent=descent, author=author)
    return successor


def begin_belief(*, belief: Belief, at: datetime, author: Author) -> None:
    """Say since when a belief holds, where nothing that was said of it is older."""
    if belief.valid_from is None and all(row.occurred_at >= at for row in read_rows(belief_id=belief.pk)):
        belief.valid_from = at
        belief.save(update_fields=["valid_from"])
        recompute_beliefs(beliefs=[belief], now=author.now)


def is_closed(belief: Belief) -> bool:
    """Tell whether a belief was closed because what it says has changed."""
    return belief.status == BeliefStatus.INVALIDATED and belief.status_reason == Reason.CHANGED


def has_successor(belief: Belief) -> bool:
    """Tell whether something that lives has come in a closed belief's place."""
    return successions_of(belief).exists()


def successions_of(belief: Belief) -> QuerySet[Lineage]:
    """Select what names the live beliefs of the same project and user that are to take a belief's place."""
    rows: QuerySet[Lineage] = Lineage.objects.filter(
        parent=belief,
        kind=LineageKind.SUPERSESSION,
        child__status__in=LIVE,
        child__project=belief.project_id,
        child__user=belief.user,
    )
    return rows


def _named_successor(belief: Belief) -> Belief | None:
    """Return the newest live belief of which it is said that it supersedes this one."""
    return max(
        lock_beliefs(successions_of(belief).values("child")), key=lambda one: (one.created_at, one.pk), default=None
    )


def _contradicting_since(belief: Belief, at: datetime) -> set[str]:
    rows = read_rows(belief_id=belief.pk)
    return {
        row.episode_id
        for row in rows
        if row.base_weight > 0 and row.verdict is Verdict.CONTRADICTS and row.occurred_at >= at
    }


def _find_successor(belief: Belief, against: set[str]) -> Belief | None:
    """Return the newest live belief that was made of one of these episodes and that half of them bear out."""
    told = Evidence.objects.filter(episode__in=against, verdict=Verdict.SUPPORTS, base_weight__gt=0)
    told = told.filter(belief__status__in=LIVE, belief__project=belief.project_id, belief__user=belief.user)
    made = set(told.filter(is_founding=True).values_list("belief_id", flat=True))
    counts = Counter(key for key in told.values_list("belief_id", flat=True) if key in made)
    borne_out = [key for key, count in counts.items() if 2 * count >= len(against)]
    if not borne_out:
        return None
    return max(lock_beliefs(borne_out), key=lambda one: (one.created_at, one.pk))
