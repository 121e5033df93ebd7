"""What was believed when, and why: rows that triggers write, and one for every change of a status (R10)."""

from __future__ import annotations

from typing import Any

import pghistory
import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.beliefs import Belief
from memory.models.episodes import Episode
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet

# A change of any of these is kept. All else of a belief follows from its evidence or tells of its use.
TRACKED = (
    "statement", "subject", "predicate", "context", "timeframe", "status", "status_reason", "alpha", "beta",
    "is_pinned", "valid_from", "valid_until",
)  # fmt: skip

# What goes along, so that a belief can be shown as it stood; `updated_at` is the domain time of the change.
_ALONG = (
    "workspace", "scope", "project", "user", "fact_type", "language", "importance", "evidence_count",
    "peak_confidence", "prediction_error", "storage_strength", "created_at", "updated_at", "last_reinforced_at",
    "last_verified_at",
)  # fmt: skip
KEPT = (*TRACKED, *_ALONG)


class _NumberedEvent(pghistory.models.Event):
    """An event whose number may grow beyond 32 bits."""

    pgh_id = models.BigAutoField(primary_key=True)

    class Meta:
        abstract = True


_BeliefRecord: Any = pghistory.create_event_model(
    Belief,
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent("changed", condition=pghistory.AnyChange(*TRACKED)),
    fields=[*KEPT],
    base_model=_NumberedEvent,
    obj_field=pghistory.ObjForeignKey(related_name="+", on_delete=models.CASCADE, db_constraint=True, db_index=False),
    context_field=pghistory.ContextJSONField(),
    context_id_field=None,  # type: ignore[arg-type]  # none is what its documentation says to give
    level=pgtrigger.Statement,  # a third of what a trigger per row costs
)


class BeliefEvent(_BeliefRecord):  # type: ignore[misc]  # pghistory makes the class when it runs
    """A belief as it stood after one change, written by a trigger whoever made the change.

    `pgh_context` holds actor and reason where they were said, `pgh_created_at` the wall time of the change.
    """

    confidence = models.GeneratedField(
        expression=F("alpha") / (F("alpha") + F("beta")), output_field=models.FloatField(), db_persist=True
    )

    # Without indexes: rows are found by their belief, and every change would pay for them.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["pgh_obj", "-pgh_id"], name="belief_as_of")]
        triggers = [pgtrigger.Protect(name="history_never_changes", operation=pgtrigger.Update)]

    def __str__(self) -> str:
        return f"{self.pgh_obj_id} {self.pgh_label}"


class Transition(models.Model):
    """One change of the status of a belief or an episode."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="transitions")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, null=True, blank=True, related_name="transitions")
    old = models.CharField(max_length=12)
    new = models.CharField(max_length=12)
    reason = models.CharField(max_length=200)
    actor = models.CharField(max_length=200)
    at = models.DateTimeField(help_text="Domain time.")
    recorded_at = models.DateTimeField(db_default=Now(), help_text="Wall time, by the database's clock.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(belief__isnull=True) ^ Q(episode__isnull=True), name="transition_of_one_memory"
            ),
            models.CheckConstraint(condition=~Q(old=F("new")), name="transition_changes_something"),
            models.CheckConstraint(condition=~Q(actor="") & ~Q(reason=""), name="transition_says_who_and_why"),
        ]
        indexes = [models.Index(fields=["workspace", "-id"], name="transition_newest")]
        triggers = [pgtrigger.Protect(name="transitions_never_change", operation=pgtrigger.Update)]

    def __str__(self) -> str:
        return f"{self.belief_id or self.episode_id}: {self.old} → {self.new}"
