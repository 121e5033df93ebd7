"""Texts that are to be remembered at once: how far each has come, and what became of each of its facts (R1, R2, R3)."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.beliefs import Belief, FactType
from memory.models.episodes import Episode
from memory.models.tenancy import Workspace, WorkspaceQuerySet

# Why beliefs change on the direct path, and in particular their status and lineage. The model's own reason stands with
# the evidence, from where erasing an episode takes it away (B19); what came in another belief's place for one of the
# last two does not quote that one.
REMEMBERED = "remembered"
CONTRADICTED = "contradicted by what was remembered"
SAYS_THE_SAME = "it says what another belief says"

BACKFILLED = "subject read off the statement"  # why a belief got one that came without (R13)


class RemembranceState(models.TextChoices):
    QUEUED = "queued", "waits for a model"
    DONE = "done", "done"
    FAILED = "failed", "left to consolidation"


class RemembranceQuerySet(WorkspaceQuerySet):
    def queued(self) -> Self:
        """Keep what has not come to its end."""
        return self.filter(state=RemembranceState.QUEUED)

    def failed(self) -> Self:
        """Keep what was left to consolidation."""
        return self.filter(state=RemembranceState.FAILED)

    def free(self) -> Self:
        """Keep what nobody works on, by the database's clock."""
        return self.filter(Q(leased_until__isnull=True) | Q(leased_until__lt=Now()))

    def due(self) -> Self:
        """Keep what waits, is free, and is to be sent again by now."""
        return self.queued().free().filter(due_at__lte=Now())


class Remembrance(models.Model):
    """R1: an episode whose facts become beliefs without waiting for a cycle."""

    episode = models.OneToOneField(Episode, on_delete=models.CASCADE, related_name="remembrance")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    actor = models.CharField(max_length=200, help_text="Who had it remembered.")
    is_limited = models.BooleanField(default=False, help_text="By a key limited to projects: global beliefs stay.")
    state = models.CharField(max_length=6, choices=RemembranceState.choices, default=RemembranceState.QUEUED)
    state_reason = models.CharField(max_length=200, blank=True, default="", help_text="Why it waits, or failed.")
    created_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True, help_text="Domain time.")

    due_at = models.DateTimeField(db_default=Now(), help_text="When the sweeper sends it, unless it is done by then.")
    lease_owner = models.CharField(max_length=64, blank=True, default="")
    leased_until = models.DateTimeField(null=True, blank=True)
    claims = models.PositiveIntegerField(default=0, help_text="Workers that took it up and never gave it back.")
    failures = models.PositiveIntegerField(default=0, help_text="Tries in a row that brought no answer.")

    objects = RemembranceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RemembranceState.values), name="remembrance_state_known")
        ]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="queued"), name="remembrance_due")]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.state}"


class FactOutcome(models.TextChoices):
    CREATED = "created", "a new belief"
    REINFORCED = "reinforced", "it bears out a belief"
    SUPPRESSED = "suppressed", "a person put away what says the same"
    REFUSED = "refused", "it claims nothing"
    HEARD = "heard", "kept as a claim that founds nothing"


class RivalOutcome(models.TextChoices):
    WEAKENED = "weakened", "contradicted, and lives on"
    SUPERSEDED = "superseded", "contradicted, and invalidated"


class RememberedFact(models.Model):
    """One fact of a remembered text, and what became of it; it goes with the belief that says it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    remembrance = models.ForeignKey(Remembrance, on_delete=models.CASCADE, related_name="facts")
    number = models.PositiveSmallIntegerField()
    text = models.TextField()
    fact_type = models.CharField(max_length=13, choices=FactType.choices, default=FactType.FACTUAL)
    importance = models.PositiveSmallIntegerField(default=5)
    subject = models.CharField(max_length=200, blank=True, default="")
    outcome = models.CharField(max_length=10, choices=FactOutcome.choices)
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    rival = models.ForeignKey(
        Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="+", help_text="What it contradicts."
    )
    rival_outcome = models.CharField(max_length=10, choices=RivalOutcome.choices, blank=True, default="")
    is_unmatched = models.BooleanField(default=False, help_text="Its belief waits for a vector, to be compared then.")
    asked_about = ArrayField(
        models.CharField(max_length=15), default=list, blank=True, help_text="Beliefs that it might have contradicted."
    )
    call = models.ForeignKey("memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    contradiction_call = models.ForeignKey(
        "memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["remembrance", "number"], name="one_fact_per_number"),
            models.CheckConstraint(condition=Q(importance__range=(1, 10)), name="fact_importance_in_1_10"),
            models.CheckConstraint(condition=Q(outcome__in=FactOutcome.values), name="fact_outcome_known"),
        ]
        indexes = [models.Index(fields=["workspace"], condition=Q(is_unmatched=True), name="fact_unmatched")]
        ordering = ("number",)

    def __str__(self) -> str:
        return self.text[:80]
