"""The status of beliefs and episodes changes here and nowhere else, by the table of legal transitions (D3, R10)."""

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from memory.domain.actor import Actor
from memory.domain.lifecycle import BeliefStatus, EpisodeStatus, check_transition
from memory.history.attribution import attribute_changes
from memory.models import Belief, BeliefEmbedding, Episode, EpisodeEmbedding, Transition

_REASON_LENGTH = 200
_STAYS_MERGED = (EpisodeStatus.MERGED, EpisodeStatus.FORGOTTEN)


def change_status(
    *,
    belief: Belief,
    new: BeliefStatus,
    reason: str,
    actor: Actor,
    now: datetime,
    status_reason: str | None = None,
) -> None:
    """Set a belief's status, record the transition, and let searches see it; the caller holds the belief's lock.

    `status_reason` is kept with the belief where that is not why its status changes: a status that is set back has the
    reason of before.
    """
    check_transition(old=BeliefStatus(belief.status), new=new)
    _set_status(
        belief, new, reason=reason, kept=reason if status_reason is None else status_reason, actor=actor, now=now
    )


def set_right_status(
    *, belief: Belief, new: BeliefStatus, status_reason: str, reason: str, actor: Actor, now: datetime
) -> None:
    """Do the same for a belief whose status is not what is recorded, wherever it strayed to.

    The table knows no way back from where no belief should have come.
    """
    _set_status(belief, new, reason=reason, kept=status_reason, actor=actor, now=now)


def _set_status(belief: Belief, new: BeliefStatus, *, reason: str, kept: str, actor: Actor, now: datetime) -> None:
    old = BeliefStatus(belief.status)
    attribute_changes(actor=actor, reason=reason)
    belief.status, belief.status_reason, belief.updated_at = new, kept[:_REASON_LENGTH], now
    belief.save(update_fields=["status", "status_reason", "updated_at"])
    BeliefEmbedding.objects.filter(belief=belief.pk).update(is_active=new == BeliefStatus.ACTIVE)
    Transition.objects.create(
        workspace_id=belief.workspace_id,
        belief=belief,
        old=old,
        new=new,
        reason=reason[:_REASON_LENGTH],
        actor=str(actor),
        at=now,
    )


@transaction.atomic
def change_episode_status(
    *, ids: Collection[str], new: EpisodeStatus, reason: str, actor: Actor, now: datetime
) -> list[str]:
    """Set the status of episodes, all or none, and record the transitions; return those that had another.

    Beliefs that lean on an episode that is forgotten or invalidated are the caller's to recompute.
    """
    locked = Episode.objects.select_for_update().filter(pk__in=ids).exclude(status=new).order_by("pk")
    found = [(key, workspace, EpisodeStatus(old)) for key, workspace, old in locked.values_list(
        "pk", "workspace_id", "status"
    )]  # fmt: skip
    for _, _, old in found:
        check_transition(old=old, new=new)
    changed = [key for key, _, _ in found]
    rows = Episode.objects.filter(pk__in=changed)
    rows.update(status=new, **({} if new in _STAYS_MERGED else {"merged_into": None}))
    EpisodeEmbedding.objects.filter(episode__in=changed).update(is_active=new == EpisodeStatus.ACTIVE)
    Transition.objects.bulk_create(
        Transition(
            workspace_id=workspace, episode_id=key, old=old, new=new, reason=reason[:_REASON_LENGTH],
            actor=str(actor), at=now,
        )
        for key, workspace, old in found
    )  # fmt: skip
    return changed


def set_status_aside(*, ids: Collection[str], status: str) -> None:
    """Set the status of episodes within a replay, which the caller rolls back: nothing is recorded of it."""
    Episode.objects.filter(pk__in=ids).update(status=status)
