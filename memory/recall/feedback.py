"""What agents and people say of a memory's use: useful, wrong, done with (L13, L16). No confidence moves by it."""

from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.db.models import F

from memory.domain.category import Category
from memory.ledger.transactions import NotFound
from memory.models import Belief, Episode


class Feedback(StrEnum):
    """A word on the use of a memory."""

    USEFUL = "useful"
    WRONG = "wrong"


class NotACommitment(ValueError):
    """Something that nobody committed to cannot be done with."""


def give_feedback(*, memory: Episode | Belief, value: Feedback) -> float:
    """Move a memory's feedback a share of the way to 1 or -1, and return where it stands.

    So it stays in between, the latest words count most, and whoever repeats one moves it ever less. Of two at once,
    both count. Raise Gone for one that was erased since it was looked up.
    """
    step: float = settings.POLICY.feedback.step
    end = 1.0 if value is Feedback.USEFUL else -1.0
    rows = type(memory).objects.filter(pk=memory.pk)
    rows.update(feedback=F("feedback") + step * (end - F("feedback")))
    stands: float | None = rows.values_list("feedback", flat=True).first()
    if stands is None:
        raise NotFound(f"There is no {memory.pk} any more.")
    return stands


def resolve_commitment(*, memory: Episode | Belief, now: datetime) -> datetime:
    """Note that a commitment was done with, and return when it was first; raise NotACommitment, or Gone."""
    if not isinstance(memory, Episode) or memory.category != Category.COMMITMENT:
        raise NotACommitment(f"{memory.pk} is no commitment: only an episode of that category can be resolved.")
    Episode.objects.filter(pk=memory.pk, resolved_at=None).update(resolved_at=now)
    first: datetime | None = Episode.objects.filter(pk=memory.pk).values_list("resolved_at", flat=True).first()
    if first is None:
        raise NotFound(f"There is no {memory.pk} any more.")
    return first
