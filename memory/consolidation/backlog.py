"""More than one cycle takes up: the next one opens by itself, until nothing waits or nothing moves (B7).

A cycle says in its row, as it is closed, whether the next is to follow it. Whoever closed it opens that one; the
sweeper opens what nobody did, because somebody held the workspace or the process died.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import F, IntegerField, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Now

from memory.consolidation.cycle import open_cycle_unasked
from memory.consolidation.idle import moved_on
from memory.consolidation.pausing import find_pause, resting_among
from memory.domain.lifecycle import CycleState, JobState
from memory.models import ClusterJob, Cycle, CycleStep, Episode, Trigger, Workspace

log = structlog.get_logger(__name__)

_GIVES_UP = (CycleState.CANCELLED, CycleState.FAILED)


def count_waiting(*, workspace_id: int) -> int:
    """Count the episodes that wait for consolidation or are in it."""
    waiting: int = Episode.objects.for_workspace(workspace_id).pending().count()
    return waiting


def count_done(*, cycle: Cycle) -> int:
    """Count the episodes that waited when a cycle took up its own, and wait no longer; called as it is closed."""
    extracted = CycleStep.objects.filter(cycle=cycle, name="extract").first()
    if extracted is None:
        return 0
    pending = Episode.objects.for_workspace(cycle.workspace_id).pending()
    still_waiting: int = pending.filter(created_at__lte=extracted.started_at).count()
    done: int = max(extracted.counts.get("waiting", 0) - still_waiting, 0)
    return done


def leaves_backlog(*, cycle: Cycle, state: CycleState, done: int) -> bool:
    """Tell whether the next cycle is to follow at once; called as a cycle is closed, its rest written down.

    One that got nothing out of the way is followed by none: whatever stopped it would stop the next one, too.
    """
    if state in _GIVES_UP or find_pause(workspace=cycle.workspace) is not None:
        return False
    put_off = ClusterJob.objects.filter(cycle=cycle, state=JobState.DEFERRED)  # of episodes in the pool, perhaps
    waits = Episode.objects.for_workspace(cycle.workspace_id).pending()
    return (waits.exists() or put_off.exists()) and (done > 0 or moved_on(cycle=cycle))


def open_next_cycle(*, cycle_id: str, now: datetime) -> list[str]:
    """Open the cycle that is to follow one that has just been closed, if any is."""
    return _open_following(_to_be_followed().filter(pk=cycle_id), now=now)


def open_backlog_cycles(*, now: datetime) -> list[str]:
    """Open whatever cycle is to follow another and was not opened when that one ended."""
    return _open_following(_to_be_followed(), now=now)


def _to_be_followed() -> QuerySet[Cycle]:
    """Select the cycles that the next is to follow, in workspaces that may have one."""
    free = Cycle.objects.filter(has_backlog=True, workspace__in=Workspace.objects.believing())
    return free.exclude(workspace__next_cycle_held_until__gt=Now()).select_related("workspace")


def _open_following(cycles: QuerySet[Cycle], *, now: datetime) -> list[str]:
    workspaces = [cycle.workspace for cycle in cycles]
    resting = resting_among(workspaces=workspaces) if workspaces else set()
    opened = []
    for workspace in workspaces:
        if workspace.pk in resting:
            continue
        cycle = open_cycle_unasked(workspace_id=workspace.pk, now=now, trigger=Trigger.BACKLOG)
        opened += [cycle.pk] if cycle else []
    if opened:
        log.info("backlog_cycles_opened", cycles=opened)
    return opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits for cycles, how fast the last ones took it away, and when that comes to an end at this pace."""

    waiting: int
    per_minute: float | None  # of the cycles that ended lately, while they ran; None where none got anything done
    done_at: datetime | None  # None where nothing waits, no cycle is at it, or no pace is known


def read_backlog(*, workspace_id: int, now: datetime) -> Backlog:
    """Measure the backlog by the rows of episodes and of the cycles that ended lately."""
    waiting = count_waiting(workspace_id=workspace_id)
    per_minute = _pace(workspace_id)
    at_it = Cycle.objects.for_workspace(workspace_id)
    is_drained = waiting and per_minute and (at_it.open() | at_it.filter(has_backlog=True)).exists()
    done_at = now + timedelta(minutes=waiting / per_minute) if is_drained and per_minute else None
    return Backlog(waiting=waiting, per_minute=per_minute, done_at=done_at)


def describe_backlog(backlog: Backlog) -> str:
    """Say in one line how the backlog stands."""
    said = [f"{backlog.waiting:,} wait" if backlog.waiting else "nothing waits"]
    if backlog.per_minute:
        said.append(f"{backlog.per_minute:,.1f} a minute lately")
    if backlog.done_at:
        said.append(f"done about {backlog.done_at:%Y-%m-%d %H:%M} UTC")
    return ", ".join(said)


def _pace(workspace_id: int) -> float | None:
    """Return how many episodes a minute of cycles took away lately."""
    since = Now() - timedelta(minutes=settings.POLICY.consolidation.pace_minutes)
    lately = Cycle.objects.for_workspace(workspace_id).filter(finished_at__gt=since, counts__has_key="done")
    sums = lately.aggregate(
        done=Sum(Cast(KT("counts__done"), IntegerField())), spent=Sum(F("finished_at") - F("opened_at"))
    )
    if not sums["done"] or not sums["spent"]:
        return None
    return round(float(sums["done"] / (sums["spent"] / timedelta(minutes=1))), 1)
