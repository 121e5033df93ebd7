"""A scripted server, a client of it, and a workspace with a few episodes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pytest_django import Settings

from memory.llm.call_log import CallScope
from memory.llm.openai_models import DIALECTS, OpenAIModel
from memory.models import Episode, Workspace
from tests.llm.steps import Step
from tests.model_server import ModelServer

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Run a scripted server; each has a port of its own."""
    with ModelServer() as running:
        yield running
    DIALECTS.forget()


@pytest.fixture
def model(server: ModelServer) -> OpenAIModel:
    """Return the real client, pointed at the scripted server."""
    return openai_model(server)


def openai_model(server: ModelServer) -> OpenAIModel:
    """Make the real client of a scripted server."""
    return OpenAIModel(api_key="", base_url=server.url, synthesis_model="small", classification_model="smaller")


@pytest.fixture
def workspace() -> Workspace:
    """Make a workspace with the episodes that `tests.llm.asking` speaks of."""
    made = Workspace.objects.create(name="acme", created_at=NOW)
    times = {"created_at": NOW, "occurred_at": NOW}
    Episode.objects.bulk_create(
        Episode(id=f"ep_{n:012x}", workspace=made, text=str(n), origin="s:1", content_hash=f"{n:064x}", **times)
        for n in range(12)
    )
    return made


@pytest.fixture
def stranger() -> Workspace:
    """Make a workspace that has nothing to do with the other."""
    return Workspace.objects.create(name="globex", created_at=NOW)


@pytest.fixture
def allow_in_flight(settings: Settings) -> Callable[[int], None]:
    """Return a way to set how many calls a workspace may have in flight."""

    def allow(count: int) -> None:
        settings.POLICY = replace(settings.POLICY, budget=replace(settings.POLICY.budget, calls_in_flight=count))

    return allow


@pytest.fixture
def step(workspace: Workspace, model: OpenAIModel) -> Step:
    """Return a step of a workspace that has a few episodes."""
    return Step(scope=CallScope(workspace_id=workspace.pk), model=model)
