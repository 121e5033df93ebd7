"""Conversations for tests, and the episodes that their turns become."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from memory.domain.taxonomy import ConversationKey, ConversationTurn, Role
from memory.ingest.schemas import IngestContext, Outcome
from memory.ingest.turn_episodes import store_turns
from memory.models import Episode, Workspace
from tests.factories import NOW
from tests.ingest.arriving import episode_of

TALK = ConversationKey(session="s-1", user="mara")


def said(
    *texts: str, role: Role = Role.USER, speaker: str = "Mara", first: int = 1, at: datetime = NOW
) -> list[ConversationTurn]:
    """Say some turns, a minute apart."""
    return [
        ConversationTurn(role=role, speaker=speaker, text=text, occurred_at=at + timedelta(minutes=n), number=n)
        for n, text in enumerate(texts, start=first)
    ]


def store(
    turns: Sequence[ConversationTurn], *, workspace: Workspace, talk: ConversationKey = TALK, now: datetime = NOW
) -> list[Outcome]:
    """Store turns, none of which breaks our own code."""
    stored, broken = store_turns(turns=turns, talk=talk, arrival=IngestContext(workspace=workspace, now=now))
    assert not broken
    return [one.outcome for one in stored]


def kept(turns: Sequence[ConversationTurn], *, workspace: Workspace, talk: ConversationKey = TALK) -> list[Episode]:
    """Store turns and return their episodes."""
    return [episode_of(outcome) for outcome in store(turns, workspace=workspace, talk=talk)]
