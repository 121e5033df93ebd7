"""Texts told to a workspace, as a caller of the direct path tells them."""

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from memory.domain.identity import Actor, ActorKind
from memory.facts.job import send_due_jobs
from memory.facts.remember import Remembered, remember, run_remember_job
from memory.ingest.schemas import IngestContext
from memory.models import Belief, Evidence, Link, RememberJob
from tests.consolidation.world import World

TABS = "Ana prefers tabs over spaces."
SPACES = "Ana prefers spaces over tabs."

TELLER = Actor(kind=ActorKind.KEY, name="engram_ab12")


def tell(world: World, text: str, *, limited_to: list[int] | None = None, **line: Any) -> Remembered:
    """Remember a text in a world, in a session of its own unless one is given; unless scripted it states itself."""
    if text not in world.readings:
        states(world, text)
    line = {"text": text, "session": f"of: {text}"} | line
    arrival = IngestContext(workspace=world.workspace, now=world.now, actor=TELLER, allowed_projects=limited_to)
    remembered = remember(line=line, arrival=arrival)
    assert isinstance(remembered, Remembered)
    return remembered


def states(world: World, text: str, *statements: str, **line: Any) -> None:
    """Have a text read as these new statements, or as itself."""
    said = {"subject": "Ana", "category": "preference", "importance": 7, **line}
    world.readings[text] = {"new": [{"statement": statement, **said} for statement in statements or (text,)]}


def judges(world: World, text: str, statement: str, verdict: str, **line: Any) -> None:
    """Have a text read as a word on a belief besides, named by its statement."""
    reply = world.readings.setdefault(text, {})
    assert isinstance(reply, dict)
    reply.setdefault("about", []).append({"b": statement, "verdict": verdict, **line})


def actions(remembered: Remembered) -> list[tuple[str, str]]:
    """Return what was done to which belief."""
    return [(one.id, one.action) for one in remembered.beliefs]


def remembrance_of(remembered: Remembered) -> RememberJob:
    return RememberJob.objects.get(episode=remembered.episode_id)


def numbers(belief: Belief) -> tuple[float, float]:
    """Return α and β as they are stored."""
    return Belief.objects.values_list("alpha", "beta").get(pk=belief.pk)


def words_on(belief: Belief, episode_id: str) -> tuple[str, str, str]:
    """Return verdict, basis and reason of an episode's evidence on a belief."""
    return Evidence.objects.values_list("verdict", "basis", "reason").get(belief=belief, episode=episode_id)


def neighbours(belief: Belief) -> dict[str, float]:
    """Return what a belief is linked to, with the similarity."""
    return {
        key: round(value, 2) for key, value in Link.objects.filter(belief=belief).values_list("other", "similarity")
    }


def make_due() -> None:
    """Let the time pass after which the sweeper looks again."""
    RememberJob.objects.update(due_at=Now() - timedelta(seconds=1))


def work_all(world: World) -> None:
    """Do what the sweeper would have workers do."""
    make_due()
    send_due_jobs()
    for key in RememberJob.objects.queued().values_list("pk", flat=True):
        run_remember_job(remembrance_id=key, now=world.now)
