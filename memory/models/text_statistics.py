"""How common words are in a workspace: what the text arm of recall weighs them by."""

from django.db import models

from memory.models.tenancy import Workspace, WorkspaceQuerySet


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
