"""Claims: what an episode asserts, each a sentence that stands alone, with how it is meant (E1)."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from pgvector.django import HalfVectorField

from memory.domain.lifecycle import EpisodeStatus
from memory.domain.tiers import tier_of
from memory.language.modes import EVIDENCE, Mode
from memory.models.choices import choices_of
from memory.models.episodes import DIMENSIONS, Episode
from memory.models.tenancy import Workspace, WorkspaceQuerySet


class ClaimQuerySet(WorkspaceQuerySet):
    def evidence(self) -> Self:
        """Keep what may be evidence: what is asserted, or announces a change (E1, E2)."""
        return self.filter(mode__in=EVIDENCE)

    def active(self) -> Self:
        """Keep the claims of active episodes."""
        return self.filter(episode__status=EpisodeStatus.ACTIVE)

    def announced(self, *, by: datetime) -> Self:
        """Keep what was announced ahead of a day that has come by a time (C1)."""
        ahead = self.filter(mode=Mode.CHANGE, is_whole=False, holds_from__gt=F("episode__occurred_at__date"))
        return ahead.filter(holds_from__lte=by.date())


class Claim(models.Model):
    """E1: one thing that an episode asserts. Read once; reading the episode again replaces all of its claims."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="claims")
    number = models.PositiveSmallIntegerField(help_text="Its place in the episode.")
    sentence = models.TextField(help_text="In the third person, dates resolved; it stands alone.")
    subject = models.CharField(max_length=200, blank=True, default="", help_text="Whom or what it is about.")
    slot = models.CharField(max_length=40, blank=True, default="", help_text="What about the subject: manager, diet, …")
    slots = ArrayField(
        models.CharField(max_length=40),
        default=list,
        db_default=[],
        blank=True,
        help_text="All that it fills; `slot` is one of them.",
    )
    value = models.CharField(max_length=200, blank=True, default="")
    context = models.CharField(max_length=60, blank=True, default="general", help_text="At work, on Sundays, …")
    is_denial = models.BooleanField(default=False)
    mode = models.CharField(max_length=12, choices=choices_of(Mode), default=Mode.ASSERTED)
    kind = models.CharField(max_length=12, blank=True, default="", help_text="preference, habit, identity, event, …")
    confidence = models.FloatField(default=0.5, help_text="How plainly it says something that lasts, 0 to 1.")
    is_told = models.BooleanField(default=False, help_text="Plain enough to found a belief by itself (E4).")
    is_whole = models.BooleanField(default=False, help_text="It is the episode's text as it stands, with its vector.")
    ended = ArrayField(models.CharField(max_length=200), default=list, blank=True, help_text="What it says has ended.")
    holds_from = models.DateField(null=True, blank=True, help_text="Since when it says that it holds.")
    holds_until = models.DateField(null=True, blank=True)
    words = models.TextField(blank=True, default="", help_text="The words that it was read from.")
    drew_on = ArrayField(
        models.CharField(max_length=15),
        default=list,
        blank=True,
        help_text="Other episodes that it could not be read without.",
    )
    language = models.CharField(max_length=8, blank=True, default="")
    reader = models.CharField(max_length=100, help_text="The rules or model that read it, and their version.")
    created_at = models.DateTimeField()

    objects = ClaimQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["episode", "number"], name="one_claim_per_number"),
            models.CheckConstraint(condition=~Q(sentence=""), name="claim_has_a_sentence"),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="claim_confidence_in_0_1"),
            models.CheckConstraint(condition=Q(mode__in=list(Mode)), name="claim_mode_known"),
        ]
        indexes = [
            models.Index(fields=["workspace", "holds_from"], condition=Q(mode=Mode.CHANGE), name="claim_announced")
        ]
        ordering = ("number",)

    def __str__(self) -> str:
        return self.sentence[:80]

    @property
    def begins_at(self) -> datetime:
        """Return since when it says that something holds: the day that it names, else when it was said."""
        if self.holds_from is None:
            said_at: datetime = self.episode.occurred_at
            return said_at
        return datetime.combine(self.holds_from, time(), tzinfo=UTC)

    def begins_by(self, now: datetime) -> datetime:
        """Return the same; a moment ahead that no words name is a clock's fault, and is now."""
        return min(self.begins_at, now) if self.holds_from is None else self.begins_at

    @property
    def tier(self) -> str:
        """L3: name the tier of its confidence."""
        return tier_of(confidence=self.confidence, policy=settings.POLICY.extraction)


class ClaimEmbedding(models.Model):
    """A claim's vector; what is its episode's whole text shares the episode's instead."""

    pk = models.CompositePrimaryKey("claim", "model")
    claim = models.ForeignKey(
        Claim, on_delete=models.CASCADE, db_index=False, related_name="embeddings", related_query_name="embedding"
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    model = models.CharField(max_length=100)
    vector = HalfVectorField(dimensions=DIMENSIONS)

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return str(self.claim_id)
