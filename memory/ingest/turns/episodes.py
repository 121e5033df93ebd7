"""Turns that say something become episodes, each in its own words; facts tell what these are like (E1, L3)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.weighing import weigh_turns
from memory.domain.breaking import OWN_ERRORS, describe_own
from memory.domain.conversation import Fact, FactsFound, Role, SaidTurn, Talk
from memory.domain.entities import normalise_entity
from memory.domain.fact_traits import read_confidence
from memory.domain.grounding import turns_that_tell
from memory.domain.language import detect_language
from memory.domain.matter import matter_of
from memory.domain.refusals import says_nothing
from memory.domain.user_names import person_of
from memory.ingest.arrival import Arrival, Outcome, Rejected, Stored
from memory.ingest.episodes import store_episodes
from memory.ingest.lines import BadLine, ExtractedLine, read_extracted_line
from memory.ingest.parts import split_line
from memory.language.claims import Speech, read_claims
from memory.llm.ledger import note_episodes
from memory.models import ModelCall, Source

log = structlog.get_logger(__name__)

# Whose word a turn is; what a system says are orders, the same in every conversation.
_SOURCES: Mapping[Role, Source] = {Role.USER: Source.HUMAN, Role.ASSISTANT: Source.AI, Role.TOOL: Source.INGEST}
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TellingTurn:
    """A turn that says something: what counts of it, how sure that is, and the facts that it tells."""

    turn: SaidTurn
    matter: str
    confidence: float
    facts: tuple[Fact, ...] = ()
    call_ids: tuple[int, ...] = ()  # the ledger's calls that found these


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """What became of a turn, or of one part of a long one."""

    telling: TellingTurn
    outcome: Outcome


def find_telling_turns(
    *, found: FactsFound, turns: Sequence[SaidTurn], user: str
) -> tuple[list[TellingTurn], dict[int, str]]:
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
        matter = matter_of(turn.text, turn.speaker) if turn.role in _SOURCES else ""
        if not matter:
            continue
        if turn.number in told:
            telling.append(_telling_facts(turn, matter, told[turn.number], found))
        elif turn.role is Role.USER and turn.number not in unheard:
            try:
                confidence = _hear_claims(turn, matter, user)
            except OWN_ERRORS as error:
                log.exception("turn_broke", turn=turn.number)
                broken[turn.number] = describe_own(error)
                continue
            if confidence is not None:
                telling.append(TellingTurn(turn=turn, matter=matter, confidence=confidence))
    return telling, broken


def _telling_facts(turn: SaidTurn, matter: str, places: Sequence[int], found: FactsFound) -> TellingTurn:
    facts = tuple(found.facts[place] for place in places)
    return TellingTurn(
        turn=turn,
        matter=matter,
        confidence=max(fact.confidence for fact in facts),
        facts=facts,
        call_ids=tuple(found.call_ids[place] for place in places if place < len(found.call_ids)),
    )


def _hear_claims(turn: SaidTurn, matter: str, user: str) -> float | None:
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


@transaction.atomic
def store_turns(*, telling: Sequence[TellingTurn], talk: Talk, arrival: Arrival) -> list[StoredTurn]:
    """Store turns as episodes of their session, in one transaction; doing it again adds nothing (L4).

    A turn that is longer than an episode may be is several.
    """
    parts = [(one, _read_line(raw, arrival)) for one in telling for raw in _as_raw(one, talk)]
    outcomes = iter(
        store_episodes(lines=[line for _, line in parts if isinstance(line, ExtractedLine)], arrival=arrival)
    )  # fmt: skip
    stored = [
        StoredTurn(telling=one, outcome=line if isinstance(line, Rejected) else next(outcomes)) for one, line in parts
    ]
    _link_calls(stored, arrival)
    _weigh(stored, arrival)
    return stored


def _read_line(raw: Mapping[str, object], arrival: Arrival) -> ExtractedLine | Rejected:
    try:
        return read_extracted_line(raw=raw, now=arrival.now)
    except BadLine as bad:
        return Rejected(status=bad.status, detail=bad.detail, errors=bad.errors)


def _as_raw(telling: TellingTurn, talk: Talk) -> list[Mapping[str, object]]:
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


def _traits_of(facts: Sequence[Fact]) -> dict[str, Any]:
    """Gather what facts tell of their turn: of the most important one the category, of all what they are about."""
    if not facts:
        return {}
    first = max(facts, key=lambda fact: fact.importance)
    names = dict.fromkeys(name for fact in facts for name in _names_in(fact))
    return {
        "category": first.category.value,
        "importance": first.importance,
        "valence": max((fact.valence for fact in facts), key=abs),
        "entities": list(names)[: settings.POLICY.ingest.entities],
        "causes": list(dict.fromkeys(cause for fact in facts for cause in fact.causes)),
    }


def _names_in(fact: Fact) -> Iterator[str]:
    return filter(None, (normalise_entity(name)[:_LONGEST_NAME] for name in fact.entities))


def _link_calls(stored: Sequence[StoredTurn], arrival: Arrival) -> None:
    """Let the ledger know which episodes a reply tells of, so that erasing one finds the reply."""
    seen = [
        (ModelCall(pk=call_id), one.outcome.id)
        for one in stored
        if isinstance(one.outcome, Stored)
        for call_id in one.telling.call_ids
    ]
    note_episodes(workspace_id=arrival.workspace.pk, seen=seen)


def _weigh(stored: Sequence[StoredTurn], arrival: Arrival) -> None:
    """Weigh what is new; what was there already may be confirmed by its having been said again (L15)."""
    kept = [(one.outcome, one.telling.turn) for one in stored if isinstance(one.outcome, Stored)]
    new = [outcome.id for outcome, _ in kept if not outcome.is_duplicate]
    again = {
        outcome.id: turn.occurred_at
        for outcome, turn in sorted(kept, key=lambda pair: pair[1].occurred_at)
        if outcome.is_duplicate
    }
    weigh_turns(workspace_id=arrival.workspace.pk, ids=new, again=again, actor=arrival.actor, now=arrival.now)
