"""Workspaces, their members, projects and keys, and what is kept once for each workspace.

Beside each workspace stand its pause, how far linking and maintenance have come, how many secrets were redacted, and
the counts by which searches are weighed and planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.fields import VectorKind, choices_of


class WorkspaceQuerySet(models.QuerySet[Any]):
    """Rows that belong to a workspace; every query of theirs begins with `for_workspace`."""

    def for_workspace(self, workspace: Workspace | int) -> Self:
        """Keep the rows of one workspace."""
        return self.filter(workspace=workspace)


class WorkspacesQuerySet(models.QuerySet["Workspace"]):
    def believing(self) -> Self:
        """B22: keep those that keep beliefs, by their own choice and the installation's."""
        return self.filter(beliefs_enabled=True) if settings.ENGRAM_BELIEFS else self.none()

    def open_to_cycles(self) -> Self:
        """Keep those that keep beliefs and that no replay holds."""
        return self.believing().exclude(next_cycle_held_until__gt=Now())


class ConfidenceModel(models.TextChoices):
    BETA = "beta", "Beta-Bernoulli"
    ADDITIVE = "additive", "additive"


class Workspace(models.Model):
    """A tenant: nothing crosses from one to another."""

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField()
    beliefs_enabled = models.BooleanField(default=True, help_text="Off: recall answers with episodes only.")
    confidence_model = models.CharField(max_length=8, choices=ConfidenceModel.choices, default=ConfidenceModel.BETA)
    discount_repeats = models.BooleanField(
        default=True, help_text="On: n statements of one origin weigh 1 + ½ + … + 1/n together."
    )
    daily_token_cap = models.PositiveBigIntegerField(null=True, blank=True)
    daily_cost_cap_usd = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    daily_recall_token_cap = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Of recall's embeddings; beyond it recall searches by words alone."
    )
    embedding_model = models.CharField(
        max_length=100, blank=True, default="", help_text="Whose vectors it compares; empty until it has any."
    )
    next_cycle_held_until = models.DateTimeField(
        null=True, blank=True, help_text="While a replay runs, no other wake-up starts a cycle."
    )
    erasure_key = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="Of the hashes of what was erased; drawn when first needed."
    )

    objects = WorkspacesQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="workspace_has_a_name"),
            models.CheckConstraint(
                condition=Q(daily_cost_cap_usd__isnull=True) | Q(daily_cost_cap_usd__gte=0),
                name="workspace_cost_cap_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def keeps_beliefs(self) -> bool:
        """Tell whether it keeps beliefs, by its own choice and the installation's (B22)."""
        return self.beliefs_enabled and settings.ENGRAM_BELIEFS

    @property
    def is_additive(self) -> bool:
        """Tell whether its gates read the additive confidence (R10a)."""
        return self.confidence_model == ConfidenceModel.ADDITIVE


class Role(models.TextChoices):
    READER = "reader", "reader"
    CURATOR = "curator", "curator"
    OWNER = "owner", "owner"


class Membership(models.Model):
    """A person's place in a workspace; the admin shows only workspaces one belongs to."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.READER)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_per_person"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.workspace}"


class Project(models.Model):
    """A named body of work, with an optional path on disk."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="projects")
    slug = models.SlugField(max_length=100, allow_unicode=True)
    path = models.CharField(max_length=1000, blank=True, default="")
    created_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="one_project_per_slug"),
            models.CheckConstraint(condition=~Q(slug=""), name="project_has_a_slug"),
        ]

    def __str__(self) -> str:
        return self.slug


class Permission(models.TextChoices):
    READ = "read", "read"
    WRITE = "write", "write"
    CURATE = "curate", "curate"
    OWNER = "owner", "owner"


class ApiKey(models.Model):
    """A key of a workspace: only its hash is kept, the key itself is shown once."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True, default="")
    prefix = models.CharField(max_length=12, help_text="The key's first characters, to tell keys apart.")
    hash = models.CharField(max_length=64, unique=True)
    permissions = ArrayField(models.CharField(max_length=8, choices=Permission.choices))
    projects = models.ManyToManyField(
        Project, blank=True, related_name="api_keys", help_text="None: every project of the workspace."
    )
    is_limited = models.BooleanField(
        default=False, help_text="Limited to its projects; stays so when a project is deleted."
    )
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(permissions__contained_by=Permission.values) & Q(permissions__len__gte=1),
                name="api_key_permissions_known",
            ),
            models.CheckConstraint(
                condition=Q(revoked_at__isnull=True) | Q(revoked_at__gte=F("created_at")),
                name="api_key_revoked_after_creation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"


class PauseReason(models.TextChoices):
    FAILURES = "failures", "cycles in a row that got nothing done"
    AUTH = "auth", "a model server refuses the key"
    BILLING = "billing", "a model server wants to be paid"
    CAP = "cap", "a cap of the day is reached"


class PauseQuerySet(WorkspaceQuerySet):
    def in_force(self) -> Self:
        """Keep the pauses that are not over, by the database's clock."""
        return self.filter(until__gt=Now())


class WorkspacePause(models.Model):
    """B9: one row for a workspace that rests, or that has begun again and not got anything done yet."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="pause")
    reason = models.CharField(max_length=8, choices=PauseReason.choices)
    detail = models.CharField(max_length=200, blank=True, default="")
    failures = models.PositiveIntegerField(default=0, help_text="Cycles in a row that got nothing done.")
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField(help_text="By the database's clock; the next cycle starts then.")
    fingerprint = models.CharField(max_length=64, help_text="Of the settings or caps whose change ends the pause.")

    objects = PauseQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(reason__in=PauseReason.values), name="pause_reason_known"),
        ]

    def __str__(self) -> str:
        return f"{self.workspace_id} {self.reason}"


class MaintenanceState(models.Model):
    """Up to where memories are linked, and how many extractions wait for maintenance.

    Numbers are drawn before rows are there for all to see: so the mark follows to a number only some time after it was
    the latest (`next_number`, `next_at` by the database's clock).
    """

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="+")
    linked_number = models.BigIntegerField(default=0, help_text="Every episode up to here is linked, if it ever is.")
    next_number = models.BigIntegerField(default=0)
    next_at = models.DateTimeField(null=True, blank=True)
    extractions = models.PositiveIntegerField(default=0, help_text="Since memory was maintained last.")
    maintained_at = models.DateTimeField(null=True, blank=True, help_text="Domain time.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(linked_number__lte=models.F("next_number")), name="upkeep_mark_follows")
        ]

    def __str__(self) -> str:
        return f"up to {self.linked_number}"


_COUNT_REDACTIONS = """
INSERT INTO memory_redaction (workspace_id, kind, count, last_at)
SELECT %s, kind, count, statement_timestamp() FROM unnest(%s::text[], %s::bigint[]) AS new (kind, count) ORDER BY kind
ON CONFLICT (workspace_id, kind) DO UPDATE SET
    count = memory_redaction.count + excluded.count, last_at = excluded.last_at
"""


class RedactionQuerySet(WorkspaceQuerySet):
    def add(self, *, workspace_id: int, counts: Mapping[str, int]) -> None:
        """Count more of some kinds; any number of processes may do so at once."""
        with connection.cursor() as cursor:
            cursor.execute(_COUNT_REDACTIONS, [workspace_id, list(counts), list(counts.values())])


class Redaction(models.Model):
    """L2: the secrets of one kind that were taken out of a workspace's texts."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=40)
    count = models.PositiveBigIntegerField()
    last_at = models.DateTimeField(help_text="By the database's clock.")

    objects = RedactionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "kind"], name="one_redaction_per_kind")]

    def __str__(self) -> str:
        return f"{self.kind}: {self.count}"


class TextStatistics(models.Model):
    """Of a workspace's active episodes when they were last counted."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="text_statistics"
    )
    documents = models.PositiveIntegerField()
    mean_length = models.FloatField(help_text="Different lexemes of a text, on average.")
    last_number = models.BigIntegerField(help_text="Of the newest episode counted.")
    counted_at = models.DateTimeField(help_text="By the database's clock.")

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.documents} texts of {self.workspace_id}"


class TermFrequency(models.Model):
    """In how many of a workspace's texts a lexeme stands."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    lexeme = models.TextField()
    documents = models.PositiveIntegerField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "lexeme"], name="one_frequency_per_lexeme")]

    def __str__(self) -> str:
        return f"{self.lexeme}: {self.documents}"


class VectorCount(models.Model):
    """How many active vectors of a model a project of a workspace has, as they were counted last."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    kind = models.CharField(max_length=7, choices=choices_of(VectorKind))
    model = models.CharField(max_length=100)
    active = models.PositiveIntegerField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "model", "project"],
                name="one_vector_count_per_project",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.active} {self.kind} vectors of {self.workspace_id}"
