"""Conversations are summed up once they are read (R8), and it is remembered which turns tell what.

Facts do not wait for it: their turns are settled by then. A row says up to which turn a conversation is summed up and
when somebody is to go on, so that a stretch whose worker died, or whose call failed, is come back to.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import ExpressionWrapper
from django.db.models.functions import Now

from memory.consolidation.clock import database_now
from memory.consolidation.cycle import budget_policy
from memory.domain.actor import READING
from memory.domain.conversation import Role, SaidTurn, Talk
from memory.domain.summaries import is_summary_due
from memory.ending import is_ending
from memory.ingest.arrival import Arrival
from memory.ingest.facts import extraction_budget
from memory.ingest.summaries import summarize_conversation
from memory.llm.budget import CallBudget, DailyCapReached, LeaseLost, MustWait, OutOfBudget
from memory.llm.model import CallFailed, FailureKind
from memory.models import Conversation, Turn, TurnEpisode
from memory.models.fields import insert_new

log = structlog.get_logger(__name__)

_UNREADABLE = (
    FailureKind.MALFORMED,
    FailureKind.BAD_REQUEST,
    FailureKind.OWN_ERROR,
)  # asked again, it would fail again


def sum_up(*, conversation_id: int, now: datetime) -> None:
    """Sum up the stretches of a conversation that are read and were not; what fails is tried again later."""
    mine = Conversation.objects.filter(pk=conversation_id)
    alone = settings.POLICY.extraction.seconds + settings.POLICY.turns.resend_seconds
    if not mine.filter(sum_due_at__lte=Now()).update(sum_due_at=database_now(plus=alone)):
        return
    budget = extraction_budget()
    try:
        while end := _next_end(conversation_id, now):
            _sum_up_to(mine.select_related("workspace", "project").get(), end, budget, now)
            mine.update(summed_up=end, sum_tries=0)
    except MustWait as wait:
        mine.update(sum_due_at=database_now(plus=wait.seconds))
    except DailyCapReached:
        mine.update(sum_due_at=database_now(plus=settings.POLICY.turns.cap_minutes * 60))
    except (CallFailed, OutOfBudget, LeaseLost) as failure:
        log.warning("not_summed_up", conversation=conversation_id, reason=str(failure))
        _put_off(conversation_id, is_blamed=not (is_ending() or isinstance(failure, LeaseLost)))


def when_quiet() -> ExpressionWrapper[Any]:
    """Return when a conversation to which nothing comes any more is looked at again, by the database's clock."""
    return database_now(plus=_quiet().total_seconds())


def _quiet() -> timedelta:
    return timedelta(minutes=settings.POLICY.turns.age_minutes)


@transaction.atomic
def _next_end(conversation_id: int, now: datetime) -> int | None:
    """Return the last turn of the next stretch that can be summed up; where there is none, note when to look again.

    A stretch is a full one, or what is left at the end of a conversation that has been quiet for a while.
    """
    held = Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).first()
    if held is None:
        return None
    policy = settings.POLICY.extraction
    later = range(held.summed_up + 1, held.turn_count + 1)
    waiting = Turn.objects.waiting().filter(conversation=held)
    end = next((number for number in later if is_summary_due(turns=number, policy=policy)), None)
    if end is None and held.turn_count >= policy.summary_least and later and not waiting.exists():
        if held.last_turn_at <= now - _quiet():
            return int(held.turn_count)
        Conversation.objects.filter(pk=conversation_id).update(sum_due_at=when_quiet())
        return None
    if end is None or waiting.filter(number=end).exists():
        Conversation.objects.filter(pk=conversation_id).update(sum_due_at=None)
        return None
    return end


def _sum_up_to(conversation: Conversation, end: int, budget: CallBudget, now: datetime) -> None:
    """Sum up the stretch that ends with a turn; one that no answer can be had for is left so."""
    policy = settings.POLICY.extraction
    numbers = range(max(conversation.summed_up, end - policy.summary_turns) + 1, end + 1)
    seen = range(numbers.start - policy.summary_beside, end + policy.summary_beside + 1)
    turns = Turn.objects.filter(conversation=conversation, number__gte=seen.start, number__lt=seen.stop)
    shown = list(turns.order_by("number"))
    told = _tellable(shown)
    try:
        summarize_conversation(
            turns=[as_said(turn) if turn.pk in told else replace(as_said(turn), text="") for turn in shown],
            numbers=numbers,
            talk=talk_of(conversation),
            arrival=Arrival(workspace=conversation.workspace, now=now, actor=READING),
            budget=budget,
            fence=lambda: _stands(conversation.pk, told),
            conversation_id=conversation.pk,
            on_stored=lambda episode_id: link_turns(pairs=[(turn, episode_id) for turn in shown if turn.pk in told]),
        )
    except CallFailed as failure:
        if failure.kind not in _UNREADABLE:
            raise
        log.warning("not_summed_up", conversation=conversation.pk, turn=end, reason=str(failure))
        return


def _tellable(stretch: Iterable[Turn]) -> set[int]:
    """Return which of some turns may be told: not those out of which something was read that was forgotten (B19)."""
    rows = Turn.objects.tellable().filter(pk__in=[turn.pk for turn in stretch])
    return set(rows.values_list("pk", flat=True))


@transaction.atomic
def _stands(conversation_id: int, told: set[int]) -> bool:
    """Tell whether turns may still be told, none being erased or forgotten; a transaction keeps it so."""
    Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).exists()
    return Turn.objects.tellable().filter(pk__in=told).count() == len(told)


@transaction.atomic
def _put_off(conversation_id: int, *, is_blamed: bool) -> None:
    """Have a stretch wait longer with each failure; after too many the next one is taken."""
    held = Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).first()
    if held is None:
        return
    policy, tries = budget_policy(), held.sum_tries + is_blamed
    if tries >= policy.job_claims:
        stretch = settings.POLICY.extraction.summary_turns
        held.summed_up, tries = (held.summed_up // stretch + 1) * stretch, 0
    seconds = policy.cooldown_minutes * 60 * 2**tries if is_blamed else 0.0
    Conversation.objects.filter(pk=conversation_id).update(
        summed_up=held.summed_up, sum_tries=tries, sum_due_at=database_now(plus=seconds)
    )


def link_turns(*, pairs: Iterable[tuple[Turn, str]], is_verbatim: bool = False) -> None:
    """Remember that episodes tell of turns, or are these in their own words; what is known already stays as it is."""
    rows = [
        {"workspace_id": turn.workspace_id, "turn_id": turn.pk, "episode_id": key, "is_verbatim": is_verbatim}
        for turn, key in {(turn.pk, key): (turn, key) for turn, key in pairs}.values()
    ]
    insert_new(model=TurnEpisode, rows=rows)


def talk_of(conversation: Conversation) -> Talk:
    """Return whose conversation it is."""
    project = conversation.project.slug if conversation.project else None
    return Talk(session=conversation.session, user=conversation.user, project=project)


def as_said(turn: Turn) -> SaidTurn:
    """Return a turn as a reader is given it."""
    return SaidTurn(
        role=Role(turn.role),
        speaker=turn.speaker,
        text=turn.content,
        occurred_at=turn.occurred_at,
        number=turn.number,
    )
