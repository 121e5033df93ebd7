"""Remembrances whose message was lost, or whose wait is over, are sent again: any number may look at once (R1)."""

from django.conf import settings
from django.db import transaction

from memory.consolidation.clock import database_now
from memory.consolidation.pausing import resting_among
from memory.models import Remembrance, Workspace
from memory.signals import remembrance_ready

_AT_ONCE = 100


@transaction.atomic
def wake_remembrances() -> int:
    """Send what is due, each once however many sweep; what rests, or keeps no beliefs, is left. Return how many."""
    waiting = set(Remembrance.objects.due().values_list("workspace_id", flat=True))
    workspaces = list(Workspace.objects.believing().filter(pk__in=waiting))
    awake = {workspace.pk for workspace in workspaces} - resting_among(workspaces=workspaces)
    rows = Remembrance.objects.due().filter(workspace__in=awake).order_by("due_at")
    due = list(
        rows.select_for_update(skip_locked=True, of=("self",), no_key=True).values_list("pk", flat=True)[:_AT_ONCE]
    )
    again_at = database_now(plus=settings.POLICY.remember.resend_seconds)
    Remembrance.objects.filter(pk__in=due).update(due_at=again_at)
    for remembrance_id in due:
        remembrance_ready.send(sender=Remembrance, remembrance_id=remembrance_id)
    return len(due)
