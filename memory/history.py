"""What was believed when, and why (R10): who changes beliefs, and how beliefs, episodes and evidence stood at a time.

`attribute_changes` names who changes beliefs from here on; `beliefs_as_of` and its like read a time, in domain time:
of the changes up to then the one that was recorded last holds, so that a history replayed later does not undo what
was known.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.db.transaction import TransactionManagementError

from memory.domain.evidence import EvidenceRow, Verdict
from memory.domain.identity import Actor
from memory.domain.lifecycle import EpisodeStatus
from memory.models import Belief, BeliefEvent, Evidence, Lineage, RevokedEvidence, RevokedLineage, Transition
from memory.models.audit import RECORDED_COLUMNS
from memory.models.episodes import EpisodeQuerySet


def attribute_changes(*, actor: Actor, reason: str) -> None:
    """Say who changes beliefs from here to the end of the transaction, or until said otherwise, and why."""
    if not connection.in_atomic_block:
        raise TransactionManagementError("Changes are attributed within a transaction.")
    with connection.cursor() as cursor:
        cursor.execute(_SET_CONTEXT, [json.dumps({"actor": str(actor), "reason": reason})])


# The context's id is left unset: with it the triggers would keep a second copy of every context in a table of its own.
_SET_CONTEXT = "SELECT set_config('pghistory.context_metadata', %s, true)"


def record_change(*, belief: Belief, actor: Actor, reason: str) -> None:
    """Keep how a belief stands after a change that touched nothing for which the triggers keep it."""
    BeliefEvent.objects.create(
        pgh_obj=belief,
        pgh_label="changed",
        pgh_context={"actor": str(actor), "reason": reason},
        **{name: getattr(belief, name) for name in RECORDED_COLUMNS},
    )


# Forgotten and invalidated episodes leave the evidence; merged, archived and superseded ones stay (R10).
_WITHDRAWN_STATUSES = {EpisodeStatus.FORGOTTEN.value, EpisodeStatus.INVALIDATED.value}
_STATUS_COLUMNS = ("episode_id", "episode__status")
# Two query sets: the rows that stand, and, for a time that is past, those that were undone since.
CurrentAndUndoneRows = Sequence[QuerySet[Any]]


def beliefs_as_of(*, beliefs: QuerySet[Belief], at: datetime) -> QuerySet[Any]:
    """Return each belief as it stood at a time, as events; those that were not there yet are left out."""
    until_then = BeliefEvent.objects.filter(_recorded_by(at), pgh_obj=OuterRef("pk")).order_by("-pgh_id")
    latest = beliefs.order_by().annotate(latest=Subquery(until_then.values("pgh_id")[:1])).values("latest")
    events: QuerySet[Any] = BeliefEvent.objects.filter(pgh_id__in=latest)
    return events


def _recorded_by(at: datetime) -> Q:
    """Select the changes up to a time.

    One by hand in the database is signed by nobody and leaves the domain time of the change before it: it counts from
    when it was made.
    """
    before = BeliefEvent.objects.filter(
        pgh_obj=OuterRef("pgh_obj"), pgh_id__lt=OuterRef("pgh_id"), updated_at=OuterRef("updated_at")
    )
    is_by_hand = (Q(pgh_context=None) | ~Q(pgh_context__has_key="actor")) & Exists(before)
    return Q(~is_by_hand, updated_at__lte=at) | Q(is_by_hand, pgh_created_at__lte=at)


def changes_of(*, belief: Belief) -> QuerySet[Any]:
    """Return every change of a belief, as the belief stood after it."""
    events: QuerySet[Any] = BeliefEvent.objects.filter(pgh_obj=belief)
    return events


def episodes_as_of(*, episodes: EpisodeQuerySet, at: datetime) -> EpisodeQuerySet:
    """Return the episodes that were stored by then, each with its status at that time as `status_then`."""
    changes = Transition.objects.filter(episode=OuterRef("pk"))
    latest = changes.filter(at__lte=at).order_by("-pk").values("new")[:1]
    first = changes.order_by("pk").values("old")[:1]  # the status before any change
    then = Coalesce(Subquery(latest), Subquery(first), F("status"))
    stored: EpisodeQuerySet = episodes.filter(created_at__lte=at).annotate(status_then=then)
    return stored


def evidence_as_of(*, belief_id: str, at: datetime) -> CurrentAndUndoneRows:
    """Return the rows that spoke about a belief at a time, those that were undone since among them.

    An episode speaks once: what it says by a row that is there counts before what was undone.
    """
    rows = Evidence.objects.filter(belief=belief_id, created_at__lte=at)
    undone = RevokedEvidence.objects.filter(belief=belief_id, created_at__lte=at, undone_at__gt=at)
    undone = undone.exclude(episode__in=rows.values("episode"))
    statuses = dict([*rows.values_list(*_STATUS_COLUMNS), *undone.values_list(*_STATUS_COLUMNS)])
    statuses.update(_statuses_as_of(episodes=list(statuses), at=at))
    left = [key for key, status in statuses.items() if status in _WITHDRAWN_STATUSES]
    return rows.exclude(episode__in=left), undone.exclude(episode__in=left)


def lineage_as_of(*, at: datetime) -> CurrentAndUndoneRows:
    """Return the rows of all lineage that stood at a time, those that were undone since among them."""
    undone = RevokedLineage.objects.filter(created_at__lte=at, undone_at__gt=at)
    return Lineage.objects.filter(created_at__lte=at), undone


def evidence_values(*, rows: CurrentAndUndoneRows) -> list[EvidenceRow]:
    """Read evidence as values to be weighed."""
    columns = ("episode_id", "verdict", "base_weight", "episode__origin", "episode__occurred_at")
    return [
        EvidenceRow(episode_id=key, verdict=Verdict(verdict), base_weight=weight, origin=origin, occurred_at=time)
        for table in rows
        for key, verdict, weight, origin, time in table.values_list(*columns)
    ]


def _statuses_as_of(*, episodes: Collection[str], at: datetime) -> dict[str, str]:
    """Return the status at a time of each episode whose status ever changed."""
    then: dict[str, str] = {}
    transitions = Transition.objects.filter(episode__in=episodes).order_by("pk")
    for episode, old, new, changed_at in transitions.values_list("episode_id", "old", "new", "at"):
        then.setdefault(episode, old)
        if changed_at <= at:
            then[episode] = new
    return then
