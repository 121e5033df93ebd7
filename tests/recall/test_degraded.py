"""Recall goes on by text alone where the embedding model fails, and says so."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from memory.llm.call_log import recall_tokens_today, spent_today
from memory.models import ModelCall, Workspace
from tests import factories
from tests.model_server import ModelServer
from tests.model_server_acts import Act, close_socket, html, refuse, stall, truncated_json
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def server(settings: Settings) -> Iterator[ModelServer]:
    """Run a scripted server, and have the real client embed there."""
    settings.ENGRAM_EMBEDDINGS = "openai"
    settings.ENGRAM_EMBEDDING_MODEL = "served"
    with ModelServer() as running:
        settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = running.url
        yield running


def _name(failure: Act) -> str:
    return f"{failure.name} {failure.status}"


@pytest.mark.parametrize(
    "failure", [refuse(429), refuse(500), stall(10), close_socket(), html(), truncated_json()], ids=_name
)
def test_a_failing_embedder_leaves_the_text_channel(workspace: Workspace, server: ModelServer, failure: Act) -> None:
    """B17: the channel that failed is named, and the others answer in time."""
    episode = remembered("Mara likes tea.", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    remembered("Our cat adores tuna.", workspace=workspace)
    server.then(failure)
    recalled = ask("Mara's tea", workspace=workspace)
    assert recalled.degraded == ("vectors",)
    assert ids(recalled) == {episode.pk, belief.pk}


def test_a_model_of_too_many_dimensions_leaves_the_text_channel(settings: Settings, workspace: Workspace) -> None:
    episode = remembered("Mara likes tea.", workspace=workspace)
    settings.ENGRAM_EMBEDDINGS = "openai"
    with ModelServer(dimensions=3072, honours_dimensions=False) as server:
        settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = server.url
        recalled = ask("Mara's tea", workspace=workspace)
    assert (recalled.degraded, ids(recalled)) == (("vectors",), {episode.pk})


def test_a_query_embedded_by_a_server_is_in_the_ledger(workspace: Workspace, server: ModelServer) -> None:
    """B9: recall's calls are counted too."""
    assert ask("Mara's tea", workspace=workspace).degraded == ()
    assert list(ModelCall.objects.values_list("workspace", "purpose", "model", "outcome")) == [
        (workspace.pk, "recall", "served", "ok")
    ]


def test_beyond_a_cap_of_its_own_recall_goes_on_by_text(workspace: Workspace, server: ModelServer) -> None:
    """B9: recall's embeddings have a cap; no call is made, and the answer says what it lacks."""
    episode = remembered("Mara likes tea.", workspace=workspace)
    workspace.daily_recall_token_cap = 3
    recalled = ask("Mara's tea", workspace=workspace)
    assert (recalled.degraded, ids(recalled)) == (("vectors",), {episode.pk})
    assert server.log == []


def test_a_workspace_that_may_not_consolidate_any_more_still_recalls(workspace: Workspace, server: ModelServer) -> None:
    """B9: its cap is not recall's, and recall's calls do not count under it."""
    workspace.daily_token_cap = 0
    workspace.save()
    assert ask("Mara's tea", workspace=workspace).degraded == ()
    assert spent_today(workspace_id=workspace.pk).tokens == 0
    assert recall_tokens_today(workspace_id=workspace.pk) > 0
