"""Which workspaces the schedule starts a cycle for (B7)."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from memory.consolidation.cycle import open_cycle
from memory.domain.lifecycle import BeliefStatus
from memory.models import Belief, Cycle, Episode, Trigger, Workspace


def open_due_cycles(*, now: datetime) -> list[str]:
    """Open a cycle wherever new episodes wait, and at least daily where time alone may archive a belief."""
    pending = Episode.objects.pending().filter(workspace=OuterRef("pk"))
    aging = Belief.objects.filter(status=BeliefStatus.ACTIVE, is_pinned=False)
    due = aging.filter(workspace=OuterRef("pk"), archive_due_at__lte=now)
    since = now - timedelta(hours=settings.POLICY.consolidation.archive_check_hours)
    recent = Cycle.objects.filter(workspace=OuterRef("pk"), now__gte=since)
    free = Workspace.objects.filter(is_believing=True).exclude(next_cycle_held_until__gt=Now())
    wanted = free.filter(Q(Exists(pending)) | Q(Exists(due)) & ~Q(Exists(recent)))
    opened = []
    for workspace_id in wanted.values_list("pk", flat=True):
        cycle, is_new = open_cycle(workspace_id=workspace_id, now=now, trigger=Trigger.SCHEDULE)
        opened += [cycle.pk] if is_new else []
    return opened
