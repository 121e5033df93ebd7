"""A conversation is summed up now and then, as an episode that is recalled and never evidence (R8)."""

import hashlib
from collections.abc import Callable, Sequence

from django.conf import settings
from django.db import transaction

from memory.domain.conversation import SaidTurn, Talk
from memory.domain.entities import find_entities
from memory.domain.refusals import says_nothing
from memory.domain.summaries import is_summary_due
from memory.domain.user_names import name_of_user
from memory.ingest.arrival import Arrival, Outcome, Stored
from memory.ingest.episodes import store_episodes
from memory.ingest.facts import as_turn_texts
from memory.ingest.lines import read_fact_line
from memory.llm.calls import Answer, Ask, CallBudget, CallScope, LeaseLost, answer_asks
from memory.llm.ledger import note_episodes
from memory.llm.model import CallFailed, language_model
from memory.llm.replies import Summary
from memory.llm.requests import SummaryRequest
from memory.models import Episode, ModelCall, Source


def _always() -> bool:
    return True


def _tell_nobody(_: str) -> None:
    """Do nothing with a summary's id."""


def summarize_conversation(
    *,
    turns: Sequence[SaidTurn],
    talk: Talk,
    arrival: Arrival,
    budget: CallBudget,
    fence: Callable[[], bool] = _always,
    conversation_id: int | None = None,
    on_stored: Callable[[str], None] = _tell_nobody,
) -> Outcome | None:
    """Sum up the latest turns of a conversation, if it is time to, once for each stretch of it.

    `turns` are its turns so far, or the latest of them, numbered from 1. Nothing comes of small talk. `on_stored` is
    told the summary's id in the transaction that stores it, once the fence stands. Call it outside a transaction;
    raises CallFailed, MustWait, OutOfBudget or LeaseLost where it has to be tried again later.
    """
    policy = settings.POLICY.extraction
    if not turns or not is_summary_due(turns=turns[-1].number, policy=policy):
        return None
    stretch = turns[-policy.summary_turns :]
    key = _key_of(talk, last=stretch[-1].number)
    if standing := _standing(key, arrival):
        return standing
    scope = CallScope(workspace_id=arrival.workspace.pk, conversation_id=conversation_id)
    answer = _ask(stretch, scope=scope, budget=budget, fence=fence, person=name_of_user(user=talk.user))
    if answer is None or not isinstance(answer.reply, Summary) or not answer.reply.summary:
        return None
    with transaction.atomic():
        outcome = _store(answer.reply.summary, answer.call_id, key=key, stretch=stretch, talk=talk, arrival=arrival)
        if not fence():
            raise LeaseLost
        if isinstance(outcome, Stored):
            on_stored(outcome.id)
    return outcome


def _key_of(talk: Talk, *, last: int) -> str:
    """Name a stretch of a conversation by its last turn."""
    whose = hashlib.sha256("\n".join([talk.session, talk.user, talk.project or ""]).encode()).hexdigest()[:24]
    return f"summary:{whose}:{last}"


def _standing(key: str, arrival: Arrival) -> Outcome | None:
    episodes = Episode.objects.for_workspace(arrival.workspace.pk).filter(idempotency_key=key)
    found = episodes.values_list("pk", flat=True).first()
    return Stored(id=found, is_duplicate=True) if found else None


def _ask(
    stretch: Sequence[SaidTurn], *, scope: CallScope, budget: CallBudget, fence: Callable[[], bool], person: str
) -> Answer | None:  # fmt: skip
    shown = as_turn_texts(stretch, pieces=max(1, settings.POLICY.extraction.turns // len(stretch)))
    if all(says_nothing(turn.text) for turn in shown):
        return None
    answers: list[Answer] = []
    failures = answer_asks(
        asks=[Ask(key="summary", request=SummaryRequest(turns=tuple(shown), person=person))],
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
    summary: str, call_id: int, *, key: str, stretch: Sequence[SaidTurn], talk: Talk, arrival: Arrival
) -> Outcome:  # fmt: skip
    known = {turn.speaker for turn in stretch if turn.speaker}
    raw = {
        "text": summary,
        "project": talk.project,
        "user": talk.user,
        "agent": talk.agent,
        "session": talk.session,
        "source": Source.INTERACTION.value,
        "occurred_at": stretch[-1].occurred_at.isoformat(),
        "entities": list(find_entities(text=summary, known=known)),
        "idempotency_key": key,
        "is_derived": True,
    }
    [outcome] = store_episodes(lines=[read_fact_line(raw=raw, now=arrival.now)], arrival=arrival)
    if isinstance(outcome, Stored):
        note_episodes(workspace_id=arrival.workspace.pk, seen=[(ModelCall(pk=call_id), outcome.id)])
    return outcome
