"""Who may see what: workspaces, their members, projects and keys."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q


class WorkspaceQuerySet(models.QuerySet[Any]):
    """Rows that belong to a workspace; every query of theirs begins with `for_workspace`."""

    def for_workspace(self, workspace: Workspace | int) -> Self:
        """Keep the rows of one workspace."""
        return self.filter(workspace=workspace)


class WorkspaceRows(models.QuerySet["Workspace"]):
    def believing(self) -> Self:
        """B22: keep those that keep beliefs, by their own choice and the installation's."""
        return self.filter(is_believing=True) if settings.ENGRAM_BELIEFS else self.none()


class ConfidenceModel(models.TextChoices):
    BETA = "beta", "Beta-Bernoulli"
    ADDITIVE = "additive", "additive"


class Workspace(models.Model):
    """A tenant: nothing crosses from one to another."""

    name = models.CharField(max_length=100, unique=True)
    created_at = models.DateTimeField()
    is_believing = models.BooleanField(default=True, help_text="Off: recall answers with episodes only.")
    confidence_model = models.CharField(max_length=8, choices=ConfidenceModel.choices, default=ConfidenceModel.BETA)
    counts_origins = models.BooleanField(
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

    objects = WorkspaceRows.as_manager()

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
        return self.is_believing and settings.ENGRAM_BELIEFS

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
