"""What a recall changes: counts, times and stability, and nothing else."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from memory.models import BeliefAccess, EpisodeAccess, ShownMemory, Workspace
from memory.recall.usage import _COUNT_ACCESS, note_shown
from memory.search.prepared import TimedSearch, run_prepared
from tests import factories
from tests.recall.memories import ask, believed, remembered, rows_read

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def test_recall_counts_the_episodes_it_answers_with(workspace: Workspace) -> None:
    shown = remembered("Mara likes tea.", workspace=workspace)
    remembered("A sofa was moved.", workspace=workspace)
    later = factories.NOW + timedelta(days=1)
    ask("Mara tea", workspace=workspace, limit=1)
    ask("Mara tea", workspace=workspace, limit=1, now=later)
    assert list(EpisodeAccess.objects.values_list("episode", "workspace", "access_count", "accessed_at")) == [
        (shown.pk, workspace.pk, 2, later)
    ]


def test_recall_makes_a_belief_last_longer(workspace: Workspace) -> None:
    """B5: S·(1 + 0.1·ln(1 + days)), from creation first and then from the last access."""
    believed("Mara prefers tea.", workspace=workspace)
    for days in (3, 10):
        ask("Mara tea", workspace=workspace, now=factories.NOW + timedelta(days=days))
    access = BeliefAccess.objects.get()
    assert access.stability == pytest.approx((1 + 0.1 * math.log(4)) * (1 + 0.1 * math.log(8)))
    assert (access.access_count, access.accessed_at) == (2, factories.NOW + timedelta(days=10))


def test_recall_never_raises_confidence(workspace: Workspace) -> None:
    """B4: retrieval raises stability only."""
    belief = believed("Mara prefers tea.", workspace=workspace)
    for _ in range(5):
        ask("Mara tea", workspace=workspace)
    belief.refresh_from_db()
    assert (belief.alpha, belief.beta, belief.updated_at) == (6.0, 1.0, factories.NOW)


def test_a_clock_set_back_takes_nothing_away(workspace: Workspace) -> None:
    """B5."""
    believed("Mara prefers tea.", workspace=workspace)
    ask("Mara tea", workspace=workspace, now=factories.NOW + timedelta(days=3))
    before = BeliefAccess.objects.get()
    ask("Mara tea", workspace=workspace, now=factories.NOW)
    after = BeliefAccess.objects.get()
    assert (after.stability, after.accessed_at) == (before.stability, before.accessed_at)


def test_an_answer_is_not_lost_because_it_could_not_be_counted(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = remembered("Mara likes tea.", workspace=workspace)
    monkeypatch.setattr("memory.recall.usage._COUNT_ACCESS", "SELECT 1/0")
    assert [result.id for result in ask("Mara tea", workspace=workspace).results] == [episode.pk]
    assert not EpisodeAccess.objects.exists()


def test_a_count_looks_beliefs_up_by_their_key(workspace: Workspace) -> None:
    """B5: however many there are, among the settings of a search."""
    shown, *_ = [believed(f"Tea {number} is good.", workspace=workspace).pk for number in range(60)]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_belief")
    asked: dict[str, Any] = {"episodes": [], "beliefs": [shown], "grown": [1.0], "now": factories.NOW}

    def count() -> int:
        before = rows_read("memory_belief")
        run_prepared(statement=_COUNT_ACCESS, parameters=asked, keeps_plan=True)
        assert BeliefAccess.objects.get().belief_id == shown
        return rows_read("memory_belief") - before

    with TimedSearch(effort=64) as timed:
        assert timed.run(count, seconds=5.0) == 1


@pytest.mark.django_db(transaction=True)
def test_a_recall_counts_in_one_statement(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B5: both kinds at once, as the last of the search's transaction, whose commit waits for no disk."""
    remembered("Mara likes tea.", workspace=workspace)
    believed("Mara prefers tea.", workspace=workspace)
    noted: list[tuple[bool, str]] = []
    modes: list[Any] = []

    def run(*, statement: str, **options: Any) -> Any:
        noted.append((connection.in_atomic_block, statement))
        modes.append(connection.connection.execute("SELECT current_setting('synchronous_commit')"))
        return run_prepared(statement=statement, **options)

    monkeypatch.setattr("memory.recall.usage.run_prepared", run)
    ask("Mara tea", workspace=workspace)
    [(is_inside, statement)] = noted
    assert (is_inside, "INSERT" in statement) == (True, True)
    assert [mode.fetchone() for mode in modes] == [("off",)]
    assert (EpisodeAccess.objects.get().access_count, BeliefAccess.objects.get().access_count) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_not_lost_because_its_count_could_not_be_committed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: what is counted of a memory that was erased meanwhile is refused only in the end."""
    episode = remembered("Mara likes tea.", workspace=workspace)
    orphan = "INSERT INTO memory_episodeaccess (episode_id, workspace_id, accessed_at, access_count)"
    monkeypatch.setattr(
        "memory.recall.usage._COUNT_ACCESS", f"{orphan} SELECT 'ep_gone', {workspace.pk}, %(now)s::timestamptz, 1"
    )
    recalled = ask("Mara tea", workspace=workspace, session="s-1")
    assert [result.id for result in recalled.results] == [episode.pk]
    assert not EpisodeAccess.objects.exists()
    assert [row.episode_id for row in ShownMemory.objects.all()] == [episode.pk]


@pytest.mark.django_db(transaction=True)
def test_recalls_at_once_are_all_counted(workspace: Workspace) -> None:
    """Two recalls that touch the same memories in another order neither block each other nor lose a count."""
    for number in range(8):
        remembered(f"Tea number {number}.", workspace=workspace)
        believed(f"Tea {number} is good.", workspace=workspace)
    queries = ["tea number 1", "is tea 7 good", "good tea", "number 5"] * 3

    def recall_once(query: str) -> None:
        ask(query, workspace=workspace, limit=50)
        connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(recall_once, queries))
    assert set(EpisodeAccess.objects.values_list("access_count", flat=True)) == {len(queries)}
    assert set(BeliefAccess.objects.values_list("access_count", flat=True)) == {len(queries)}


@pytest.mark.django_db(transaction=True)
def test_an_answer_waits_for_no_erasing(workspace: Workspace) -> None:
    """B5, Echo: what somebody else holds is not waited for; the answer is then neither counted nor noted."""
    episode = remembered("Mara likes tea.", workspace=workspace)
    facts = connection.settings_dict
    with (
        psycopg.connect(host=facts["HOST"], port=facts["PORT"], user=facts["USER"], dbname=facts["NAME"]) as other,
        connection.cursor() as cursor,
    ):
        cursor.execute("SET statement_timeout = '3s'")
        other.execute("SELECT FROM memory_episode WHERE id = %s FOR UPDATE", [episode.pk])
        began = time.monotonic()
        recalled = ask("Mara tea", workspace=workspace, session="s-1")
        waited = time.monotonic() - began
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)
        cursor.execute("RESET statement_timeout")
    assert [result.id for result in recalled.results] == [episode.pk]
    assert waited < 3
    assert not EpisodeAccess.objects.exists()
    assert not ShownMemory.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_an_answer_outlives_what_it_was_made_of(workspace: Workspace) -> None:
    """Echo: a memory that was erased meanwhile is noted for no session, and the others are."""
    erased, kept = (remembered(text, workspace=workspace) for text in ("Mara likes tea.", "Mara has tea."))
    results = ask("Mara tea", workspace=workspace).results
    erased.delete()
    note_shown(workspace=workspace, session="s-1", memories=results, now=factories.NOW)
    assert [row.episode_id for row in ShownMemory.objects.all()] == [kept.pk]
