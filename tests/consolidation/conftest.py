"""A scripted world for a cycle to run in, and ways to change its numbers."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pytest_django import Settings

from memory.llm.openai_models import DIALECTS
from memory.signals import cycle_ready
from tests import factories
from tests.consolidation.world import MODEL, TroubledServer, World


@pytest.fixture(scope="package")
def running_server() -> Iterator[TroubledServer]:
    """Run one scripted server for all tests here: a client of its own for each would cost more than the tests."""
    with TroubledServer() as running:
        yield running
    DIALECTS.forget()


@pytest.fixture
def server(running_server: TroubledServer) -> TroubledServer:
    """Return the server in order, with nothing in its log."""
    running_server.mend()
    return running_server


@pytest.fixture
def world(db: None, server: TroubledServer, settings: Settings) -> World:
    """Return a workspace whose models are the scripted server, through the real client."""
    settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "openai"
    settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = server.url
    settings.OPENAI_API_KEY, settings.ENGRAM_EMBEDDING_MODEL = "", MODEL
    return World(server=server, workspace=factories.workspace())


@pytest.fixture
def woken() -> Iterator[list[tuple[str, int]]]:
    """Collect the cycles that workers were told to take up, with the attempt."""
    heard: list[tuple[str, int]] = []

    def hear(*, cycle_id: str, attempt: int, **_: object) -> None:
        heard.append((cycle_id, attempt))

    cycle_ready.connect(hear)
    yield heard
    cycle_ready.disconnect(hear)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let failed calls be repeated at once."""
    for module in ("memory.llm.runner", "memory.consolidation.model_calls"):
        monkeypatch.setattr(f"{module}.BACKOFF_SECONDS", 0.001)


Decree = Callable[..., None]


@pytest.fixture
def decree(settings: Settings) -> Decree:
    """Return a way to change numbers of one stage of the policy: decree("budget", call_seconds=1.0)."""

    def change(stage: str, **numbers: float) -> None:
        changed = replace(getattr(settings.POLICY, stage), **numbers)
        settings.POLICY = replace(settings.POLICY, **{stage: changed})

    return change


@pytest.fixture
def without_closing(decree: Decree) -> None:
    """Let no order of words be a change, so that what else they lead to can be seen (C1)."""
    decree("gate", close_score=1_000.0, close_few_score=1_000.0)
