"""Let lines arrive in a test."""

from datetime import datetime, timedelta
from typing import Any

from memory.ingest.schemas import IngestContext, Outcome, Stored
from memory.ingest.store import store_raw_episodes
from memory.models import Episode, Workspace
from tests.factories import NOW


def take(*lines: dict[str, Any] | str, workspace: Workspace, now: datetime = NOW, **given: Any) -> list[Outcome]:
    """Take lines, or bare texts, in one batch."""
    raw = [{"text": line} if isinstance(line, str) else line for line in lines]
    return store_raw_episodes(raw_lines=raw, arrival=IngestContext(workspace=workspace, now=now, **given))


def say(*texts: str, workspace: Workspace, session: str = "s", now: datetime = NOW) -> list[Episode]:
    """Take the turns of a session in one batch and return their episodes."""
    outcomes = take(*({"text": text, "session": session} for text in texts), workspace=workspace, now=now)
    return [episode_of(outcome) for outcome in outcomes]


def episode_of(outcome: Outcome) -> Episode:
    """Return the episode that stands for a line."""
    assert isinstance(outcome, Stored), outcome
    return Episode.objects.get(pk=outcome.id)


def days(number: float) -> timedelta:
    return timedelta(days=number)
