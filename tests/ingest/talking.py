"""Conversations for tests, facts that somebody read out of them, and the episodes that their turns become."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from memory.domain.taxonomy import Category, ConversationKey, ConversationTurn, ExtractedFact, ExtractionResult, Role
from memory.ingest.schemas import IngestContext, Outcome
from memory.ingest.turn_facts import ask_for_facts, extraction_budget, find_informative_turns, store_turns
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


def told(
    text: str, *turns: int, category: Category = Category.FACT, confidence: float = 0.95, **given: Any
) -> ExtractedFact:
    """Make a fact that quotes turns, the first if none are named."""
    return ExtractedFact(text=text, category=category, confidence=confidence, turns=turns or (1,), **given)


def keep(
    *facts: ExtractedFact,
    turns: Sequence[ConversationTurn],
    workspace: Workspace,
    talk: ConversationKey = TALK,
    now: datetime = NOW,
) -> list[Outcome]:
    """Store turns as if a reply had told these facts of them."""
    return store(ExtractionResult(facts=facts), turns=turns, workspace=workspace, talk=talk, now=now)


def store(
    found: ExtractionResult,
    *,
    turns: Sequence[ConversationTurn],
    workspace: Workspace,
    talk: ConversationKey = TALK,
    now: datetime = NOW,
) -> list[Outcome]:
    """Store the turns that say something, by what was found in them."""
    telling, broken = find_informative_turns(found=found, turns=turns, user=talk.user)
    assert not broken
    arrival = IngestContext(workspace=workspace, now=now)
    return [one.outcome for one in store_turns(telling=telling, talk=talk, arrival=arrival)]


def kept(
    *facts: ExtractedFact, turns: Sequence[ConversationTurn], workspace: Workspace, talk: ConversationKey = TALK
) -> list[Episode]:
    """Store turns and return their episodes."""
    return [episode_of(outcome) for outcome in keep(*facts, turns=turns, workspace=workspace, talk=talk)]


def ask(turns: Sequence[ConversationTurn], *, workspace: Workspace) -> ExtractionResult:
    """Ask for the facts of turns."""
    return ask_for_facts(workspace_id=workspace.pk, turns=turns, budget=extraction_budget())
