"""What was erased, as keyed hashes: enough to refuse the same words, and nothing that could be read (L4)."""

from django.db import models

from memory.models.tenancy import Workspace, WorkspaceQuerySet


class Erased(models.Model):
    """Words that do not come back: of an episode, or of a belief."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, help_text="Under the workspace's own key.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "erased"
        constraints = [models.UniqueConstraint(fields=["workspace", "digest"], name="erased_once")]

    def __str__(self) -> str:
        return self.digest[:12]
