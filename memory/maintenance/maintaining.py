"""Maintain a workspace's memory, step by step, within a time (L8)."""

import time
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from memory.domain.lifecycle import WORKSPACE_ERRORS
from memory.domain.policy import Policy
from memory.llm.registry import CallFailed
from memory.maintenance.due import count_waiting, find_due, note_maintained
from memory.maintenance.steps import STEPS, Visit

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """What a step did: how many rows it changed; None where there was no time left for it."""

    step: str
    changed: int | None
    seconds: float


def maintain(*, workspace_id: int, now: datetime, policy: Policy | None = None) -> list[StepDone]:
    """Do every step for a workspace, as far as time allows; what is left is done next time."""
    policy = policy or settings.POLICY
    waiting, ends_at = count_waiting(workspace_id=workspace_id), time.monotonic() + policy.maintenance.seconds
    visit = Visit(workspace_id=workspace_id, now=now, ends_at=ends_at, policy=policy)
    done = [_do(name, visit) for name in STEPS]
    note_maintained(workspace_id=workspace_id, waiting=waiting, now=now)
    log.info("memory_maintained", workspace=workspace_id, **{one.step: one.changed for one in done})
    return done


def maintain_due(*, now: datetime, policy: Policy) -> int:
    """Maintain every workspace that is due; return how many were."""
    return sum(_try_to_maintain(workspace_id, now, policy) for workspace_id in find_due(now=now, policy=policy))


def _try_to_maintain(workspace_id: int, now: datetime, policy: Policy) -> bool:
    """Maintain, or log why not: those that come after it are maintained all the same."""
    try:
        maintain(workspace_id=workspace_id, now=now, policy=policy)
    except (DatabaseError, CallFailed, *WORKSPACE_ERRORS) as error:
        if not connection.is_usable():
            raise
        log.warning(
            "memory_not_maintained",
            workspace=workspace_id,
            error=str(error),
            exc_info=not isinstance(error, DatabaseError),
        )
        return False
    return True


def _do(name: str, visit: Visit) -> StepDone:
    began = time.monotonic()
    changed = STEPS[name](visit) if began < visit.ends_at else None
    return StepDone(step=name, changed=changed, seconds=round(time.monotonic() - began, 3))
