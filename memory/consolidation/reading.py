"""Have a model read what people said, within the cycle's budget, caps and ledger (E1, B9).

The reply is in the ledger before anything comes of it: whoever carries on after a death finds it there. What could not
be read is pending, and never taken for something that asserts nothing.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from django.conf import settings

from memory.claims import plan_claim_requests, reader_of, store_model_claims
from memory.consolidation.asking import SERVER_IS_BUSY
from memory.consolidation.blame import is_to_blame
from memory.consolidation.cycle import TIME_IS_UP, budget_policy, renew_unless_cancelled, seconds_left, spend_budget
from memory.consolidation.settling import UNREAD, fail_unread
from memory.domain.policy import BudgetPolicy
from memory.llm.call_log import CallBudget, CallScope, DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.llm.registry import language_model
from memory.llm.replies import ClaimsReply
from memory.llm.requests import ClaimsRequest
from memory.llm.runner import FATAL_KINDS, FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.models import Cycle
from memory.models.episodes import EpisodeQuerySet
from memory.signals import is_shutting_down


def read_speech(*, cycle: Cycle, attempt: int, episodes: EpisodeQuerySet, began: float) -> None:
    """Read the unread among some leased episodes; `began` is the reading of time.monotonic() when the step did."""
    episodes = episodes.active()
    failed_before = episodes.filter(failures__gt=0, state_reason__startswith=UNREAD)
    requests = plan_claim_requests(
        workspace_id=cycle.workspace_id,
        episodes=episodes,
        now=cycle.now,
        alone=set(failed_before.values_list("pk", flat=True)),
    )
    asks = [ModelRequest(key=str(number), request=request) for number, request in enumerate(requests)]
    if asks:
        _ask(cycle=cycle, attempt=attempt, asks=asks, began=began)


def _ask(*, cycle: Cycle, attempt: int, asks: Sequence[ModelRequest], began: float) -> None:
    """Answer all asks, storing what each tells; whatever stops that is in the cycle's row by then."""
    of_cycle = seconds_left(cycle_id=cycle.pk)
    of_step = _seconds_of_step(began)
    try:
        failures = run_requests(
            asks=asks,
            scope=CallScope(workspace_id=cycle.workspace_id, cycle_id=cycle.pk),
            budget=CallBudget.of_step(seconds=min(of_cycle, of_step), policy=_policy(asks)),
            model=language_model(),
            store=partial(_store, cycle=cycle),
            fence=lambda: renew_unless_cancelled(cycle_id=cycle.pk, attempt=attempt),
        )
    except RetryLater:
        spend_budget(cycle_id=cycle.pk, reason=SERVER_IS_BUSY)
    except DailyCapReached as spent:
        spend_budget(cycle_id=cycle.pk, reason=str(spent))
    except OutOfBudget:
        if of_cycle <= of_step and not is_shutting_down():
            spend_budget(cycle_id=cycle.pk, reason=TIME_IS_UP)
    except LeaseLost:
        return
    else:
        _set_aside(cycle, failures)


def _seconds_of_step(began: float) -> float:
    """Return the seconds that the step has left, so that its last call ends before its message comes again (B9)."""
    policy = budget_policy()
    return policy.last_call_seconds + policy.call_seconds - (time.monotonic() - began)


def _policy(asks: Sequence[ModelRequest]) -> BudgetPolicy:
    """Return the budget of calls that read: longer ones, and attempts enough to corner a bad text in each batch."""
    policy = budget_policy()
    seconds = max(policy.call_seconds, settings.POLICY.reading.seconds)
    return replace(policy, call_seconds=seconds, call_attempts=policy.call_attempts * len(asks))


def _store(answers: Sequence[ModelAnswer], *, cycle: Cycle) -> None:
    reader = reader_of(model_for=language_model().model_for)
    for answer in answers:
        if not isinstance(answer.request, ClaimsRequest) or not isinstance(answer.reply, ClaimsReply):
            raise TypeError(f"Claims were asked for, and {type(answer.reply).__name__} came.")
        store_model_claims(request=answer.request, reply=answer.reply, reader=reader, now=cycle.now)


def _set_aside(cycle: Cycle, failures: Sequence[FailedRequest]) -> None:
    """Mark what no model could read; one that failed alone is to blame for it, a refused key ends the cycle's calls."""
    for failure in failures:
        if failure.kind in FATAL_KINDS:
            spend_budget(cycle_id=cycle.pk, reason=f"{UNREAD}{failure.kind}")
        ids = [message.id for message in failure.request.read] if isinstance(failure.request, ClaimsRequest) else []
        is_blamed = len(ids) == 1 and is_to_blame(cycle_id=cycle.pk, kind=failure.kind)
        fail_unread(cycle=cycle, ids=ids, kind=failure.kind, is_blamed=is_blamed)
