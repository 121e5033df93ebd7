"""B9, B11: whatever a model server does, cycles end, the ledger is right, memory stays small, and nothing is lost.

Each mode of the evil server meets the tasks as the canvas sends them, first as the server of vectors, then as that of
words; a recall is answered meanwhile. Then the server behaves, and the next cycle makes of the same episodes what it
would have made of them at once.
"""

import time
from collections.abc import Iterator, Sequence

import psutil
import pytest

from beliefsite.celery import app
from memory.consolidation.cycle import open_cycle
from memory.consolidation.schedule import sweep
from memory.models import CallOutcome, Cycle, CycleStep, Episode, ModelCall, Trigger
from tests.api.caller import caller
from tests.consolidation.conftest import Decree
from tests.consolidation.test_faults import assert_undisturbed, say_locks
from tests.consolidation.world import World
from tests.model_server_acts import Act
from tests.model_server_evils import (
    ABSURD_USAGE,
    IN_ANY_JSON,
    IN_CHAT,
    IN_THE_STATUS,
    IN_VECTORS,
    MEGABYTE,
    NEEDS_TWO,
    ON_THE_WIRE,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("hasty", "inline_tasks", "short_deadlines"),
    pytest.mark.django_db(transaction=True),  # as for messages that are sent once rows are committed
]

USAGE = {name: ABSURD_USAGE[name] for name in ("usage negative", "usage 1e30", "usage beyond the column")}
OF_EITHER = {**ON_THE_WIRE, **IN_THE_STATUS, **IN_ANY_JSON, **USAGE}
CHAT = ("read", "synthesize", "classify", "revise", "split", "merge")
READ_AT_MOST = MEGABYTE
IN_FLIGHT = 8 * MEGABYTE  # what the kernel may hold between two sockets
MOST_MEMORY = 600 * MEGABYTE
SECONDS = 0.25  # of a call
PATIENCE_SECONDS = 30.0
BUSY_SECONDS = 5.0  # for a machine that runs a whole suite beside it; what waited for the server would take eight


@pytest.fixture
def inline_tasks() -> Iterator[None]:
    """Run tasks where they are sent from: the chords and chains of a whole cycle, one after the other."""
    app.loader.import_default_modules()
    app.conf.task_always_eager = True
    yield
    app.conf.task_always_eager = False


@pytest.fixture
def short_deadlines(decree: Decree) -> None:
    """Give calls little time, and their answers a megabyte."""
    decree("budget", call_seconds=SECONDS, call_attempts=2, margin_seconds=0.1, wait_seconds=0.2, working_seconds=20.0)
    decree("budget", reply_bytes=READ_AT_MOST)
    decree("reading", seconds=SECONDS)
    decree("recall", embed_seconds=SECONDS)


@pytest.fixture
def small_memory() -> Iterator[None]:
    """See that this process, the evil server with it, has not grown much."""
    process = psutil.Process()
    before = process.memory_info().rss
    yield
    assert process.memory_info().rss - before < MOST_MEMORY


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("mode", OF_EITHER)
def test_a_server_that_does_evil_to_any_call(world: World, decree: Decree, mode: str) -> None:
    said = say_locks(world)
    suffer(world, OF_EITHER[mode], ("embed",))
    assert_recall_answers(world, OF_EITHER[mode])
    suffer(world, OF_EITHER[mode], CHAT)
    recover(world, said, decree)


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("mode", IN_CHAT)
def test_a_server_whose_words_are_evil(world: World, decree: Decree, mode: str) -> None:
    said = say_locks(world)
    suffer(world, IN_CHAT[mode], CHAT)
    recover(world, said, decree)


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("mode", IN_VECTORS)
def test_a_server_whose_vectors_are_evil(world: World, decree: Decree, mode: str) -> None:
    said = say_locks(world)
    suffer(world, IN_VECTORS[mode], ("embed",))
    assert_recall_answers(world, IN_VECTORS[mode])
    recover(world, said, decree)


def suffer(world: World, act: Act, purposes: Sequence[str]) -> None:
    """Run a cycle while every call of these purposes meets the same evil."""
    world.trouble.broken.update(dict.fromkeys(purposes, act))
    asked = len(world.server.log)

    cycle = run_cycle(world)

    world.check(cycle)
    assert_settled(world, cycle)
    evil = [call for call in world.server.log[asked:] if call.purpose in purposes]
    assert evil, "nobody met the evil"
    assert all(call.sent < READ_AT_MOST + IN_FLIGHT for call in evil)
    world.trouble.broken.clear()


def recover(world: World, said: list[Episode], decree: Decree) -> None:
    """Run a cycle with a server that behaves: it takes the same episodes up, and makes of them what they say."""
    decree("budget", call_seconds=10.0)  # a good answer may take its time on a busy machine

    cycle = run_cycle(world)

    assert cycle.state == "finished"
    assert_settled(world, cycle)
    assert_undisturbed(world, said)


def run_cycle(world: World) -> Cycle:
    """Open a cycle, which sends its first message, and sweep as workers do until it has ended."""
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    ends_by = time.monotonic() + PATIENCE_SECONDS
    while not (cycle := Cycle.objects.get(pk=cycle.pk)).finished_at:
        assert time.monotonic() < ends_by, f"{cycle.pk} does not end: {cycle.state} in attempt {cycle.attempt}"
        sweep()
        time.sleep(0.05)
    return cycle


def assert_settled(world: World, cycle: Cycle) -> None:
    """Assert that nothing hangs in the air after a cycle."""
    assert cycle.state in ("finished", "over_budget")
    assert not ModelCall.objects.filter(outcome=CallOutcome.OPEN).exists()
    assert not CycleStep.objects.filter(cycle=cycle, finished_at=None).exists()
    assert not Episode.objects.filter(workspace=world.workspace, dead_at__isnull=False).exists()
    assert not ModelCall.objects.filter(outcome=CallOutcome.OWN_ERROR).exists()


def assert_recall_answers(world: World, act: Act) -> None:
    """Ask by words that were said, while the server of vectors does evil."""
    world.trouble.broken["embed"] = act
    began = time.monotonic()

    response = caller("read", workspace=world.workspace).post("/recall", {"query": "lock of the archive"})

    assert response.status_code == 200, response.content
    assert [result["text"] for result in response.json()["results"]]
    assert response.json()["degraded"] or act in [IN_VECTORS[name] for name in NEEDS_TWO]
    assert time.monotonic() - began < SECONDS + BUSY_SECONDS
    assert not ModelCall.objects.filter(outcome=CallOutcome.OPEN).exists()
    world.trouble.broken.clear()
