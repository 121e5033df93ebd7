"""What recall showed to a conversation, so that its own words are not taken for another's."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from memory.models.beliefs import Belief
from memory.models.episodes import Episode
from memory.models.tenancy import Workspace, WorkspaceQuerySet


class Surfaced(models.Model):
    """Echo: a memory that was shown to a session, and when it was first."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    session = models.CharField(max_length=200)
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, null=True, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, null=True, related_name="+")
    surfaced_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "surfaced"
        constraints = [
            models.CheckConstraint(
                condition=Q(belief__isnull=True) ^ Q(episode__isnull=True), name="surfaced_one_memory"
            ),
            models.CheckConstraint(condition=~Q(session=""), name="surfaced_to_a_session"),
            models.UniqueConstraint(fields=["workspace", "session", "belief"], name="belief_surfaced_once"),
            models.UniqueConstraint(fields=["workspace", "session", "episode"], name="episode_surfaced_once"),
        ]

    def __str__(self) -> str:
        return f"{self.belief_id or self.episode_id} in {self.session}"
