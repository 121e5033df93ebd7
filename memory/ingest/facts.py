"""From turns of a conversation to episodes: ask what facts they tell, and store those (L3)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction

from memory.consolidation.weighing import weigh_facts
from memory.domain.breaking import describe_own
from memory.domain.category import Category
from memory.domain.conversation import Fact, FactsFound, Role, SaidTurn, Talk
from memory.domain.entities import normalise_entity
from memory.domain.grounding import turns_that_tell
from memory.domain.matter import matter_of
from memory.domain.pieces import cut_pieces
from memory.domain.refusals import says_nothing
from memory.domain.user_names import name_of_user
from memory.ingest.arrival import Arrival, Outcome, Rejected, Stored
from memory.ingest.episodes import store_episodes
from memory.ingest.lines import BadLine, FactLine, read_fact_line
from memory.llm.calls import Answer, Ask, CallBudget, CallScope, Failure, answer_asks
from memory.llm.ledger import note_episodes
from memory.llm.model import FailureKind, language_model
from memory.llm.prompts import LONGEST_TEXT
from memory.llm.replies import Facts
from memory.llm.requests import FactsRequest, TurnText
from memory.models import ModelCall, Source

# L6: of these the exact words are kept beside the fact.
EXACT = frozenset({Category.DECISION, Category.COMMITMENT, Category.CORRECTION})
_UNHEARD = frozenset({Role.SYSTEM})  # what a system says are orders, the same in every conversation
_LONGEST_NAME = 200


def extraction_budget() -> CallBudget:
    """Return the time and attempts of one extraction."""
    return CallBudget.of_step(seconds=settings.POLICY.extraction.seconds, policy=settings.POLICY.budget)


def _always() -> bool:
    return True


def ask_for_facts(
    *,
    workspace_id: int,
    turns: Sequence[SaidTurn],
    budget: CallBudget,
    fence: Callable[[], bool] = _always,
    conversation_id: int | None = None,
    user: str = "",
) -> FactsFound:
    """Ask the language model what facts some turns of one conversation tell; call it outside a transaction.

    Turns that no answer could be had for are named in `unread`: garbage is a failure, never "nothing found". Raises
    MustWait, OutOfBudget (DailyCapReached is one) or LeaseLost where the asking has to go on later.
    """
    answers: list[Answer] = []
    failures = answer_asks(
        asks=list(_asks(as_turn_texts(turns, pieces=settings.POLICY.extraction.turns), name_of_user(user=user))),
        scope=CallScope(workspace_id=workspace_id, conversation_id=conversation_id),
        budget=budget,
        model=language_model(),
        store=answers.extend,
        fence=fence,
    )
    broken, failures = _part_ours(failures)
    found = [(fact, answer.call_id) for answer in answers for fact in _facts(answer)]
    found.sort(key=lambda entry: entry[0].turns)
    return FactsFound(
        facts=tuple(fact for fact, _ in found),
        call_ids=tuple(call_id for _, call_id in found),
        unread=tuple(sorted({number for failure in failures for number in _numbers(failure)})),
        failure=f"{failures[0].kind}: {failures[0].message}" if failures else "",
        broken=tuple(sorted(broken.items())),
    )


def _part_ours(failures: Sequence[Failure]) -> tuple[dict[int, str], list[Failure]]:
    """Part the turns that break rules on this machine from those that got no answer (E6)."""
    if not language_model().is_offline:
        return {}, list(failures)
    ours = [failure for failure in failures if failure.kind is FailureKind.OWN_ERROR]
    broken = {number: describe_own(failure.message) for failure in ours for number in _numbers(failure)}
    return broken, [failure for failure in failures if failure not in ours]


def as_turn_texts(turns: Sequence[SaidTurn], *, pieces: int) -> list[TurnText]:
    """Return what a model is shown of turns: not what we injected ourselves, nor a system's orders.

    A long turn is several of its number, one after another, as many as `pieces` at most.
    """
    return [
        TurnText(
            number=turn.number,
            role=turn.role,
            text=piece,
            speaker=turn.speaker,
            said_on=turn.occurred_at.date().isoformat(),
        )
        for turn in turns
        if turn.role not in _UNHEARD and (matter := matter_of(turn.text, turn.speaker))
        for piece in cut_pieces(text=matter, longest=LONGEST_TEXT)[:pieces]
    ]


@transaction.atomic
def store_facts(*, found: FactsFound, turns: Sequence[SaidTurn], talk: Talk, arrival: Arrival) -> list[Outcome]:
    """Store each fact as an episode of its session, in one transaction; doing it again adds nothing (L4)."""
    said = {turn.number: turn for turn in turns}
    drafts = [_read_line(fact, turns=turns, talk=talk, arrival=arrival) for fact in found.facts]
    stored = iter(store_episodes(lines=[line for line in drafts if isinstance(line, FactLine)], arrival=arrival))
    outcomes = [draft if isinstance(draft, Rejected) else next(stored) for draft in drafts]
    _link_calls(found, outcomes, arrival)
    _weigh(found, outcomes, said, arrival)
    return outcomes


def _asks(turns: Sequence[TurnText], person: str) -> Iterator[Ask]:
    most = settings.POLICY.extraction.turns
    for start in range(0, len(turns), most):
        yield Ask(key=str(start), request=FactsRequest(turns=tuple(turns[start : start + most]), person=person))


def _facts(answer: Answer) -> Iterator[Fact]:
    """Read a reply's facts; what says nothing is none, whatever model wrote it."""
    if not isinstance(answer.reply, Facts):
        raise TypeError(f"Facts were asked for, and {type(answer.reply).__name__} came.")
    for told in answer.reply.facts:
        if not says_nothing(told.text):
            yield Fact(
                text=told.text,
                category=told.category,
                confidence=told.confidence,
                turns=tuple(sorted(set(told.turns))),
                entities=tuple(told.entities),
                causes=tuple(cause for cause in told.causes if cause),
                importance=told.importance,
                valence=told.valence,
            )


def _numbers(failure: Failure) -> list[int]:
    return [turn.number for turn in failure.request.turns] if isinstance(failure.request, FactsRequest) else []


def _read_line(fact: Fact, *, turns: Sequence[SaidTurn], talk: Talk, arrival: Arrival) -> FactLine | Rejected:
    telling = turns_that_tell(fact=fact, turns=turns)
    try:
        return read_fact_line(raw=_as_raw(fact, turns=telling, talk=talk), now=arrival.now)
    except BadLine as bad:
        return Rejected(status=bad.status, detail=bad.detail, errors=bad.errors)


def _as_raw(fact: Fact, *, turns: Sequence[SaidTurn], talk: Talk) -> dict[str, Any]:
    source = source_of({turn.role for turn in turns})
    most = settings.POLICY.ingest.entities
    names = dict.fromkeys(normalise_entity(name)[:_LONGEST_NAME] for name in fact.entities)
    words = "\n".join(dict.fromkeys(turn.text for turn in turns))[: settings.POLICY.extraction.verbatim_characters]
    return {
        "text": fact.text,
        "project": talk.project,
        "user": talk.user,
        "agent": talk.agent,
        "session": talk.session,
        "speaker": _speaker_of(turns),
        "source": source.value,
        "occurred_at": max(turn.occurred_at for turn in turns if turn.number in fact.turns).isoformat(),
        "category": fact.category.value,
        "confidence": fact.confidence,
        "importance": fact.importance,
        "valence": fact.valence,
        "entities": [name for name in names if name][:most],
        "causes": list(fact.causes),
        "verbatim": words if fact.category in EXACT else "",
    }


def source_of(roles: set[Role]) -> Source:
    """Return whose word a fact is: a person's only if nobody else said any of it."""
    if Role.ASSISTANT in roles:
        return Source.AI
    return Source.HUMAN if roles == {Role.USER} else Source.INGEST


def _speaker_of(turns: Sequence[SaidTurn]) -> str | None:
    """Return who speaks in all of the turns; nobody where they are several."""
    speakers = {turn.speaker for turn in turns}
    return speakers.pop() or None if len(speakers) == 1 else None


def _link_calls(found: FactsFound, outcomes: Sequence[Outcome], arrival: Arrival) -> None:
    """Let the ledger know which episodes a reply became, so that erasing one finds the reply that quotes it."""
    seen = [
        (ModelCall(pk=call_id), outcome.id)
        for call_id, outcome in zip(found.call_ids, outcomes, strict=False)
        if isinstance(outcome, Stored)
    ]
    note_episodes(workspace_id=arrival.workspace.pk, seen=seen)


def _weigh(
    found: FactsFound, outcomes: Sequence[Outcome], said: Mapping[int, SaidTurn], arrival: Arrival
) -> None:  # fmt: skip
    stored = [(fact, one) for fact, one in zip(found.facts, outcomes, strict=True) if isinstance(one, Stored)]
    new = [one.id for _, one in stored if not one.is_duplicate]
    again = {one.id: max(said[n].occurred_at for n in fact.turns) for fact, one in stored if one.is_duplicate}
    weigh_facts(workspace_id=arrival.workspace.pk, ids=new, again=again, actor=arrival.actor, now=arrival.now)
