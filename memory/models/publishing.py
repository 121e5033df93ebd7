"""The MEMORY.md files that a workspace publishes into, what stands in them, and what is to be published again."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.beliefs import Belief
from memory.models.cycles import Cycle
from memory.models.episodes import Episode
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet


class MemoryFile(models.Model):
    """P2: a file that takes a project's beliefs, or those of no project; one user's and those of no user."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memory_files")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, blank=True, related_name="memory_files")
    user = models.CharField(max_length=200, blank=True, default="", help_text="Empty: beliefs of no user alone.")
    path = models.CharField(max_length=1000, unique=True, help_text="A path belongs to one workspace.")
    created_at = models.DateTimeField()
    published_at = models.DateTimeField(null=True, blank=True, help_text="When it was looked through last.")
    problem = models.CharField(max_length=300, blank=True, default="", help_text="Why it could not be written then.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "project", "user"], name="one_memory_file_per_scope", nulls_distinct=False
            ),
            models.CheckConstraint(condition=~Q(path=""), name="memory_file_has_a_path"),
        ]

    def __str__(self) -> str:
        return self.path


class PublishedBelief(models.Model):
    """P4: a belief that stands in a file, or stood there and is shown as a former one."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    file = models.ForeignKey(MemoryFile, on_delete=models.CASCADE, related_name="beliefs")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="publications")
    confidence = models.FloatField(help_text="That was published last, while it was trusted.")
    promoted_at = models.DateTimeField()
    demoted_at = models.DateTimeField(null=True, blank=True)
    was_former_in_cycle = models.BooleanField(default=False, help_text="A cycle has published it as a former one.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["file", "belief"], name="published_once_in_a_file")]

    def __str__(self) -> str:
        return f"{self.belief_id} in {self.file_id}"


class GraduatedEpisode(models.Model):
    """P8: an episode that is kept in a file, or in the archive beside it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    file = models.ForeignKey(MemoryFile, on_delete=models.CASCADE, related_name="graduates")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="graduations")
    graduated_at = models.DateTimeField()
    archived_at = models.DateTimeField(null=True, blank=True, help_text="When the file had no more room for it.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["file", "episode"], name="graduated_once_into_a_file")]
        triggers = [
            pgtrigger.Trigger(
                name="publication_due",
                level=pgtrigger.Row,
                when=pgtrigger.After,
                operation=pgtrigger.Delete,
                func="INSERT INTO memory_publicationdue (workspace_id) VALUES (OLD.workspace_id); RETURN NULL;",
            )
        ]

    def __str__(self) -> str:
        return f"{self.episode_id} in {self.file_id}"


class PublicationStep(models.Model):
    """P4: a step of a belief into a file, to its former ones, or out of it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    path = models.CharField(max_length=1000)
    step = models.CharField(max_length=8)
    confidence = models.FloatField()
    cycle = models.ForeignKey(Cycle, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="publication_newest")]

    def __str__(self) -> str:
        return f"{self.step} {self.belief_id}"


class PublicationDue(models.Model):
    """P11: a workspace whose files may be out of date; triggers write it with whatever changes what they tell."""

    # No constraint: a workspace that goes with its beliefs leaves rows, which whoever publishes next takes away.
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    due_at = models.DateTimeField(db_default=Now(), help_text="By the database's clock.")

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.workspace_id} from {self.due_at}"
