"""A conversation is summed up now and then, as an episode that is recalled and never evidence (R8)."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

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
from memory.ingest.lines import read_extracted_line
from memory.llm.budget import CallBudget, LeaseLost
from memory.llm.calls import Answer, Ask, answer_asks
from memory.llm.ledger import CallScope, note_episodes
from memory.llm.model import CallFailed, language_model
from memory.llm.replies import Summary
from memory.llm.requests import SummaryRequest, TurnText
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
    numbers: range | None = None,
) -> Outcome | None:
    """Sum up a stretch of a conversation, once.

    `turns` are its turns, or some of them, numbered from 1. The stretch has the `numbers`, and the others are shown
    beside it; without numbers it is the latest turns, if it is time to sum them up. Nothing comes of small talk.
    `on_stored` is told the summary's id in the transaction that stores it, once the fence stands. Call it outside a
    transaction; raises CallFailed, MustWait, OutOfBudget or LeaseLost where it has to be tried again later.
    """
    numbers = _latest(turns) if numbers is None else numbers
    stretch = [turn for turn in turns if turn.number in numbers]
    if not stretch:
        return None
    key = _key_of(talk, last=stretch[-1].number)
    if standing := _standing(key, arrival):
        return standing
    scope = CallScope(workspace_id=arrival.workspace.pk, conversation_id=conversation_id)
    shown = _shown(turns, stretch)
    answer = _ask(shown, scope=scope, budget=budget, fence=fence, person=name_of_user(user=talk.user))
    if answer is None or not isinstance(answer.reply, Summary) or not answer.reply.summary:
        return None
    with transaction.atomic():
        outcome = _store(answer.reply.summary, answer.call_id, key=key, stretch=stretch, talk=talk, arrival=arrival)
        if not fence():
            raise LeaseLost
        if isinstance(outcome, Stored):
            on_stored(outcome.id)
    return outcome


def _latest(turns: Sequence[SaidTurn]) -> range:
    """Return the numbers of the latest stretch where it is due, else none."""
    last, policy = turns[-1].number if turns else 0, settings.POLICY.extraction
    return range(last - policy.summary_turns + 1, last + 1) if is_summary_due(turns=last, policy=policy) else range(0)


def _shown(turns: Sequence[SaidTurn], stretch: Sequence[SaidTurn]) -> list[TurnText]:
    """Return what a model is shown: the stretch to the end of its long turns, and the beginning of those beside it."""
    numbers = {turn.number for turn in stretch}
    pieces = max(1, settings.POLICY.extraction.turns // len(stretch))
    return [
        replace(text, is_beside=turn.number not in numbers)
        for turn in turns
        for text in as_turn_texts([turn], pieces=pieces if turn.number in numbers else 1)
    ]


def _key_of(talk: Talk, *, last: int) -> str:
    """Name a stretch of a conversation by its last turn."""
    whose = hashlib.sha256("\n".join([talk.session, talk.user, talk.project or ""]).encode()).hexdigest()[:24]
    return f"summary:{whose}:{last}"


def _standing(key: str, arrival: Arrival) -> Outcome | None:
    episodes = Episode.objects.for_workspace(arrival.workspace.pk).filter(idempotency_key=key)
    found = episodes.values_list("pk", flat=True).first()
    return Stored(id=found, is_duplicate=True) if found else None


def _ask(
    shown: Sequence[TurnText], *, scope: CallScope, budget: CallBudget, fence: Callable[[], bool], person: str
) -> Answer | None:
    if all(turn.is_beside or says_nothing(turn.text) for turn in shown):
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
    [outcome] = store_episodes(lines=[read_extracted_line(raw=raw, now=arrival.now)], arrival=arrival)
    if isinstance(outcome, Stored):
        note_episodes(workspace_id=arrival.workspace.pk, seen=[(ModelCall(pk=call_id), outcome.id)])
    return outcome
