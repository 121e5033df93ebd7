"""Episodes, kept as they were said, with their vectors and accesses, and the claims that are read out of them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, time
from typing import Self

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import connection, models
from django.db.models import Q
from pgvector.django import HalfVectorField

from memory.domain.lifecycle import ConsolidationState, EpisodeStatus, LifecycleState, Verification
from memory.domain.taxonomy import Kind, Mode, kind_of, tier_of
from memory.models.fields import IdField, choices_of, new_episode_id, search_vector
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet

DIMENSIONS = 768
PENDING_STATES = (ConsolidationState.NEW, ConsolidationState.LEASED, ConsolidationState.FAILED)


class Source(models.TextChoices):
    HUMAN = "human", "human"
    AI = "ai", "AI"
    INTERACTION = "interaction", "interaction"
    INGEST = "ingest", "ingest"
    DREAM = "dream", "dream"


class NextNumber(models.Func):
    """The next of the sequence that numbers episodes."""

    template = "nextval('memory_episode_number')"
    output_field = models.BigIntegerField()


class EpisodeQuerySet(WorkspaceQuerySet):
    def active(self) -> Self:
        """Keep what is recalled by default."""
        return self.filter(status=EpisodeStatus.ACTIVE)

    def speech(self) -> Self:
        """Keep what somebody said for themselves, so that it must be read to know what they assert (E1)."""
        return self.filter(source=Source.HUMAN, is_derived=False)

    def pending(self) -> Self:
        """Keep what waits for consolidation: new, leased or failed (pooled and dead letters are shown beside it)."""
        return self.active().filter(state__in=PENDING_STATES, dead_at=None)

    def dead(self) -> Self:
        """Keep the dead letters: what failed so often that it waits for a person."""
        return self.active().filter(state=ConsolidationState.FAILED, dead_at__isnull=False)


# P8, P11: a graduated episode stands in a file.
_PUBLICATION_DUE = """
    IF EXISTS (SELECT FROM memory_graduatedepisode WHERE episode_id = NEW.id) THEN
        INSERT INTO memory_publicationdue (workspace_id) VALUES (NEW.workspace_id);
    END IF;
    RETURN NULL;
"""


class Episode(models.Model):
    """B1: one remembered thing. Its text never changes; everything else about it can."""

    id = IdField(default=new_episode_id)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="episodes")
    project = models.ForeignKey(Project, on_delete=models.RESTRICT, null=True, blank=True, related_name="episodes")
    user = models.CharField(max_length=200, blank=True, default="")
    agent = models.CharField(max_length=200, blank=True, default="")
    session = models.CharField(max_length=200, blank=True, default="")
    document = models.CharField(max_length=400, blank=True, default="")
    speaker = models.CharField(max_length=200, blank=True, default="")
    source = models.CharField(max_length=12, choices=Source.choices, default=Source.INTERACTION)
    language = models.CharField(max_length=8, blank=True, default="", help_text="en, de, …; empty: unknown.")

    text = models.TextField()
    summary = models.TextField(blank=True, default="")
    entities = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    tags = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    category = models.CharField(max_length=12, blank=True, default="")
    importance = models.FloatField(default=0.5)
    valence = models.FloatField(default=0.0)

    confidence = models.FloatField(null=True, blank=True, help_text="An extraction's, 0 to 1; empty: none made it.")
    causes = ArrayField(models.TextField(), default=list, blank=True, db_default=[], help_text="Why it is so.")
    verbatim = models.TextField(blank=True, default="", db_default="", help_text="The words a fact was read from.")
    confirmations = models.PositiveIntegerField(default=0, db_default=0, help_text="Later facts that said the same.")
    confirmed_at = models.DateTimeField(null=True, blank=True, help_text="When what last confirmed it was said.")
    distance = models.FloatField(null=True, blank=True, help_text="Mean distance to the nearest, when it was stored.")
    surprise = models.FloatField(null=True, blank=True, help_text="Surprise in that distance, 0 to 1.")
    is_near_duplicate = models.BooleanField(
        default=False, db_default=False, help_text="When it was stored, another said nearly the same."
    )

    origin = models.CharField(max_length=700, help_text="What counts as one independent source of evidence.")
    content_hash = models.CharField(max_length=64)
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001  (unique where given)
    line_hash = models.CharField(max_length=64, blank=True, default="", help_text="Of the whole line as it came.")
    is_derived = models.BooleanField(default=False, help_text="Merged, summarised or dreamt: never evidence.")

    status = models.CharField(max_length=12, choices=choices_of(EpisodeStatus), default=EpisodeStatus.ACTIVE)
    merged_into = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="merged", db_index=False,
        help_text="What it became one with, as long as that is there.",
    )  # fmt: skip
    state = models.CharField(max_length=8, choices=choices_of(ConsolidationState), default=ConsolidationState.NEW)
    state_reason = models.CharField(max_length=200, blank=True, default="")
    leased_by = models.ForeignKey(
        "memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="leased_episodes"
    )
    read_at = models.DateTimeField(null=True, blank=True, help_text="Domain time at which its claims were read.")
    pooled_at = models.DateTimeField(null=True, blank=True, help_text="Domain time at which it first joined the pool.")
    failures = models.PositiveIntegerField(
        default=0, help_text="Cycles that failed because of it, since the last that did not."
    )
    dead_at = models.DateTimeField(null=True, blank=True, help_text="Domain time at which it became a dead letter.")
    lifecycle_state = models.CharField(
        max_length=9,
        choices=choices_of(LifecycleState),
        blank=True,
        default="",
        db_default="",
        help_text="Empty: never judged.",
    )
    verification = models.CharField(
        max_length=15, choices=choices_of(Verification), blank=True, default="", db_default=""
    )
    feedback = models.FloatField(default=0.0, db_default=0.0, help_text="From -1, wrong, to 1, useful.")
    resolved_at = models.DateTimeField(null=True, blank=True, help_text="When a commitment was done with.")

    number = models.BigIntegerField(
        db_default=NextNumber(), editable=False, help_text="In the order of storing, over all workspaces."
    )
    created_at = models.DateTimeField(help_text="The time of storing; ages are counted from here.")
    occurred_at = models.DateTimeField(help_text="Orders evidence and answers questions about time.")
    valid_until = models.DateTimeField(null=True, blank=True)

    search = models.GeneratedField(
        expression=search_vector("text", "speaker"), output_field=SearchVectorField(), db_persist=True
    )

    objects = EpisodeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "project", "user", "speaker", "origin", "content_hash"],
                name="one_episode_per_origin_and_content",
                nulls_distinct=False,
            ),
            models.UniqueConstraint(  # a project's own: of other projects a key that is limited to one learns nothing
                fields=["workspace", "idempotency_key", "project"],
                condition=Q(idempotency_key__isnull=False),
                name="one_episode_per_idempotency_key",
                nulls_distinct=False,
            ),
            models.CheckConstraint(condition=~Q(text=""), name="episode_has_text"),
            models.CheckConstraint(condition=Q(importance__range=(0, 1)), name="episode_importance_in_0_1"),
            models.CheckConstraint(condition=Q(valence__range=(-1, 1)), name="episode_valence_in_range"),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="episode_confidence_in_0_1"),
            models.CheckConstraint(condition=Q(feedback__range=(-1, 1)), name="episode_feedback_in_range"),
            models.CheckConstraint(
                condition=Q(lifecycle_state__in=["", *LifecycleState]), name="episode_lifecycle_state_known"
            ),
            models.CheckConstraint(
                condition=Q(verification__in=["", *Verification]), name="episode_verification_known"
            ),
            models.CheckConstraint(condition=Q(status__in=list(EpisodeStatus)), name="episode_status_known"),
            models.CheckConstraint(condition=Q(state__in=list(ConsolidationState)), name="episode_state_known"),
            models.CheckConstraint(
                condition=Q(state=ConsolidationState.LEASED, leased_by__isnull=False)
                | (~Q(state=ConsolidationState.LEASED) & Q(leased_by__isnull=True)),
                name="leased_episode_names_its_cycle",
            ),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "occurred_at", "content_hash", "origin"],
                condition=Q(state__in=PENDING_STATES, status=EpisodeStatus.ACTIVE),
                name="episode_pending",
            ),
            models.Index(
                fields=["workspace", "created_at"],
                condition=Q(state=ConsolidationState.NEW, status=EpisodeStatus.ACTIVE),
                name="episode_new",
            ),
            models.Index(
                fields=["workspace", "pooled_at"], condition=Q(state=ConsolidationState.POOLED), name="episode_pooled"
            ),
            models.Index(fields=["workspace", "dead_at"], condition=Q(dead_at__isnull=False), name="episode_dead"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="episode_newest"),
            models.Index(
                fields=["workspace", "content_hash"],
                condition=Q(status=EpisodeStatus.FORGOTTEN),
                name="episode_forgotten",
            ),
            models.Index(
                fields=["workspace", "session", "occurred_at", "number"],
                condition=~Q(session=""),
                name="episode_turns",
            ),
            models.Index(fields=["merged_into"], condition=Q(merged_into__isnull=False), name="episode_merged_into"),
            models.Index(fields=["workspace", "number"], name="episode_number"),
            GinIndex(fields=["search"], name="episode_search"),
        ]
        triggers = [
            pgtrigger.ReadOnly(name="episode_text_never_changes", fields=["text"]),
            pgtrigger.Trigger(
                name="publication_due",
                level=pgtrigger.Row,
                when=pgtrigger.After,
                operation=pgtrigger.UpdateOf("status", "valid_until"),  # type: ignore[no-untyped-call]  # as it comes
                condition=pgtrigger.AnyChange("status", "valid_until"),
                func=_PUBLICATION_DUE,
            ),
        ]

    def __str__(self) -> str:
        return self.text[:80]

    @property
    def kind(self) -> Kind:
        """L5: tell whether it tells what happened or notes what holds."""
        return kind_of(text=self.text, category=self.category, tags=self.tags)

    @property
    def tier(self) -> str:
        """L3: name the tier of the extraction's confidence; "" where none made it."""
        return "" if self.confidence is None else tier_of(confidence=self.confidence, policy=settings.POLICY.extraction)


class EpisodeEmbedding(models.Model):
    """An episode's vector, with what searches filter by copied in so that they need no join.

    One, but while a workspace moves to another model: then one of each.
    """

    pk = models.CompositePrimaryKey("episode", "model")
    episode = models.ForeignKey(
        Episode, on_delete=models.CASCADE, db_index=False, related_name="embeddings", related_query_name="embedding"
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    user = models.CharField(max_length=200, blank=True, default="")
    is_active = models.BooleanField(default=True)
    model = models.CharField(max_length=100, help_text="Vectors of different models are never compared.")
    is_chunked = models.BooleanField(default=False, help_text="The text was longer than the model reads.")
    vector = HalfVectorField(dimensions=DIMENSIONS)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["workspace", "model", "project", "user"],
                condition=Q(is_active=True),
                name="episode_vectors_of_scope",
            )
        ]

    def __str__(self) -> str:
        return self.episode_id


class EpisodeAccess(models.Model):
    """How often and when an episode was recalled: a narrow row, so that counting stays cheap."""

    episode = models.OneToOneField(Episode, on_delete=models.CASCADE, primary_key=True, related_name="access")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    accessed_at = models.DateTimeField(null=True)
    access_count = models.PositiveIntegerField(default=0)

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return self.episode_id


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
    kind = models.CharField(max_length=12, blank=True, default="", help_text="lasting, or event: it happens once.")
    category = models.CharField(max_length=12, blank=True, default="", db_default="")
    entities = ArrayField(models.CharField(max_length=200), default=list, db_default=[], blank=True)
    importance = models.PositiveSmallIntegerField(null=True, blank=True, help_text="1 to 10; empty: not told.")
    because = models.ForeignKey(
        "memory.Belief",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The belief that is its reason: when that closes, what was founded on the claim is challenged.",
    )
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

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["episode", "number"], name="one_claim_per_number"),
            models.CheckConstraint(condition=~Q(sentence=""), name="claim_has_a_sentence"),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="claim_confidence_in_0_1"),
            models.CheckConstraint(condition=Q(mode__in=list(Mode)), name="claim_mode_known"),
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


_MOST_MERGE_STEPS = 100  # merging leads to the last survivor at once; a longer way is no way, but a circle

_SURVIVORS = """
WITH RECURSIVE way AS (
    SELECT id AS began, id, merged_into_id, status, 0 AS steps FROM memory_episode WHERE id = ANY(%(ids)s)
    UNION ALL
    SELECT way.began, e.id, e.merged_into_id, e.status, way.steps + 1
    FROM way JOIN memory_episode e ON e.id = way.merged_into_id WHERE way.steps < %(most)s
)
SELECT DISTINCT ON (began) began, id, status FROM way ORDER BY began, steps DESC
"""


def find_merge_survivors(*, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return by episode the one that it became one with in the end, and its status; itself, where none is known."""
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_SURVIVORS, {"ids": list(ids), "most": _MOST_MERGE_STEPS})
        return {began: (key, status) for began, key, status in cursor.fetchall()}
