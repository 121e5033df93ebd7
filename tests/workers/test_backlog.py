"""B7, B11: what was posted is consolidated to the last by a live worker, with nobody asking for it."""

import time
from collections.abc import Iterator

import pytest
from celery.contrib.testing.worker import start_worker
from pytest_django import Settings

from beliefsite.celery import app
from benchmarks.choking import choking_embedder, choking_model
from benchmarks.people import Line, tell
from memory.ledger.confidence import find_drift
from memory.llm.offline import OfflineModel, StaticEmbedder
from memory.models import Belief, Cycle, Episode, Workspace
from tests import factories
from tests.api.caller import caller
from tests.workers.messages import QUEUES
from workers import tasks

pytestmark = [
    pytest.mark.slow,
    # What Celery calls, and what its threads leave to the collector, is not ours to mend.
    pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

COUNT, POISON = 300, 5
_PATIENCE_SECONDS = 500.0  # some 80 alone; 305 were seen beside six other test runs
_SWEEP_SECONDS = 5.0


@pytest.fixture
def workspace(transactional_db: None, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Store an empty workspace whose models are those of this machine, and choke on some texts."""
    settings.ENGRAM_LLM, settings.ENGRAM_EMBEDDINGS = "offline", "static"
    monkeypatch.setattr(OfflineModel, "complete", choking_model(OfflineModel.complete))
    monkeypatch.setattr(StaticEmbedder, "embed", choking_embedder(StaticEmbedder.embed))
    return factories.workspace()


@pytest.fixture
def worker(workspace: Workspace, queues: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run the tasks of all queues in two threads."""
    monkeypatch.setattr("celery.backends.redis.ResultConsumer.consume_from", lambda *_: None)
    with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False, queues=",".join(QUEUES)):
        yield


@pytest.mark.usefixtures("worker")
def test_a_backlog_is_drained_to_the_last_episode_by_itself(workspace: Workspace) -> None:
    """B7, B11: several cycles' worth; what no step can digest is a dead letter with its reason."""
    lines = tell(count=COUNT, poison=POISON)
    post(workspace, lines)

    await_drained(workspace)

    left = Episode.objects.for_workspace(workspace).pending()
    assert list(left) == []
    dead = dict(Episode.objects.dead().values_list("text", "state_reason"))
    assert dead == {line.text: "embedding: bad_request" for line in lines if line.is_poison}
    assert Episode.objects.for_workspace(workspace).count() == COUNT
    assert Cycle.objects.filter(trigger="backlog").count() >= 3
    assert not Cycle.objects.filter(trigger__in=("person", "schedule")).exists()
    assert Belief.objects.exists()
    assert find_drift(workspace=workspace)[1] == []


def post(workspace: Workspace, lines: list[Line]) -> None:
    """Post episodes as a client does, in batches."""
    writer = caller("write", workspace=workspace)
    for start in range(0, len(lines), 100):
        batch = [
            {"text": line.text, "session": line.session, "source": "human", "user": "ines"}
            for line in lines[start : start + 100]
        ]
        assert writer.post("/episodes", {"episodes": batch}).status_code == 201


def await_drained(workspace: Workspace) -> None:
    """Wait until nothing is pending and no cycle is open, sweeping as beat would have it done."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while Episode.objects.for_workspace(workspace).pending().exists() or Cycle.objects.open().exists():
        cycles = list(Cycle.objects.order_by("opened_at").values_list("trigger", "state", "counts"))
        assert time.monotonic() < deadline, f"the backlog is not drained: {cycles}"
        tasks.sweep.delay()
        time.sleep(_SWEEP_SECONDS)
