"""How beliefs stood before somebody laid hands on them (B22)."""

from collections.abc import Collection
from typing import Any

from django.db.models import F, OuterRef, Subquery

from memory.domain.identity import Actor
from memory.models import BeliefEvent


def stood_before(*, beliefs: Collection[str], actor: Actor) -> dict[str, Any]:
    """Return each belief's last event before the actor's first; a belief without either is left out."""
    theirs = BeliefEvent.objects.filter(pgh_obj=OuterRef("pgh_obj"), pgh_context__actor=str(actor))
    first = Subquery(theirs.order_by("pgh_id").values("pgh_id")[:1])
    earlier = BeliefEvent.objects.filter(pgh_obj__in=beliefs).annotate(first=first).filter(pgh_id__lt=F("first"))
    last = earlier.order_by("pgh_obj", "-pgh_id").distinct("pgh_obj")
    return {event.pgh_obj_id: event for event in last}


def left_by(*, beliefs: Collection[str], actor: Actor) -> dict[str, Any]:
    """Return each belief's last event of an actor; a belief that the actor did not change is left out."""
    theirs = BeliefEvent.objects.filter(pgh_obj__in=beliefs, pgh_context__actor=str(actor))
    return {event.pgh_obj_id: event for event in theirs.order_by("pgh_obj", "-pgh_id").distinct("pgh_obj")}
