"""A worker in threads of this process, on the suite's broker."""

from collections.abc import Iterator

import pytest
from celery.contrib.testing.worker import start_worker
from pytest_django import Settings

from beliefsite.celery import app
from memory.llm.openai_models import DIALECTS
from tests import factories
from tests.consolidation.world import MODEL, World
from tests.faults.windows import broker
from tests.model_server import ModelServer
from tests.workers.messages import QUEUES


@pytest.fixture
def queues() -> Iterator[None]:
    """Begin and end with nothing in any queue."""
    with broker() as client:
        client.delete(*QUEUES)
        yield
        client.delete(*QUEUES)


@pytest.fixture
def world(transactional_db: None, settings: Settings) -> Iterator[World]:
    """Return a workspace whose rows other threads see, and whose models are a scripted server."""
    with ModelServer() as server:
        settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "openai"
        settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = server.url
        settings.OPENAI_API_KEY, settings.ENGRAM_EMBEDDING_MODEL = "", MODEL
        yield World(server=server, workspace=factories.workspace())
    DIALECTS.forget()


@pytest.fixture
def worker(world: World, queues: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the tasks of all queues in four threads."""
    # Results are never read. Subscriptions to them would outlive the broker in this process, and mourn it for minutes.
    monkeypatch.setattr("celery.backends.redis.ResultConsumer.consume_from", lambda *_: None)
    with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, queues=",".join(QUEUES)):
        yield
