"""B19: a memory is forgotten: it is seen and counted no more, and its row stays, so that it does not come back."""

from dataclasses import dataclass, field
from datetime import datetime

import structlog
from django.db import transaction

from memory.access import Viewer, visible_beliefs
from memory.consolidation.curating import Act, curate_belief
from memory.consolidation.weighing import restore_superseded
from memory.domain.actor import Actor
from memory.domain.lifecycle import EpisodeStatus
from memory.forgetting.drawn import forget_drawn
from memory.forgetting.holding import hold_doomed
from memory.forgetting.retelling import Retellings, forget_retellings
from memory.ledger.evidence import EvidenceWithdrawal, withdraw_evidence
from memory.ledger.transactions import NotFound, change_episode_status, lock_existing_beliefs, lock_workspace
from memory.models import Belief, Episode, Evidence
from memory.redaction.doors import redact_for

log = structlog.get_logger(__name__)

FORGOTTEN = "forgotten"  # the reason, where nobody gives one


class PinnedBelief(PermissionError):
    """A pin keeps a belief from being forgotten by whoever may not take it off (D9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was forgotten, what told of it and went along, and what that meant for beliefs."""

    id: str
    bereft: EvidenceWithdrawal
    along: Retellings = field(default_factory=Retellings)


def bereft_in_sight(*, bereft: EvidenceWithdrawal, viewer: Viewer) -> EvidenceWithdrawal:
    """Keep of the beliefs that lost evidence those that a viewer may see (B21)."""
    seen = frozenset(visible_beliefs(viewer=viewer).filter(pk__in=bereft.beliefs).values_list("pk", flat=True))
    return EvidenceWithdrawal(beliefs=seen, archived=bereft.archived & seen)


@transaction.atomic
def forget_episode(*, episode: Episode, actor: Actor, now: datetime, reason: str = "") -> Forgotten:
    """Take an episode from recall and from the evidence of every belief; forgotten already, it changes nothing.

    What was merged into it, and summaries of what it was read from, go as it does. A cycle that works on it goes on
    without it: the lock of the workspace stands between this and every gate. Raise Gone for one that was erased since
    it was looked up.
    """
    lock_workspace(episode.workspace_id)
    held = hold_doomed(episodes=Episode.objects.filter(pk=episode.pk)).episodes
    if not held:
        raise NotFound(f"There is no {episode.pk} any more.")
    said = redact_for(workspace_id=episode.workspace_id, text=reason) or FORGOTTEN
    changed = change_episode_status(ids=[episode.pk], new=EpisodeStatus.FORGOTTEN, reason=said, actor=actor, now=now)
    along = forget_retellings(episode=episode, held=held, actor=actor, now=now)
    restore_superseded(workspace_id=episode.workspace_id, by=[*changed, *along.all], actor=actor, now=now)
    gone = Evidence.objects.filter(episode__in=[*changed, *along.all])
    bereft = withdraw_evidence(rows=gone, actor=actor, now=now) | forget_drawn(
        workspace_id=episode.workspace_id, episodes=[*changed, *along.all], actor=actor, now=now
    )
    log.info(
        "episode_forgotten", episode=episode.pk, workspace=episode.workspace_id, beliefs=len(bereft.beliefs),
        along=len(along.all),
    )  # fmt: skip
    return Forgotten(id=episode.pk, bereft=bereft, along=along)


@transaction.atomic
def forget_belief(
    *, belief: Belief, actor: Actor, now: datetime, reason: str = "", even_pinned: bool = False
) -> Forgotten:
    """Let a belief stay as a tombstone, so that nothing that says the same comes in its place (B22).

    Raise PinnedBelief for a pinned one unless the caller may pin, IllegalTransitionError for one forgotten already, and
    Gone for one that was erased since it was looked up.
    """
    lock_workspace(belief.workspace_id)
    [held] = lock_existing_beliefs([belief.pk])
    if held.is_pinned and not even_pinned:
        raise PinnedBelief(f"{belief.pk} is pinned: only who may curate can forget it, or take the pin off.")
    curate_belief(belief_id=belief.pk, act=Act.FORGET, reason=reason or FORGOTTEN, actor=actor, now=now)
    log.info("belief_forgotten", belief=belief.pk, workspace=belief.workspace_id)
    return Forgotten(id=belief.pk, bereft=EvidenceWithdrawal())
