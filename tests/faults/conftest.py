"""A scripted world whose cycles are run by real workers."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from memory.domain.policy import policy_from_environment
from memory.llm.openai_models import DIALECTS
from tests import factories
from tests.consolidation.world import MODEL, TroubledServer, World
from tests.faults.record import LOG_VARIABLE, FaultRecord
from tests.faults.story import Outcome, await_end, begin, check_whole, read_outcome, tell_story
from tests.faults.windows import broker
from tests.faults.workforce import Workforce, worker_environment

HAS_REAL_TIMEOUTS = os.environ.get("ENGRAM_REAL_TIMEOUTS") == "1"
TIMEOUTS = (
    {}
    if HAS_REAL_TIMEOUTS
    else {
        "ENGRAM_BUDGET_LEASE_SECONDS": "2",
        "ENGRAM_BUDGET_RENEW_SECONDS": "0.5",
        "ENGRAM_BUDGET_SWEEP_SECONDS": "0.5",
        "ENGRAM_BUDGET_CALL_SECONDS": "5",
        "ENGRAM_VISIBILITY_TIMEOUT": "6",
        "DJANGO_SETTINGS_MODULE": "tests.faults.hasty_settings",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder: real processes, real commits."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.faults)
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture(scope="package")
def running_server() -> Iterator[TroubledServer]:
    """Run one server for all tests of the folder, so that a worker can outlive a test."""
    with TroubledServer() as running:
        yield running
    DIALECTS.forget()


@pytest.fixture
def server(running_server: TroubledServer) -> TroubledServer:
    """Return the server in order, with nothing in its log."""
    running_server.mend()
    return running_server


@pytest.fixture(scope="package")
def workforce(
    running_server: TroubledServer, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workforce]:
    """Return workers on the suite's database and broker, and send them home at the end."""
    with broker() as client:
        client.flushdb()  # what other tests have sent is nobody's business here
    environment = worker_environment(model_url=running_server.url, embedding_model=MODEL, timeouts=TIMEOUTS)
    force = Workforce(folder=tmp_path_factory.mktemp("workers"), environment=environment)
    yield force
    force.go_home()


@pytest.fixture
def world(transactional_db: None, server: TroubledServer, settings: Settings) -> World:
    """Return a workspace of the story, with the models and time-outs that the workers have."""
    settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "openai"
    settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = server.url
    settings.OPENAI_API_KEY, settings.ENGRAM_EMBEDDING_MODEL = "", MODEL
    settings.POLICY = policy_from_environment(TIMEOUTS)
    return World(server=server, workspace=factories.workspace())


@pytest.fixture
def patience(world: World, settings: Settings) -> dict[str, str]:
    """Let leases and calls last longer where nothing dies, in this process too; return what its workers need for that.

    Work that a slow machine holds up for two seconds would look abandoned, a call that it holds up for five would time
    out, and both would be done again. A chord that counts each result twice waits for the sweeper, and the sweeper for
    a lease: so it is not much longer.
    """
    longer = {"ENGRAM_BUDGET_LEASE_SECONDS": "8", "ENGRAM_BUDGET_CALL_SECONDS": "20"}
    settings.POLICY = policy_from_environment(TIMEOUTS | longer)
    return longer


@pytest.fixture
def record() -> Iterator[FaultRecord]:
    """Return a record of the test's fault, written down where the environment says, once the test is over."""
    one = FaultRecord()
    yield one
    if path := os.environ.get(LOG_VARIABLE):
        one.write(Path(path))


_KNOWN: dict[str, Outcome] = {}


@pytest.fixture
def undisturbed(world: World, workforce: Workforce, server: TroubledServer) -> Outcome:
    """Return what comes of the story where nothing goes wrong: a real worker's run, made once."""
    if "outcome" not in _KNOWN:
        calm = World(server=server, workspace=factories.workspace())
        tell_story(calm)
        workforce.worker()
        begun = time.monotonic()
        cycle = await_end(begin(calm))
        seconds = time.monotonic() - begun
        check_whole(cycle)
        _KNOWN["outcome"] = read_outcome(calm.workspace, seconds=seconds)
        server.log.clear()
        server.embed, server.script = world.directions, world.answer
    return _KNOWN["outcome"]
