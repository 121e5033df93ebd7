"""Texts that cost too many workers are left to consolidation, and a person may have them tried again (R1)."""

from django.db.models import QuerySet
from django.db.models.functions import Now

from memory.models import Remembrance, RemembranceState


def list_failed(*, workspace_id: int) -> QuerySet[Remembrance]:
    """Return a workspace's remembrances that failed, the latest first; `due_at` says when."""
    return Remembrance.objects.for_workspace(workspace_id).failed().order_by("-due_at", "pk")


def retry_failed(*, remembrances: QuerySet[Remembrance]) -> int:
    """Let the failed among some remembrances wait for a worker as if they had never failed; return how many."""
    failed = Remembrance.objects.failed().filter(pk__in=remembrances.order_by().values("pk"))
    return failed.update(state=RemembranceState.QUEUED, state_reason="", claims=0, failures=0, due_at=Now())
