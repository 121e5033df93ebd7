"""Pairs of beliefs that may contradict each other, listed for curators (R11)."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q

from memory.domain.lifecycle import BeliefStatus
from memory.models.beliefs import Belief
from memory.models.tenancy import Workspace, WorkspaceQuerySet


class RivalState(models.TextChoices):
    OPEN = "open", "nobody was asked"
    CONTRADICTS = "contradicts", "a model finds that they contradict each other"
    COMPATIBLE = "compatible", "a model finds no contradiction"
    NEEDS_A_PERSON = "needs_a_person", "no model could tell"
    DISMISSED = "dismissed", "a curator wants to see it no more"


class RivalQuerySet(WorkspaceQuerySet):
    def standing(self) -> Self:
        """Keep the pairs of which both are believed: what was revised, split or merged takes its pairs along."""
        return self.filter(first__status=BeliefStatus.ACTIVE, second__status=BeliefStatus.ACTIVE)

    def suspected(self) -> Self:
        """Leave out the pairs that are only alike."""
        return self.exclude(state=RivalState.OPEN, rule="")

    def only_alike(self) -> Self:
        """Keep the pairs that nobody was asked about, and that contradict each other by no rule."""
        return self.filter(state=RivalState.OPEN, rule="")

    def unasked(self) -> Self:
        """Keep the pairs that nobody was asked about."""
        return self.filter(state=RivalState.OPEN)


class Rival(models.Model):
    """R11: two beliefs of one project, user and language that may contradict each other, by a rule or by likeness."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    first = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+", help_text="The lesser id.")
    second = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    similarity = models.FloatField(help_text="On the reference scale, when it was found.")
    state = models.CharField(max_length=14, choices=RivalState.choices, default=RivalState.OPEN)
    reason = models.TextField(blank=True, default="", help_text="The model's, or why no model could tell.")
    rule = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="By which rule both cannot hold; empty where they are only alike.",
    )
    checked_at = models.DateTimeField(null=True, blank=True)
    call = models.ForeignKey("memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()

    objects = RivalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["first", "second"], name="beliefs_are_rivals_once"),
            models.CheckConstraint(condition=Q(first__lt=F("second")), name="rivals_are_in_order"),
            models.CheckConstraint(condition=Q(state__in=RivalState.values), name="rival_state_known"),
        ]
        indexes = [models.Index(fields=["workspace", "state", "-similarity"], name="rivals_by_state")]

    @property
    def why(self) -> str:
        """Say what whoever was asked said, else by which rule both cannot hold."""
        return self.reason or self.rule

    def __str__(self) -> str:
        return f"{self.first_id} and {self.second_id}: {self.state}"
