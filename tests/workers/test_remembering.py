"""What is remembered reaches a real worker by the broker, and counts once however often it does."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from beliefsite.celery import app
from memory.facts.job import send_due_jobs
from memory.ledger.confidence import find_drift
from memory.models import Belief, Evidence, ModelCall, RememberJob
from tests.consolidation.world import World
from tests.facts.telling import tell, work_all
from tests.faults.waiting import wait_until
from tests.workers.messages import read_messages
from workers.tasks import remember

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # What Celery calls, and what its threads leave to the collector, is not ours to mend.
    pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
app.loader.import_default_modules()

TABS = "Ana prefers tabs over spaces."


def is_done() -> bool:
    return not RememberJob.objects.queued().exists()


def test_a_message_names_a_row_and_nothing_else(world: World, queues: None, settings: Settings) -> None:
    """R1: ids only, on the queue of what waits on a model."""
    settings.ENGRAM_LLM = "offline"
    tell(world, TABS)
    [message] = read_messages("llm")
    assert (message.task, message.arguments) == ("workers.remember", [RememberJob.objects.get().pk])


@pytest.mark.usefixtures("worker")
def test_a_worker_goes_on_where_no_model_answers(world: World, settings: Settings) -> None:
    """R1: by rules, however many messages say so."""
    settings.ENGRAM_LLM = "offline"
    tell(world, TABS)
    key = RememberJob.objects.get().pk
    for _ in range(5):
        remember.delay(key)
    wait_until(is_done, what="the belief")
    assert world.only_belief().alpha == 2.0
    assert ModelCall.objects.filter(purpose="read").count() == 1


@pytest.mark.usefixtures("worker")
def test_a_lost_message_is_sent_again(world: World, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1."""
    settings.ENGRAM_LLM = "offline"
    with monkeypatch.context() as lost:
        lost.setattr("workers.tasks.remember.delay", lambda _: None)
        tell(world, TABS)
    RememberJob.objects.update(due_at=Now() - timedelta(seconds=1))
    assert send_due_jobs() == 1
    wait_until(is_done, what="the belief")
    assert world.only_belief().alpha == 2.0


def test_many_who_say_the_same_at_once_make_one_belief(world: World) -> None:
    """R2: eight callers, eight sessions, one belief of eight supports: 9/10."""

    def say(number: int) -> None:
        try:
            tell(world, TABS, session=f"s-{number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=8) as callers:
        list(callers.map(say, range(8)))
    work_all(world)  # who waited too long for the others of the stream is left to a worker (F2)
    assert (Belief.objects.count(), Evidence.objects.count()) == (1, 8)
    assert world.only_belief().alpha == 9.0
    assert find_drift(workspace=world.workspace)[1] == []
