"""A worker that is ended in the middle of a call leaves none open in the ledger (E6, B9)."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db.models.functions import Now

from memory.consolidation.schedule import sweep
from memory.llm.embeddings import PendingEmbedding, embed_for_workspace
from memory.llm.openai_models import OpenAIEmbedder
from memory.models import ModelCall, Workspace
from tests.llm.steps import Step, batch
from tests.model_server import ModelServer
from tests.model_server_acts import stall

pytestmark = pytest.mark.django_db

ENDED = "nobody was left to wait for the answer"


@contextmanager
def soft_limit(seconds: float) -> Iterator[None]:
    """End the body as Celery ends a task at its soft limit: a signal raises in the main thread."""

    def raise_it(*_: object) -> None:
        raise SoftTimeLimitExceeded(seconds)

    before = signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def rows() -> list[tuple[str, str, bool]]:
    """Return outcome, error and whether it is over, of every call."""
    found = ModelCall.objects.order_by("id").values_list("outcome", "error", "finished_at")
    return [(outcome, error, finished_at is not None) for outcome, error, finished_at in found]


def test_a_task_that_is_ended_closes_its_calls(step: Step, server: ModelServer) -> None:
    """E6, B9: at once, with the reason; what they may cost stays counted."""
    server.then(stall(1.5), stall(1.5))
    with pytest.raises(SoftTimeLimitExceeded), soft_limit(0.5):
        step.ask(batch("a", key="a"), batch("b", key="b"))
    assert rows() == [("abandoned", ENDED, True)] * 2
    assert all(call.input_tokens > 0 for call in ModelCall.objects.all())
    assert step.ask(batch("a", key="a")) == []  # the next worker asks anew, and is answered
    assert [outcome for outcome, _, _ in rows()] == ["abandoned", "abandoned", "ok"]


@pytest.fixture
def embedder(server: ModelServer) -> OpenAIEmbedder:
    """Return the real client of the scripted server's embeddings."""
    return OpenAIEmbedder(base_url=server.url, api_key="", model="vectors")


def test_an_embedding_that_is_ended_is_closed(step: Step, server: ModelServer, embedder: OpenAIEmbedder) -> None:
    """E6, B9: as any call."""
    server.then(stall(1.5), purpose="embed")
    with pytest.raises(SoftTimeLimitExceeded), soft_limit(0.5):
        embed_for_workspace(scope=step.scope, model=embedder, texts=["a"], timeout=5.0)
    assert rows() == [("abandoned", ENDED, True)]


def test_an_embedding_that_was_asked_for_meanwhile_is_closed(
    step: Step, server: ModelServer, embedder: OpenAIEmbedder
) -> None:
    """E6, B9."""
    server.then(stall(1.5), purpose="embed")
    coming = PendingEmbedding(scope=step.scope, model=embedder, texts=["a"], timeout=5.0, episodes=())
    with pytest.raises(SoftTimeLimitExceeded), soft_limit(0.5):
        coming.collect()
    assert rows() == [("abandoned", ENDED, True)]


def test_what_a_killed_worker_left_open_is_closed_by_the_sweeper(workspace: Workspace) -> None:
    """E6, B9: nobody is left to close it; as soon as no step can be waiting for it any more."""
    row = {"workspace": workspace, "purpose": "remember", "model": "x", "input_hash": "0" * 64}
    killed, flying = (ModelCall.objects.create(**row) for _ in range(2))
    ModelCall.objects.filter(pk=killed.pk).update(started_at=Now() - timedelta(seconds=71))
    ModelCall.objects.filter(pk=flying.pk).update(started_at=Now() - timedelta(seconds=60))
    sweep()
    assert rows() == [("abandoned", ENDED, True), ("open", "", False)]
