"""Leases on remembrances: one worker at a time, renewed while it works; who dies lets go by dying (R1)."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.conf import settings
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from memory.consolidation.clock import database_now
from memory.consolidation.cycle import budget_policy
from memory.consolidation.leases import kept_alive
from memory.domain.time_limits import CALL_SECONDS
from memory.models import Remembrance, RemembranceState

log = structlog.get_logger(__name__)

CLAIMED_TOO_OFTEN = "claimed too often"
TOO_SLOW = "the model is too slow"
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The right to work on one remembrance as it was when it was claimed."""

    remembrance: Remembrance
    owner: str

    @property
    def mine(self) -> QuerySet[Remembrance]:
        """Select the remembrance while it is this holder's and waits."""
        rows: QuerySet[Remembrance] = Remembrance.objects.queued().filter(
            pk=self.remembrance.pk, lease_owner=self.owner
        )
        return rows

    def renew(self) -> bool:
        """Show a sign of life; false once somebody else has it."""
        return self.mine.update(leased_until=database_now(plus=budget_policy().lease_seconds)) == 1

    def postpone(self, *, seconds: float, reason: str, is_failure: bool = False) -> None:
        """Let it wait for the sweeper; a try that failed counts."""
        failures = F("failures") + int(is_failure)
        self.mine.update(due_at=database_now(plus=seconds), state_reason=reason[:200], failures=failures)
        log.info("remembrance_waits", remembrance=self.remembrance.pk, reason=reason, seconds=round(seconds))

    def put_off_slow(self, *, may_end: bool) -> None:
        """Let it wait for a model that was too slow, each time longer; after so many tries it is left to consolidation.

        The reason tells how many there were: a person who reads it knows which setting to raise.
        """
        tries, most = self.remembrance.failures + 1, settings.POLICY.remember.slow_tries
        seconds = budget_policy().call_seconds
        reason = f"{TOO_SLOW}: no answer within {seconds:g} s ({CALL_SECONDS}), try {tries} of {most}"
        self.postpone(seconds=self.next_pause(), reason=reason, is_failure=True)
        if may_end and tries >= most:
            give_up(remembrance=self.remembrance, reason=reason)

    def next_pause(self) -> float:
        """Return the seconds to wait after one more failure in a row: twice as many each time (B9)."""
        policy = budget_policy()
        doubled: timedelta = timedelta(minutes=policy.cooldown_minutes) * 2 ** min(
            self.remembrance.failures, _MOST_DOUBLINGS
        )
        pause: float = min(doubled, timedelta(hours=policy.cooldown_hours)).total_seconds()
        return pause


@contextmanager
def held(*, remembrance_id: int) -> Iterator[Hold | None]:
    """Hold a remembrance that waits and is free, else None; one that cost too many workers is left to consolidation.

    A claim stays counted only where the work was its holder's end: a death, or an error.
    """
    hold = _claim(remembrance_id)
    if hold is None:
        yield None
        return
    given_back = {"lease_owner": "", "leased_until": None}
    kept = Remembrance.objects.filter(pk=remembrance_id, lease_owner=hold.owner)
    try:
        with kept_alive(hold.renew):
            yield hold
    except Exception:
        kept.update(**given_back, due_at=database_now(plus=hold.next_pause()))
        raise
    kept.update(**given_back, claims=F("claims") - 1)


def _claim(remembrance_id: int) -> Hold | None:
    owner, policy = uuid.uuid4().hex, budget_policy()
    free = Remembrance.objects.queued().free().filter(pk=remembrance_id)
    until = database_now(plus=policy.lease_seconds)
    again_at = database_now(plus=settings.POLICY.remember.resend_seconds)
    if not free.update(lease_owner=owner, leased_until=until, due_at=again_at, claims=F("claims") + 1):
        return None
    remembrance = Remembrance.objects.select_related("workspace", "episode").get(pk=remembrance_id)
    if remembrance.claims > policy.job_claims:
        give_up(remembrance=remembrance, reason=CLAIMED_TOO_OFTEN)
        return None
    return Hold(remembrance=remembrance, owner=owner)


def give_up(*, remembrance: Remembrance, reason: str) -> None:
    """Leave a remembrance's episode to consolidation, which takes it up as any other.

    Beliefs of it that wait for a vector would be compared by nobody else: such a one rests as long as any failure does,
    and is then tried anew.
    """
    waiting = Remembrance.objects.queued().filter(pk=remembrance.pk)
    let_go = {"state_reason": reason, "lease_owner": "", "leased_until": None}
    if remembrance.facts.filter(is_unmatched=True).exists():
        rest = timedelta(hours=budget_policy().cooldown_hours).total_seconds()
        waiting.update(**let_go, claims=0, due_at=database_now(plus=rest))
    else:
        waiting.update(**let_go, state=RemembranceState.FAILED, due_at=Now())
    log.warning("remembrance_failed", remembrance=remembrance.pk, episode=remembrance.episode_id, reason=reason)
