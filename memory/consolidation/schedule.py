"""Which workspaces the schedule starts a cycle for (B7)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import BooleanField, DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Now

from memory.consolidation.claims import announced_claims
from memory.consolidation.cycle import note_new_episodes, open_cycle_unasked
from memory.consolidation.pausing import is_outdated, resting_among
from memory.domain.lifecycle import LIVE, WORKSPACE_ERRORS, ConsolidationState
from memory.models import Belief, Cycle, Episode, Pause, StructuralJob, Trigger, Workspace

log = structlog.get_logger(__name__)

_BEFORE_ALL = datetime(1, 1, 1, tzinfo=UTC)


def open_due_cycles(*, now: datetime) -> list[str]:
    """Open a cycle wherever something waits, and daily where time alone may archive.

    Episodes wait, changes of structure, beliefs whose evidence no gates have seen (C3) or that hold until now, and what
    was announced for a day that has come (C1).

    However few episodes wait: this is the valve of those that never become twenty. Workspaces that rest are left to it.
    """
    pending = Episode.objects.pending().filter(workspace=OuterRef("pk"))
    aging = Belief.objects.filter(status__in=LIVE, is_pinned=False)
    due = aging.filter(workspace=OuterRef("pk"), archive_due_at__lte=now)
    since = now - timedelta(hours=settings.POLICY.consolidation.archive_check_hours)
    recent = Cycle.objects.filter(workspace=OuterRef("pk"), now__gte=since)
    free = Workspace.objects.believing().exclude(next_cycle_held_until__gt=Now())
    unfinished = StructuralJob.objects.carried_over().filter(workspace=OuterRef("pk"))
    unseen = Belief.objects.filter(workspace=OuterRef("pk"), is_due=True)
    unseen = unseen.exclude(lineage_depth__gt=0, updated_at=F("created_at"))  # newly made of others: for any next cycle
    ended = Belief.objects.filter(workspace=OuterRef("pk"), status__in=LIVE, is_pinned=False, valid_until__lte=now)
    announced = announced_claims(workspace_id=OuterRef("pk"), now=now)
    wanted = free.filter(
        Q(Exists(pending))
        | Q(Exists(unfinished))
        | Q(Exists(unseen))
        | Q(Exists(ended))
        | Q(Exists(announced))
        | Q(Exists(due)) & ~Q(Exists(recent))
    )
    workspaces = list(wanted)
    resting = resting_among(workspaces=workspaces)
    return _open_all([workspace.pk for workspace in workspaces if workspace.pk not in resting], now=now)


def open_overdue_cycles(*, now: datetime) -> list[str]:
    """Open a cycle where episodes wait and the schedule has let its time pass, as while nothing ran.

    For a service that starts: the schedule counts from then, and the first cycle would be hours away.
    """
    hours = timedelta(hours=settings.POLICY.consolidation.every_hours)
    pending = Episode.objects.pending().filter(workspace=OuterRef("pk"))
    lately = Cycle.objects.filter(workspace=OuterRef("pk"), opened_at__gt=Now() - hours)
    free = Workspace.objects.believing().exclude(next_cycle_held_until__gt=Now())
    overdue = list(free.filter(Exists(pending), ~Exists(lately)))
    resting = resting_among(workspaces=overdue)
    return _open_all([workspace.pk for workspace in overdue if workspace.pk not in resting], now=now)


def open_rested_cycles(*, now: datetime) -> list[str]:
    """Open a cycle where a workspace has rested, or need not any longer, and something waits (B9).

    Whatever comes of the cycle ends the pause or moves it on, so that none is tried twice.
    """
    pauses = Pause.objects.select_related("workspace").filter(workspace__in=Workspace.objects.believing())
    pauses = pauses.exclude(workspace__next_cycle_held_until__gt=Now())
    pauses = pauses.annotate(is_over=ExpressionWrapper(Q(until__lte=Now()), output_field=BooleanField()))
    pending = Episode.objects.pending().filter(workspace=OuterRef("workspace"))
    unfinished = StructuralJob.objects.carried_over().filter(workspace=OuterRef("workspace"))
    pauses = pauses.filter(Exists(pending) | Exists(unfinished))
    rested = [p.workspace_id for p in pauses if p.is_over or is_outdated(pause=p, workspace=p.workspace)]
    return _open_all(rested, now=now)


def open_missed_cycles(*, now: datetime) -> list[str]:
    """Open a cycle where enough new episodes wait, some of them stored since the last one ended.

    Storing them should have opened it, but somebody held the workspace, or the process died. What a cycle itself left
    behind or gave back is no reason: a cancelled one would begin anew at once.
    """
    last = Cycle.objects.filter(workspace=OuterRef("pk")).order_by("-opened_at").values("finished_at")[:1]
    new = Episode.objects.pending().filter(workspace=OuterRef("pk"), state=ConsolidationState.NEW).values("created_at")
    enough = settings.POLICY.consolidation.trigger_episodes
    # Whether there is a twentieth, not how many there are: a backlog may be of millions, and this is asked every 10 s.
    workspaces = Workspace.objects.annotate(
        ended_at=Coalesce(Subquery(last), Value(_BEFORE_ALL), output_field=DateTimeField()),
        newest_at=Subquery(new.order_by("-created_at")[:1]),
        twentieth_at=Subquery(new.order_by("created_at")[enough - 1 : enough]),
    )
    missed = workspaces.filter(newest_at__gt=F("ended_at"), twentieth_at__isnull=False)
    opened = (note_new_episodes(workspace_id=key, now=now) for key in list(missed.values_list("pk", flat=True)))
    return [cycle.pk for cycle in opened if cycle]


def _open_all(workspaces: Sequence[int], *, now: datetime) -> list[str]:
    opened = []
    for workspace_id in workspaces:
        try:
            cycle = open_cycle_unasked(workspace_id=workspace_id, now=now, trigger=Trigger.SCHEDULE)
        except WORKSPACE_ERRORS:  # those that come after it have theirs opened all the same
            log.exception("cycle_not_opened", workspace=workspace_id)
            continue
        opened += [cycle.pk] if cycle else []
    return opened
