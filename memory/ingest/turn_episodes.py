"""Turns to episodes: each in its own words, whatever it says, so that nothing that was said is lost (F5, L6).

`store_turns` stores the turns of people, models and tools with their roles as sources, `link_turns` remembers which
episodes came of a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog
from django.db import transaction

from memory.consolidation.episode_states import weigh_turns
from memory.domain.lifecycle import OWN_ERRORS, describe_own_error
from memory.domain.taxonomy import ConversationKey, ConversationTurn, Role
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
from memory.language.sentences import strip_echo
from memory.models import Conversation, Source, Turn, TurnEpisode
from memory.models.fields import insert_new

log = structlog.get_logger(__name__)
_SAID_CONFIDENCE = 0.8  # of what people say, until it is read: implied or better (L3), so that it counts in L15 and L18


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """What became of a turn, or of one part of a long one."""

    turn: ConversationTurn
    outcome: Outcome


def store_turns(
    *, turns: Sequence[ConversationTurn], talk: ConversationKey, arrival: IngestContext
) -> tuple[list[StoredTurn], dict[int, str]]:
    """Store turns as episodes of their session; doing it again adds nothing (L4).

    Return besides, by their numbers, how turns broke our own code (E6): those beside them are stored.
    """
    try:
        with transaction.atomic():
            return _store(turns, talk, arrival), {}
    except OWN_ERRORS as error:
        log.exception("turns_broke", session=talk.session, turns=[turn.number for turn in turns])
        if len(turns) == 1:
            return [], {turns[0].number: describe_own_error(error)}
    stored, broken = list[StoredTurn](), dict[int, str]()
    for turn in turns:
        found, why = store_turns(turns=[turn], talk=talk, arrival=arrival)
        stored += found
        broken |= why
    return stored, broken


# Whose word a turn is; what a system says are orders, the same in every conversation.
_SOURCES: Mapping[Role, Source] = {Role.USER: Source.HUMAN, Role.ASSISTANT: Source.AI, Role.TOOL: Source.INGEST}


def _store(turns: Sequence[ConversationTurn], talk: ConversationKey, arrival: IngestContext) -> list[StoredTurn]:
    said = [replace(turn, text=strip_echo(turn.text, turn.speaker)) for turn in turns if turn.role in _SOURCES]
    parts = [(turn, _read_line(raw, arrival)) for turn in said if turn.text for raw in _lines_of(turn, talk)]
    outcomes = iter(
        store_episodes(lines=[line for _, line in parts if isinstance(line, ExtractedLine)], arrival=arrival)
    )  # fmt: skip
    stored = [
        StoredTurn(turn=turn, outcome=line if isinstance(line, Rejected) else next(outcomes)) for turn, line in parts
    ]
    _weigh_stored(stored, arrival)
    return stored


def _lines_of(turn: ConversationTurn, talk: ConversationKey) -> list[Mapping[str, object]]:
    """Return a turn as a line; one that is longer than an episode may be is several."""
    line = {
        "text": turn.text,
        "project": talk.project,
        "user": talk.user,
        "agent": talk.agent,
        "session": talk.session,
        "speaker": turn.speaker or None,
        "source": _SOURCES[turn.role].value,
        "occurred_at": turn.occurred_at.isoformat(),
        "confidence": _SAID_CONFIDENCE if turn.role is Role.USER else None,
    }
    return split_line(line=line, text="text", name="idempotency_key")


def _read_line(raw: Mapping[str, object], arrival: IngestContext) -> ExtractedLine | Rejected:
    try:
        return read_extracted_line(raw=raw, now=arrival.now)
    except BadLine as bad:
        return Rejected.for_line(bad)


def _weigh_stored(stored: Sequence[StoredTurn], arrival: IngestContext) -> None:
    """Weigh what is new; what was there already may be confirmed by its having been said again (L15)."""
    kept = [(one.outcome, one.turn) for one in stored if isinstance(one.outcome, Stored)]
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
    """Return a turn as it was said."""
    return ConversationTurn(
        role=Role(turn.role),
        speaker=turn.speaker,
        text=turn.content,
        occurred_at=turn.occurred_at,
        number=turn.number,
    )
