"""How many secrets were taken out of a workspace's texts; what they were stands nowhere."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import connection, models

from memory.models.tenancy import Workspace, WorkspaceQuerySet

_ADD = """
INSERT INTO memory_redaction (workspace_id, kind, count, last_at)
SELECT %s, kind, count, statement_timestamp() FROM unnest(%s::text[], %s::bigint[]) AS new (kind, count) ORDER BY kind
ON CONFLICT (workspace_id, kind) DO UPDATE SET
    count = memory_redaction.count + excluded.count, last_at = excluded.last_at
"""


class RedactionQuerySet(WorkspaceQuerySet):
    def add(self, *, workspace_id: int, counts: Mapping[str, int]) -> None:
        """Count more of some kinds; any number of processes may do so at once."""
        with connection.cursor() as cursor:
            cursor.execute(_ADD, [workspace_id, list(counts), list(counts.values())])


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
