"""Does what is stored equal what the evidence gives (B4)?"""

from collections.abc import Iterator
from datetime import datetime
from typing import TypedDict

from memory.ledger.confidence import numbers_of
from memory.models import Belief, Workspace

_BATCH = 500

# The others (peak, when time archives it) hang on settings besides.
CHECKED = (
    "alpha", "beta", "evidence_count", "prediction_error", "additive_confidence", "storage_strength",
    "last_reinforced_at",
)  # fmt: skip


class Drift(TypedDict):
    """A column of a belief that its evidence does not bear out."""

    id: str
    column: str
    stored: float | datetime | None
    given: float | datetime | None


def find_drift(*, workspace: Workspace) -> tuple[int, list[Drift]]:
    """Recompute every belief of a workspace; return how many were checked and what differs."""
    checked, drifts = 0, list[Drift]()
    for beliefs in _batches(workspace):
        numbers = numbers_of(beliefs=beliefs)
        drifts += [
            Drift(id=belief.pk, column=column, stored=getattr(belief, column), given=value)
            for belief in beliefs
            for column, value in numbers[belief.pk].items()
            if column in CHECKED
            and getattr(belief, column) != value
            and (column, getattr(belief, column)) != ("additive_confidence", None)
        ]
        checked += len(beliefs)
    return checked, drifts


def _batches(workspace: Workspace) -> Iterator[list[Belief]]:
    last = ""
    beliefs = Belief.objects.for_workspace(workspace).select_related("workspace").defer("search").order_by("pk")
    while batch := list(beliefs.filter(pk__gt=last)[:_BATCH]):
        yield batch
        last = batch[-1].pk
