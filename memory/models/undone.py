"""What undoing a cycle took away: read by nothing but what tells how things stood before that (R10, B22)."""

from __future__ import annotations

from django.db import models

from memory.models.beliefs import EVIDENCE_VERDICTS, Basis, Belief, EvidenceKind, LineageKind
from memory.models.episodes import Episode
from memory.models.tenancy import Workspace, WorkspaceQuerySet


class UndoneEvidence(models.Model):
    """A row of evidence that counted from `created_at` until `undone_at`, both domain time."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=11, choices=[(v, v.lower()) for v in EVIDENCE_VERDICTS])
    kind = models.CharField(max_length=9, choices=EvidenceKind.choices)
    base_weight = models.FloatField()
    basis = models.CharField(max_length=6, choices=Basis.choices)
    reason = models.TextField(blank=True, default="")
    cycle = models.ForeignKey("memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    valid_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    undone_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.episode_id} {self.verdict} {self.belief_id}, undone"


class UndoneLineage(models.Model):
    """A row of lineage that stood from `created_at` until `undone_at`, both domain time."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    parent = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    child = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=LineageKind.choices)
    reason = models.TextField(blank=True, default="")
    cycle = models.ForeignKey("memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()
    undone_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.parent_id} → {self.child_id}, undone"
