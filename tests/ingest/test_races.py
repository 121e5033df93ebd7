"""Writers of the same words at the same time."""

import threading
from collections.abc import Callable, Sequence

import psycopg
import pytest
from django.db import OperationalError, connection

from memory.ingest import store
from memory.ingest.schemas import EpisodeLine, IngestContext, Outcome, Stored
from memory.models import Episode, Project, Workspace
from tests import factories
from tests.ingest.arriving import take

pytestmark = pytest.mark.django_db(transaction=True)

WRITERS = 4


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def race(write: Callable[[int], list[Outcome]]) -> list[list[Outcome]]:
    """Let writers, each with a connection of its own, start at the same moment."""
    gate, answers = threading.Barrier(WRITERS), {}

    def run(number: int) -> None:
        try:
            gate.wait()
            answers[number] = write(number)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[number] for number in range(WRITERS)]


def test_racing_writers_of_one_text_make_one_episode(workspace: Workspace) -> None:
    """L4: one stores it, the others are told its id."""
    answers = race(lambda _: take({"text": "Tabs.", "session": "s", "project": "p"}, workspace=workspace))
    outcomes = [outcome for (outcome,) in answers if isinstance(outcome, Stored)]
    assert [outcome.id for outcome in outcomes] == [Episode.objects.get().pk] * WRITERS
    assert sorted(outcome.is_duplicate for outcome in outcomes) == [False, True, True, True]
    assert Project.objects.count() == 1


def test_racing_batches_in_opposite_order_store_everything_once(workspace: Workspace) -> None:
    """L4: no deadlock loses a batch."""
    lines = [{"text": f"Ada: line {n}", "session": f"s{n % 5}"} for n in range(100)]
    answers = race(lambda number: take(*(lines if number % 2 else lines[::-1]), workspace=workspace))
    stored = [outcome for outcomes in answers for outcome in outcomes if isinstance(outcome, Stored)]
    assert len(stored) == WRITERS * 100
    assert sum(not outcome.is_duplicate for outcome in stored) == Episode.objects.count() == 100
    assert set(Episode.objects.values_list("speaker", flat=True)) == {"Ada"}


def test_racing_turns_of_one_session_find_their_speaker(workspace: Workspace) -> None:
    """B1: whoever comes second sees the first one's turn."""
    race(lambda number: take({"text": f"Mara: turn {number}", "session": "s"}, workspace=workspace))
    assert set(Episode.objects.values_list("speaker", flat=True)) == {"Mara"}


def test_racing_lines_of_one_key_leave_one(workspace: Workspace) -> None:
    """L4: the key is unique; whoever comes later has the conflict."""
    answers = race(lambda number: take({"text": f"Text {number}.", "idempotency_key": "k"}, workspace=workspace))
    stored = [outcome for (outcome,) in answers if isinstance(outcome, Stored)]
    assert [outcome.id for outcome in stored] == [Episode.objects.get().pk]
    assert sorted(outcome.status for (outcome,) in answers if not isinstance(outcome, Stored)) == [409] * 3


def test_writer_that_a_deadlock_picked_tries_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch is lost to chance."""
    original, tries = store._store_batch, []

    def lose_once(lines: Sequence[EpisodeLine], arrival: IngestContext) -> list[Outcome]:
        tries.append(len(lines))
        if len(tries) == 1:
            raise OperationalError("deadlock detected") from psycopg.errors.DeadlockDetected()
        return original(lines, arrival)

    monkeypatch.setattr(store, "_store_batch", lose_once)
    (outcome,) = take("Tabs.", workspace=workspace)
    assert isinstance(outcome, Stored)
    assert tries == [1, 1]
