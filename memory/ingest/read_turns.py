"""Read what people said in turns against what is believed, in the task that stored them (F5).

`read_conversation` asks a model about one batch after the other and applies each reply at once. Whatever stops it
leaves the rest as it is, new and unread: a later flush of the conversation or the next cycle reads that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Min

from memory.consolidation.cycle import BeliefsDisabled, budget_policy, check_beliefs_enabled, pause_workspace
from memory.consolidation.episode_states import UNREAD, settle_evidenced
from memory.consolidation.leases import leased_stream
from memory.consolidation.model_calls import embed_with_retries
from memory.consolidation.read import name_reader
from memory.domain.identity import EXTRACTION_ACTOR
from memory.domain.lifecycle import ConsolidationState
from memory.ledger.beliefs import EmbeddingUnavailable
from memory.ledger.transactions import Author, lock_workspace
from memory.llm.call_log import CallBudget, CallScope, LeaseLost, OutOfBudget, RetryLater
from memory.llm.embeddings import embedder_of
from memory.llm.registry import language_model
from memory.llm.replies import Reading
from memory.llm.requests import ReadingRequest
from memory.llm.runner import FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.llm.types import CallFailed, FailureKind
from memory.models import Conversation, Episode, PauseReason, Turn, TurnEpisode
from memory.models.episodes import EpisodeQuerySet
from memory.reading.apply import READ_REASON, AnsweredReading, apply_reading, compare_statements
from memory.reading.messages import build_request, plan_batches, select_unread, stream_of

log = structlog.get_logger(__name__)
# What the messages themselves may be to blame for: asked again with the next flush, they would fail again.
_UNREADABLE = frozenset({FailureKind.MALFORMED, FailureKind.BAD_REQUEST, FailureKind.TIMEOUT, FailureKind.OWN_ERROR})
_PAUSE_REASONS: Mapping[FailureKind, PauseReason] = {
    FailureKind.AUTH: PauseReason.AUTH,
    FailureKind.BILLING: PauseReason.BILLING,
}


def read_conversation(*, conversation: Conversation, now: datetime) -> int:
    """Read what people said in turns of a conversation's stream and nobody has read; return how many messages.

    Nobody reads beside it who reads this user's messages, too; where somebody does, the messages are left to them.
    """
    first = _select_unread(conversation).defer("search").first()
    if first is None or not _keeps_beliefs(conversation):
        return 0
    count, budget = 0, extraction_budget(call_seconds=settings.POLICY.reading.seconds)
    with leased_stream(workspace_id=conversation.workspace_id, name=stream_of(first)) as is_ours:
        # Asked anew each time: a flush that found the stream taken has left its messages to us.
        while is_ours and (batches := plan_batches(episodes=_select_unread(conversation))):
            messages = batches[0].messages
            if not _read(conversation, messages, budget, now):
                break
            count += len(messages)
    log.info("turns_read", conversation=conversation.pk, messages=count, is_busy=not is_ours)
    return count


def extraction_budget(*, call_seconds: float = 0.0) -> CallBudget:
    """Return the time and attempts of one extraction; a call may take `call_seconds` where that is more than usual."""
    policy = replace(budget_policy(), call_seconds=max(budget_policy().call_seconds, call_seconds))
    return CallBudget.of_step(seconds=settings.POLICY.extraction.seconds, policy=policy)


def _keeps_beliefs(conversation: Conversation) -> bool:
    try:
        check_beliefs_enabled(workspace_id=conversation.workspace_id)
    except BeliefsDisabled:
        return False
    return True


def _select_unread(conversation: Conversation) -> EpisodeQuerySet:
    """Select what was said first in turns of this stream (F2), in whichever conversation, and is free to be read.

    As many messages as one batch may take.

    A cycle has leased the rest, or could not read it: that waits for the next cycle. What was said after turns of
    another conversation that are due waits for these, so that messages are read in the order in which they were said.
    """
    stream = Conversation.objects.filter(workspace=conversation.workspace_id, user=conversation.user)
    if not conversation.user:
        stream = stream.filter(project=conversation.project_id)
    told = TurnEpisode.objects.filter(turn__conversation__in=stream).values("episode")
    free = Episode.objects.filter(pk__in=told, state=ConsolidationState.NEW).exclude(state_reason__startswith=UNREAD)
    due = stream.exclude(pk=conversation.pk).filter(due_since__isnull=False)
    oldest = Turn.objects.filter(conversation__in=due).waiting().aggregate(at=Min("occurred_at"))["at"]
    unread = select_unread(episodes=free.filter(occurred_at__lt=oldest) if oldest else free)
    first: EpisodeQuerySet = unread.order_by("occurred_at", "number")[: settings.POLICY.reading.messages]
    return first


def _read(conversation: Conversation, messages: Sequence[Episode], budget: CallBudget, now: datetime) -> bool:
    """Ask about one batch, and apply the reply; false where it stays unread."""
    request = build_request(messages=messages, now=now)
    if request is None:  # nothing but our own words
        Episode.objects.filter(pk__in=[row.pk for row in messages]).update(read_at=now)
        return True
    scope = CallScope(workspace_id=conversation.workspace_id, conversation_id=conversation.pk)
    try:
        answer = _ask(request, scope, budget)
        if answer is None:
            return False
        answered = _embed_reply(answer, scope, budget)
        compare_statements(answered=answered)
        return _apply(conversation, answered, now)
    except (RetryLater, OutOfBudget, LeaseLost, CallFailed, BeliefsDisabled, EmbeddingUnavailable) as stop:
        log.info("turns_left_unread", conversation=conversation.pk, messages=len(messages), reason=str(stop))
        return False


def _ask(request: ReadingRequest, scope: CallScope, budget: CallBudget) -> ModelAnswer | None:
    answers: list[ModelAnswer] = []
    failures = run_requests(
        asks=[ModelRequest(key="", request=request)],
        scope=scope,
        budget=budget,
        model=language_model(),
        store=answers.extend,
    )
    for failure in failures:
        _note_failure(request, failure, scope)
    return None if failures else answers[0]


def _note_failure(request: ReadingRequest, failure: FailedRequest, scope: CallScope) -> None:
    """Let it be seen why messages were not read; where a server refuses the key or the account the workspace rests."""
    log.warning("turns_unreadable", conversation=scope.conversation_id, messages=len(request.read), kind=failure.kind)
    if failure.kind in _UNREADABLE:
        rows = Episode.objects.filter(pk__in=[message.id for message in request.read], state=ConsolidationState.NEW)
        rows.update(state_reason=f"{UNREAD}{failure.kind}")
    elif failure.kind in _PAUSE_REASONS:
        with transaction.atomic():
            pause_workspace(
                workspace_id=scope.workspace_id,
                reason=_PAUSE_REASONS[failure.kind],
                detail=f"{failure.kind}: {failure.message}",
                conversation=scope.conversation_id,
            )


def _embed_reply(answer: ModelAnswer, scope: CallScope, budget: CallBudget) -> AnsweredReading:
    """Return a reply with the vectors of its statements; raise CallFailed or DailyCapReached where there are none."""
    request, reply = answer.request, answer.reply
    if not isinstance(request, ReadingRequest) or not isinstance(reply, Reading):
        raise TypeError(f"A reading was asked for, and {type(reply).__name__} came.")
    texts = list(dict.fromkeys(line.statement for line in reply.new if line is not None))
    model, vectors = embedder_of(scope.workspace_id), dict[str, Any]()
    if texts:
        found = embed_with_retries(scope=scope, model=model, texts=texts, seconds=budget.seconds_left())
        vectors = dict(zip(texts, found, strict=True))
    return AnsweredReading(
        request=request, reply=reply, reader=name_reader(), call_id=answer.call_id, model=model.name, vectors=vectors
    )


@transaction.atomic
def _apply(conversation: Conversation, answered: AnsweredReading, now: datetime) -> bool:
    """Apply a reply, settle what is evidence now and let the rest wait for company (B1, F4).

    What has no vector yet stays new: a cycle embeds it. False where a message went meanwhile: nothing is stored then.
    """
    lock_workspace(conversation.workspace_id)
    check_beliefs_enabled(workspace_id=conversation.workspace_id)
    apply_reading(answered=answered, author=Author(actor=EXTRACTION_ACTOR, reason=READ_REASON, now=now))
    read = Episode.objects.filter(pk__in=[message.id for message in answered.request.read], read_at__isnull=False)
    embedded = read.filter(state=ConsolidationState.NEW, embedding__model=answered.model)
    settle_evidenced(episodes=embedded)
    embedded.update(state=ConsolidationState.POOLED, pooled_at=now)
    return read.exists()
