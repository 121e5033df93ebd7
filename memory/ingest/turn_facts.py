"""Turns to facts to episodes: ask a model what turns tell, and store each turn that says something in its own words.

The rule is L6.

`ask_for_facts` asks the model (L3), `find_informative_turns` selects turns by facts and by rules (E1), `store_turns`
stores them as episodes with the traits that the facts tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.episode_states import weigh_turns
from memory.domain.lifecycle import OWN_ERRORS, describe_own_error
from memory.domain.taxonomy import ConversationKey, ConversationTurn, ExtractedFact, ExtractionResult, Role
from memory.ingest.schemas import (
    BadLine,
    ExtractedLine,
    IngestContext,
    Outcome,
    Rejected,
    Stored,
    read_extracted_line,
    split_line,
)
from memory.ingest.store import store_episodes
from memory.language.claims import Speech, read_claims
from memory.language.refusals import says_nothing
from memory.language.sentences import chunk_text, strip_echo, turns_that_tell
from memory.language.subjects import normalise_entity
from memory.language.third_person import name_of_user, person_of
from memory.language.traits import read_confidence
from memory.language.words import detect_language
from memory.llm.call_log import CallBudget, CallScope, link_episodes
from memory.llm.prompts import LONGEST_TEXT
from memory.llm.registry import language_model
from memory.llm.replies import Facts
from memory.llm.requests import FactsRequest, TurnText
from memory.llm.runner import FailedRequest, ModelAnswer, ModelRequest, always, run_requests
from memory.llm.types import FailureKind
from memory.models import Conversation, ModelCall, Source, Turn, TurnEpisode
from memory.models.fields import insert_new

log = structlog.get_logger(__name__)
_LONGEST_NAME = 200


def ask_for_facts(
    *,
    workspace_id: int,
    turns: Sequence[ConversationTurn],
    budget: CallBudget,
    fence: Callable[[], bool] = always,
    conversation_id: int | None = None,
    user: str = "",
) -> ExtractionResult:
    """Ask the language model what facts some turns of one conversation tell; call it outside a transaction.

    Turns that no answer could be had for are named in `unread`: garbage is a failure, never "nothing found". Raises
    RetryLater, OutOfBudget (DailyCapReached is one) or LeaseLost where the asking has to go on later.
    """
    answers: list[ModelAnswer] = []
    failures = run_requests(
        asks=list(_asks(as_turn_texts(turns, pieces=settings.POLICY.extraction.turns), name_of_user(user=user))),
        scope=CallScope(workspace_id=workspace_id, conversation_id=conversation_id),
        budget=budget,
        model=language_model(),
        store=answers.extend,
        fence=fence,
    )
    broken, failures = _split_own_errors(failures)
    found = [(fact, answer.call_id) for answer in answers for fact in _facts(answer)]
    found.sort(key=lambda entry: entry[0].turns)
    return ExtractionResult(
        facts=tuple(fact for fact, _ in found),
        call_ids=tuple(call_id for _, call_id in found),
        unread=tuple(sorted({number for failure in failures for number in _numbers(failure)})),
        failure=f"{failures[0].kind}: {failures[0].message}" if failures else "",
        broken=tuple(sorted(broken.items())),
    )


_ROLES_NOT_READ = frozenset({Role.SYSTEM})  # what a system says are orders, the same in every conversation


def extraction_budget() -> CallBudget:
    """Return the time and attempts of one extraction."""
    return CallBudget.of_step(seconds=settings.POLICY.extraction.seconds, policy=settings.POLICY.budget)


def _split_own_errors(failures: Sequence[FailedRequest]) -> tuple[dict[int, str], list[FailedRequest]]:
    """Part the turns that break rules on this machine from those that got no answer (E6)."""
    if not language_model().is_offline:
        return {}, list(failures)
    ours = [failure for failure in failures if failure.kind is FailureKind.OWN_ERROR]
    broken = {number: describe_own_error(failure.message) for failure in ours for number in _numbers(failure)}
    return broken, [failure for failure in failures if failure not in ours]


def as_turn_texts(turns: Sequence[ConversationTurn], *, pieces: int) -> list[TurnText]:
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
        if turn.role not in _ROLES_NOT_READ and (matter := strip_echo(turn.text, turn.speaker))
        for piece in chunk_text(text=matter, longest=LONGEST_TEXT)[:pieces]
    ]


def _asks(turns: Sequence[TurnText], person: str) -> Iterator[ModelRequest]:
    most = settings.POLICY.extraction.turns
    for start in range(0, len(turns), most):
        yield ModelRequest(
            key=str(start), request=FactsRequest(turns=tuple(turns[start : start + most]), person=person)
        )


def _facts(answer: ModelAnswer) -> Iterator[ExtractedFact]:
    """Read a reply's facts; what says nothing is none, whatever model wrote it."""
    if not isinstance(answer.reply, Facts):
        raise TypeError(f"Facts were asked for, and {type(answer.reply).__name__} came.")
    for told in answer.reply.facts:
        if not says_nothing(told.text):
            yield ExtractedFact(
                text=told.text,
                category=told.category,
                confidence=told.confidence,
                turns=tuple(sorted(set(told.turns))),
                entities=tuple(told.entities),
                causes=tuple(cause for cause in told.causes if cause),
                importance=told.importance,
                valence=told.valence,
            )


def _numbers(failure: FailedRequest) -> list[int]:
    return [turn.number for turn in failure.request.turns] if isinstance(failure.request, FactsRequest) else []


def find_informative_turns(
    *, found: ExtractionResult, turns: Sequence[ConversationTurn], user: str
) -> tuple[list[InformativeTurn], dict[int, str]]:
    """Find the turns that say something: a fact is told by them, or rules read a claim out of what a user says.

    Return besides, by their numbers, how turns broke our own code (E6). Of a turn that is left unread the facts count
    that were found in it so far. It may take a while: call it outside a transaction.
    """
    told: dict[int, list[int]] = {}
    for place, fact in enumerate(found.facts):
        for turn in turns_that_tell(fact=fact, turns=turns):
            told.setdefault(turn.number, []).append(place)
    unheard = {*found.unread, *(number for number, _ in found.broken)}
    telling, broken = [], dict[int, str]()
    for turn in turns:
        matter = strip_echo(turn.text, turn.speaker) if turn.role in _SOURCES else ""
        if not matter:
            continue
        if turn.number in told:
            telling.append(_with_facts(turn, matter, told[turn.number], found))
        elif turn.role is Role.USER and turn.number not in unheard:
            try:
                confidence = _confidence_of_claims(turn, matter, user)
            except OWN_ERRORS as error:
                log.exception("turn_broke", turn=turn.number)
                broken[turn.number] = describe_own_error(error)
                continue
            if confidence is not None:
                telling.append(InformativeTurn(turn=turn, matter=matter, confidence=confidence))
    return telling, broken


@dataclass(frozen=True, slots=True, kw_only=True)
class InformativeTurn:
    """A turn that says something: what counts of it, how sure that is, and the facts that it tells."""

    turn: ConversationTurn
    matter: str
    confidence: float
    facts: tuple[ExtractedFact, ...] = ()
    call_ids: tuple[int, ...] = ()  # the ledger's calls that found these


def _with_facts(turn: ConversationTurn, matter: str, places: Sequence[int], found: ExtractionResult) -> InformativeTurn:
    facts = tuple(found.facts[place] for place in places)
    return InformativeTurn(
        turn=turn,
        matter=matter,
        confidence=max(fact.confidence for fact in facts),
        facts=facts,
        call_ids=tuple(found.call_ids[place] for place in places if place < len(found.call_ids)),
    )


def _confidence_of_claims(turn: ConversationTurn, matter: str, user: str) -> float | None:
    """Tell how sure the surest claim is, by its hedges as of a fact; None where nothing but small talk is found."""
    language = detect_language(matter)
    person = person_of(user=user, speaker=turn.speaker, language=language)
    claims = read_claims(
        text=matter, speech=Speech(user=person, language=language, said_on=turn.occurred_at.date())
    )  # fmt: skip
    said = [claim.words or claim.sentence for claim in claims]
    if not said or all(says_nothing(words) for words in (matter, *said)):
        return None
    return max(read_confidence(said=words, is_by_model=False) for words in said)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """What became of a turn, or of one part of a long one."""

    telling: InformativeTurn
    outcome: Outcome


@transaction.atomic
def store_turns(
    *, telling: Sequence[InformativeTurn], talk: ConversationKey, arrival: IngestContext
) -> list[StoredTurn]:
    """Store turns as episodes of their session, in one transaction; doing it again adds nothing (L4).

    A turn that is longer than an episode may be is several.
    """
    parts = [(one, _read_line(raw, arrival)) for one in telling for raw in _lines_of(one, talk)]
    outcomes = iter(
        store_episodes(lines=[line for _, line in parts if isinstance(line, ExtractedLine)], arrival=arrival)
    )  # fmt: skip
    stored = [
        StoredTurn(telling=one, outcome=line if isinstance(line, Rejected) else next(outcomes)) for one, line in parts
    ]
    _link_calls(stored, arrival)
    _weigh_stored(stored, arrival)
    return stored


# Whose word a turn is; what a system says are orders, the same in every conversation.
_SOURCES: Mapping[Role, Source] = {Role.USER: Source.HUMAN, Role.ASSISTANT: Source.AI, Role.TOOL: Source.INGEST}


def _read_line(raw: Mapping[str, object], arrival: IngestContext) -> ExtractedLine | Rejected:
    try:
        return read_extracted_line(raw=raw, now=arrival.now)
    except BadLine as bad:
        return Rejected.for_line(bad)


def _lines_of(telling: InformativeTurn, talk: ConversationKey) -> list[Mapping[str, object]]:
    turn = telling.turn
    line = {
        "text": telling.matter,
        "project": talk.project,
        "user": talk.user,
        "agent": talk.agent,
        "session": talk.session,
        "speaker": turn.speaker or None,
        "source": _SOURCES[turn.role].value,
        "occurred_at": turn.occurred_at.isoformat(),
        "confidence": telling.confidence,
        **_traits_of(telling.facts),
    }
    return split_line(line=line, text="text", name="idempotency_key")


def _traits_of(facts: Sequence[ExtractedFact]) -> dict[str, Any]:
    """Gather what facts tell of their turn: of the most important one the category, of all what they are about."""
    if not facts:
        return {}
    first = max(facts, key=lambda fact: fact.importance)
    entities = (normalise_entity(name)[:_LONGEST_NAME] for fact in facts for name in fact.entities)
    names = dict.fromkeys(filter(None, entities))
    return {
        "category": first.category.value,
        "importance": first.importance,
        "valence": max((fact.valence for fact in facts), key=abs),
        "entities": list(names)[: settings.POLICY.ingest.entities],
        "causes": list(dict.fromkeys(cause for fact in facts for cause in fact.causes)),
    }


def _link_calls(stored: Sequence[StoredTurn], arrival: IngestContext) -> None:
    """Let the ledger know which episodes a reply tells of, so that erasing one finds the reply."""
    seen = [
        (ModelCall(pk=call_id), one.outcome.id)
        for one in stored
        if isinstance(one.outcome, Stored)
        for call_id in one.telling.call_ids
    ]
    link_episodes(workspace_id=arrival.workspace.pk, seen=seen)


def _weigh_stored(stored: Sequence[StoredTurn], arrival: IngestContext) -> None:
    """Weigh what is new; what was there already may be confirmed by its having been said again (L15)."""
    kept = [(one.outcome, one.telling.turn) for one in stored if isinstance(one.outcome, Stored)]
    new = [outcome.id for outcome, _ in kept if not outcome.is_duplicate]
    again = {
        outcome.id: turn.occurred_at
        for outcome, turn in sorted(kept, key=lambda pair: pair[1].occurred_at)
        if outcome.is_duplicate
    }
    weigh_turns(workspace_id=arrival.workspace.pk, ids=new, again=again, actor=arrival.actor, now=arrival.now)


def link_turns(*, pairs: Iterable[tuple[Turn, str]], is_verbatim: bool = False) -> None:
    """Remember that episodes tell of turns, or are these in their own words; what is known already stays as it is."""
    rows = [
        {"workspace_id": turn.workspace_id, "turn_id": turn.pk, "episode_id": key, "is_verbatim": is_verbatim}
        for turn, key in {(turn.pk, key): (turn, key) for turn, key in pairs}.values()
    ]
    insert_new(model=TurnEpisode, rows=rows)


def talk_of(conversation: Conversation) -> ConversationKey:
    """Return whose conversation it is."""
    project = conversation.project.slug if conversation.project else None
    return ConversationKey(session=conversation.session, user=conversation.user, project=project)


def to_said_turn(turn: Turn) -> ConversationTurn:
    """Return a turn as a reader is given it."""
    return ConversationTurn(
        role=Role(turn.role),
        speaker=turn.speaker,
        text=turn.content,
        occurred_at=turn.occurred_at,
        number=turn.number,
    )
