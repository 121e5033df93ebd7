"""Sum up conversations once they rest, as episodes that are recalled and never evidence (R8).

`summarize_due_stretches` sums up what is new of a conversation that rests and retries later what fails;
`summarize_stretch` asks a model about one stretch and stores the summary.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import ExpressionWrapper
from django.db.models.functions import Now

from memory.consolidation.cycle import budget_policy, database_now
from memory.domain.identity import EXTRACTION_ACTOR
from memory.domain.taxonomy import ConversationKey, ConversationTurn, Role
from memory.domain.time_limits import cooldown
from memory.ingest.read_turns import extraction_budget
from memory.ingest.schemas import IngestContext, Outcome, Stored, read_extracted_line
from memory.ingest.store import store_episodes
from memory.ingest.turn_episodes import link_turns, talk_of, to_said_turn
from memory.language.sentences import chunk_text, strip_echo
from memory.llm.call_log import (
    CallBudget,
    CallScope,
    DailyCapReached,
    LeaseLost,
    OutOfBudget,
    RetryLater,
    link_episodes,
)
from memory.llm.prompts import LONGEST_TEXT
from memory.llm.registry import language_model
from memory.llm.replies import Summary
from memory.llm.requests import SummaryRequest, TurnText
from memory.llm.runner import ModelAnswer, ModelRequest, always, run_requests
from memory.llm.types import CallFailed, FailureKind
from memory.models import Conversation, Episode, ModelCall, Source, Turn
from memory.signals import is_shutting_down
from memory.text.names import name_user

log = structlog.get_logger(__name__)

_UNREADABLE = (
    FailureKind.MALFORMED,
    FailureKind.BAD_REQUEST,
    FailureKind.OWN_ERROR,
)  # asked again, it would fail again


def summarize_due_stretches(*, conversation_id: int, now: datetime) -> None:
    """Sum up what is new of a conversation that rests; what fails is tried again later."""
    mine = Conversation.objects.filter(pk=conversation_id)
    alone = settings.POLICY.extraction.seconds + settings.POLICY.turns.resend_seconds
    if not mine.filter(sum_due_at__lte=Now()).update(sum_due_at=database_now(plus=alone)):
        return
    budget = extraction_budget()
    try:
        while end := _next_end(conversation_id, now):
            _summarize_up_to(mine.select_related("workspace", "project").get(), end, budget, now)
            mine.update(summed_up=end, sum_tries=0)
    except RetryLater as wait:
        mine.update(sum_due_at=database_now(plus=wait.seconds))
    except DailyCapReached:
        mine.update(sum_due_at=database_now(plus=settings.POLICY.turns.cap_minutes * 60))
    except (CallFailed, OutOfBudget, LeaseLost) as failure:
        log.warning("not_summed_up", conversation=conversation_id, reason=str(failure))
        _retry_later(conversation_id, is_blamed=not (is_shutting_down() or isinstance(failure, LeaseLost)))


def when_quiet() -> ExpressionWrapper[Any]:
    """Return when a conversation to which nothing comes any more is looked at again, by the database's clock."""
    return database_now(plus=_quiet().total_seconds())


def _quiet() -> timedelta:
    return timedelta(minutes=settings.POLICY.turns.age_minutes)


@transaction.atomic
def _next_end(conversation_id: int, now: datetime) -> int | None:
    """Return the last turn of the next stretch to be summed up; where there is none, note when to look again.

    A conversation rests once it has been quiet for a while and no turn of it waits to be stored.
    """
    held = Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).first()
    if held is None:
        return None
    policy = settings.POLICY.extraction
    new = held.turn_count - held.summed_up
    is_waiting = Turn.objects.waiting().filter(conversation=held).exists()
    if new < 1 or held.turn_count < policy.summary_least or is_waiting:  # who stores what waits has us look again
        Conversation.objects.filter(pk=conversation_id).update(sum_due_at=None)
        return None
    if held.last_turn_at > now - _quiet():
        Conversation.objects.filter(pk=conversation_id).update(sum_due_at=when_quiet())
        return None
    stretches = ceil(new / policy.summary_turns)
    return int(held.summed_up + ceil(new / stretches))  # about as long as those after it


def _summarize_up_to(conversation: Conversation, end: int, budget: CallBudget, now: datetime) -> None:
    """Sum up the stretch that ends with a turn; one that no answer can be had for is left so."""
    policy = settings.POLICY.extraction
    numbers = range(conversation.summed_up + 1, end + 1)
    seen = range(numbers.start - policy.summary_beside, end + policy.summary_beside + 1)
    turns = Turn.objects.filter(conversation=conversation, number__gte=seen.start, number__lt=seen.stop)
    shown = list(turns.order_by("number"))
    told = _tellable(shown)
    try:
        summarize_stretch(
            turns=[to_said_turn(turn) if turn.pk in told else replace(to_said_turn(turn), text="") for turn in shown],
            numbers=numbers,
            talk=talk_of(conversation),
            arrival=IngestContext(workspace=conversation.workspace, now=now, actor=EXTRACTION_ACTOR),
            budget=budget,
            fence=lambda: _may_still_be_told(conversation.pk, told),
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
def _may_still_be_told(conversation_id: int, told: set[int]) -> bool:
    """Tell whether turns may still be told, none being erased or forgotten; a transaction keeps it so."""
    Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).exists()
    return Turn.objects.tellable().filter(pk__in=told).count() == len(told)


@transaction.atomic
def _retry_later(conversation_id: int, *, is_blamed: bool) -> None:
    """Have a stretch wait longer with each failure; after too many the next one is taken."""
    held = Conversation.objects.select_for_update(no_key=True).filter(pk=conversation_id).first()
    if held is None:
        return
    policy, tries = budget_policy(), held.sum_tries + is_blamed
    if tries >= policy.job_claims:
        stretch = settings.POLICY.extraction.summary_turns
        held.summed_up, tries = min(held.summed_up + stretch, held.turn_count), 0
    seconds = cooldown(failures=tries, budget=policy).total_seconds() if is_blamed else 0.0
    Conversation.objects.filter(pk=conversation_id).update(
        summed_up=held.summed_up, sum_tries=tries, sum_due_at=database_now(plus=seconds)
    )


def _tell_nobody(_: str) -> None:
    """Do nothing with a summary's id."""


def summarize_stretch(
    *,
    turns: Sequence[ConversationTurn],
    talk: ConversationKey,
    arrival: IngestContext,
    budget: CallBudget,
    fence: Callable[[], bool] = always,
    conversation_id: int | None = None,
    on_stored: Callable[[str], None] = _tell_nobody,
    numbers: range,
) -> Outcome | None:
    """Sum up a stretch of a conversation, once.

    `turns` are its turns, or some of them, numbered from 1. The stretch has the `numbers`, and the others are shown
    beside it. Nothing comes of small talk.
    `on_stored` is told the summary's id in the transaction that stores it, once the fence stands. Call it outside a
    transaction; raises CallFailed, RetryLater, OutOfBudget or LeaseLost where it has to be tried again later.
    """
    stretch = [turn for turn in turns if turn.number in numbers]
    if not stretch:
        return None
    key = _key_of(talk, last=stretch[-1].number)
    if standing := _find_stored(key, arrival):
        return standing
    scope = CallScope(workspace_id=arrival.workspace.pk, conversation_id=conversation_id)
    shown = _shown(turns, stretch)
    answer = _ask(shown, scope=scope, budget=budget, fence=fence, person=name_user(user=talk.user.strip()))
    if answer is None or not isinstance(answer.reply, Summary) or not answer.reply.summary:
        return None
    with transaction.atomic():
        outcome = _store(answer.reply.summary, answer.call_id, key=key, stretch=stretch, talk=talk, arrival=arrival)
        if not fence():
            raise LeaseLost
        if isinstance(outcome, Stored):
            on_stored(outcome.id)
    return outcome


def _shown(turns: Sequence[ConversationTurn], stretch: Sequence[ConversationTurn]) -> list[TurnText]:
    """Return what a model is shown: the stretch to the end of its long turns, and the beginning of those beside it."""
    numbers = {turn.number for turn in stretch}
    pieces = max(1, settings.POLICY.extraction.summary_turns // len(stretch))
    return [
        TurnText(
            number=turn.number,
            role=turn.role,
            text=piece,
            speaker=turn.speaker,
            said_on=turn.occurred_at.date().isoformat(),
            is_beside=turn.number not in numbers,
        )
        for turn in turns
        if turn.role is not Role.SYSTEM and (matter := strip_echo(turn.text, turn.speaker))
        for piece in chunk_text(text=matter, longest=LONGEST_TEXT)[: pieces if turn.number in numbers else 1]
    ]


def _key_of(talk: ConversationKey, *, last: int) -> str:
    """Name a stretch of a conversation by its last turn."""
    whose = hashlib.sha256("\n".join([talk.session, talk.user, talk.project or ""]).encode()).hexdigest()[:24]
    return f"summary:{whose}:{last}"


def _find_stored(key: str, arrival: IngestContext) -> Outcome | None:
    episodes = Episode.objects.for_workspace(arrival.workspace.pk).filter(idempotency_key=key)
    found = episodes.values_list("pk", flat=True).first()
    return Stored(id=found, is_duplicate=True) if found else None


def _ask(
    shown: Sequence[TurnText], *, scope: CallScope, budget: CallBudget, fence: Callable[[], bool], person: str
) -> ModelAnswer | None:
    if all(turn.is_beside for turn in shown):
        return None
    answers: list[ModelAnswer] = []
    failures = run_requests(
        asks=[ModelRequest(key="summary", request=SummaryRequest(turns=tuple(shown), person=person))],
        scope=scope,
        budget=budget,
        model=language_model(),
        store=answers.extend,
        fence=fence,
    )
    for failure in failures:
        raise CallFailed(failure.message, kind=failure.kind)
    return answers[0]


def _store(
    summary: str,
    call_id: int,
    *,
    key: str,
    stretch: Sequence[ConversationTurn],
    talk: ConversationKey,
    arrival: IngestContext,
) -> Outcome:
    raw = {
        "text": summary,
        "project": talk.project,
        "user": talk.user,
        "agent": talk.agent,
        "session": talk.session,
        "source": Source.INTERACTION.value,
        "occurred_at": stretch[-1].occurred_at.isoformat(),
        "idempotency_key": key,
        "is_derived": True,
    }
    [outcome] = store_episodes(lines=[read_extracted_line(raw=raw, now=arrival.now)], arrival=arrival)
    if isinstance(outcome, Stored):
        link_episodes(workspace_id=arrival.workspace.pk, seen=[(ModelCall(pk=call_id), outcome.id)])
    return outcome
