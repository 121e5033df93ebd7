"""Episodes leave the evidence: every belief that leaned on them is computed anew, and what is left bare is archived.

The rows of evidence stay, for what was believed before; they are not read any more (R10).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from django.db.models import QuerySet

from memory.domain.actor import Actor
from memory.domain.gates import Reason
from memory.domain.gates.decisions import LIVE
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.history.attribution import attribute_changes
from memory.ledger.confidence import LEFT, recompute_beliefs
from memory.ledger.locks import lock_beliefs
from memory.ledger.status import change_status
from memory.models import Belief, Evidence, EvidenceKind

EVIDENCE_LEFT = "evidence was forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bereft:
    """The beliefs that lost evidence, and those among them that were archived because no support was left."""

    beliefs: frozenset[str] = frozenset()
    archived: frozenset[str] = frozenset()

    def __or__(self, other: Self) -> Self:
        return replace(self, beliefs=self.beliefs | other.beliefs, archived=self.archived | other.archived)


def take_from_evidence(*, rows: QuerySet[Evidence], actor: Actor, now: datetime) -> Bereft:
    """Recompute the beliefs of rows whose episodes have just left; archive the live ones without support (B19).

    The caller holds the workspace's lock, so that nobody gives a belief evidence of what leaves.
    """
    beliefs = lock_beliefs(rows.values("belief"))
    lost_support = set(supports(rows=rows).values_list("belief_id", flat=True))
    supported = [belief for belief in beliefs if belief.pk in lost_support]
    archived = count_without(beliefs=beliefs, supported=supported, actor=actor, now=now)
    return Bereft(beliefs=frozenset(belief.pk for belief in beliefs), archived=archived)


def count_without(
    *, beliefs: Collection[Belief], supported: Collection[Belief], actor: Actor, now: datetime
) -> frozenset[str]:
    """Recompute locked beliefs by what evidence is left; return those that were archived for want of support.

    `supported` are those that lost support.
    """
    attribute_changes(actor=actor, reason=EVIDENCE_LEFT)
    _open_ends(beliefs)
    recompute_beliefs(beliefs=list(beliefs), now=now)
    supported_still = _with_support(supported)
    bare = [b for b in supported if b.pk not in supported_still and b.status in LIVE and not b.is_pinned]  # D9
    for belief in bare:
        change_status(belief=belief, new=BeliefStatus.ARCHIVED, reason=Reason.UNSUPPORTED, actor=actor, now=now)
    return frozenset(belief.pk for belief in bare)


def _open_ends(beliefs: Collection[Belief]) -> None:
    """Let beliefs hold on whose announced end nothing that is left announces (C1)."""
    ahead = [belief for belief in beliefs if belief.status == BeliefStatus.ACTIVE and belief.valid_until]
    rows = Evidence.objects.filter(
        belief__in=[belief.pk for belief in ahead], kind=EvidenceKind.ANNOUNCED, verdict=Verdict.CONTRADICTS
    )
    announced = set(rows.exclude(episode__status__in=LEFT).values_list("belief_id", flat=True))
    for belief in ahead:
        if belief.pk not in announced:
            belief.valid_until = None
            belief.save(update_fields=["valid_until"])


def _with_support(beliefs: Collection[Belief]) -> set[str]:
    """Find the beliefs for which a support is left that counts."""
    left = supports(rows=Evidence.objects.filter(belief__in=[belief.pk for belief in beliefs]))
    return set(left.exclude(episode__status__in=LEFT).values_list("belief", flat=True))


def supports(*, rows: QuerySet[Evidence]) -> QuerySet[Evidence]:
    """Keep the rows that support something, echoes left out."""
    return rows.filter(verdict=Verdict.SUPPORTS, base_weight__gt=0)
