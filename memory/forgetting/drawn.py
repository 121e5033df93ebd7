"""E1: a claim that could not be read without another episode falls with it, and its own episode is read again."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from memory.consolidation.rebuild.repair import LOST, take_up_again
from memory.domain.actor import Actor
from memory.domain.lifecycle import ConsolidationState
from memory.ledger.evidence import EvidenceWithdrawal, recompute_without, supporting_rows
from memory.ledger.transactions import lock_beliefs
from memory.models import Claim, ClusterJob, ClusterMember, Episode, Evidence, JobVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """The episodes that are read again, and the beliefs that lost evidence or support with their claims."""

    episodes: frozenset[str] = frozenset()
    beliefs: frozenset[str] = frozenset()
    unsupported: frozenset[str] = frozenset()


def find_drawn(*, workspace_id: int, episodes: Collection[str]) -> frozenset[int]:
    """Find the claims of other episodes that drew on some."""
    claims = Claim.objects.for_workspace(workspace_id).filter(drew_on__overlap=list(episodes))
    return frozenset(claims.exclude(episode__in=list(episodes)).values_list("pk", flat=True))


def drop_claims(*, claims: Collection[int]) -> Dropped:
    """Delete claims with their verdicts and evidence, and let their episodes wait to be read once more.

    The caller holds the workspace's lock, and computes the beliefs anew. An episode is read as a whole: its other
    claims go as well, and their evidence stays.
    """
    if not claims:
        return Dropped()
    rows = Evidence.objects.filter(claim__in=claims)
    beliefs = frozenset(belief.pk for belief in lock_beliefs(rows.values("belief")))
    unsupported = frozenset(supporting_rows(rows=rows).values_list("belief_id", flat=True))
    own = frozenset(Claim.objects.filter(pk__in=claims).values_list("episode_id", flat=True))
    rows.delete()
    took_part = ClusterMember.objects.filter(job=OuterRef("job"), episode=OuterRef("episode"), claim__in=claims)
    JobVerdict.objects.filter(Exists(took_part)).delete()
    # What they founded stands for itself from here on: a replay would find nothing that it was made of.
    ClusterJob.objects.filter(claim__in=claims).update(created_belief=None, outcome=LOST, members_hash="")
    Claim.objects.filter(episode__in=own).delete()
    _read_again(Episode.objects.filter(pk__in=own))
    return Dropped(episodes=own, beliefs=beliefs, unsupported=unsupported)


def _read_again(episodes: QuerySet[Episode]) -> None:
    ids = list(episodes.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
    episodes.update(read_at=None)
    take_up_again(episodes=ids)
    waiting = Episode.objects.active().filter(pk__in=ids, state=ConsolidationState.POOLED)
    waiting.update(state=ConsolidationState.NEW, state_reason="", pooled_at=None)


def forget_drawn(*, workspace_id: int, episodes: Collection[str], actor: Actor, now: datetime) -> EvidenceWithdrawal:
    """Drop the claims that drew on forgotten episodes; what they alone bore out is archived (B19)."""
    dropped = drop_claims(claims=find_drawn(workspace_id=workspace_id, episodes=episodes))
    beliefs = lock_beliefs(dropped.beliefs)
    supported = [belief for belief in beliefs if belief.pk in dropped.unsupported]
    archived = recompute_without(beliefs=beliefs, supported=supported, actor=actor, now=now)
    return EvidenceWithdrawal(beliefs=dropped.beliefs, archived=archived)
