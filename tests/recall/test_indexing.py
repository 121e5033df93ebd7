"""Approximate indexes are built where they are worth it, once, and dropped where they are not."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.conf import settings
from django.db import OperationalError, connection

from memory.llm.offline import static_embedder
from memory.models import EpisodeEmbedding, Workspace
from memory.models.fields import VectorKind
from memory.search.plan import IndexBuilderBusy, keep_indexes, keep_indexes_after_others, wanted_indexes
from memory.search.scope import recount_vectors
from memory.search.vectors import StoredIndex, VectorIndex, build_index, drop_index, filled_dimensions, stored_indexes
from tests import factories
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = "wordllama-l2-supercat-256"


@pytest.fixture(autouse=True)
def few(with_numbers: Callable[..., None]) -> Iterator[None]:
    """Let few vectors be worth an index, and leave none behind."""
    with_numbers(exact_vectors=4)
    yield
    for kind in VectorKind:
        for index in stored_indexes(kind=kind):
            drop_index(name=index.name)


def _filled(count: int) -> Workspace:
    workspace = factories.workspace()
    for number in range(count):
        remembered(f"Note {number} is about otters.", workspace=workspace, embedded_as=f"otter {number}")
    return workspace


def _keep() -> int:
    return keep_indexes(policy=settings.POLICY.recall)


SHARED = VectorIndex(kind=VectorKind.EPISODE, model=MODEL).name


def _own(workspace: Workspace) -> str:
    return VectorIndex(kind=VectorKind.EPISODE, workspace_id=workspace.pk, model=MODEL).name


def _names() -> set[str]:
    return {index.name for index in stored_indexes(kind=VectorKind.EPISODE)}


def test_each_large_workspace_gets_an_index_of_its_own() -> None:
    """B17: a small one does not, and looking again builds nothing."""
    large, larger, _ = _filled(5), _filled(6), _filled(4)
    assert _keep() == 2
    assert _names() == {_own(large), _own(larger)}
    assert _keep() == 0


def test_who_has_most_vectors_shares_the_index_over_all() -> None:
    """B17: one of its own would hold nearly the same."""
    _filled(9)
    other = _filled(5)
    _keep()
    assert _names() == {SHARED, _own(other)}


def test_an_index_over_all_of_a_model_goes_by_how_many_vectors_that_model_has() -> None:
    """B17: while a workspace moves to another, it has as many of both, and would not have half of all together."""
    counts = Counter({(1, "old"): 9, (1, "new"): 9, (2, "old"): 5})
    wanted = wanted_indexes(kind=VectorKind.EPISODE, counts=counts, policy=settings.POLICY.recall)
    assert {(index.model, index.workspace_id) for index in wanted} == {("old", None), ("new", None), ("old", 2)}


@pytest.mark.parametrize("name", ["episode_vectors_hnsw", "episode_vectors_hnsw_all_00000000"])
def test_an_index_that_is_made_otherwise_today_is_replaced(name: str) -> None:
    """B17."""
    _filled(5)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX {name} ON memory_episodeembedding USING hnsw (vector halfvec_cosine_ops)")
    _keep()
    assert _names() == {SHARED}


def test_an_index_knows_the_dimensions_that_a_model_fills() -> None:
    """B17: the others are 0 in all vectors, and in what is asked for."""
    model = static_embedder()
    vectors = model.embed(["Otters swim.", "a", "Ελένη 7"])
    assert (model.name, vectors.shape) == (MODEL, (3, 768))
    assert (filled_dimensions(model=MODEL), filled_dimensions(model="another")) == (256, None)
    assert vectors[:, 255].any()
    assert not vectors[:, 256:].any()
    _filled(5)
    _keep()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef(%s::regclass)", [SHARED])
        assert "halfvec(256)" in cursor.fetchone()[0]


def test_an_index_goes_with_its_workspace() -> None:
    """B17."""
    workspace, other = _filled(5), _filled(6)
    _keep()
    assert _names() == {_own(workspace), SHARED}
    other.delete()
    workspace.delete()
    _keep()
    assert _names() == set()


@pytest.mark.parametrize(("left", "is_kept"), [(3, True), (2, False)])
def test_an_index_is_dropped_once_its_workspace_is_well_below(left: int, is_kept: bool) -> None:
    """B17: at half of what is worth one, so that none is built and dropped in turn."""
    workspace, _ = _filled(5), _filled(6)
    _keep()
    kept = EpisodeEmbedding.objects.filter(workspace=workspace).values_list("pk", flat=True)[:left]
    EpisodeEmbedding.objects.filter(workspace=workspace).exclude(pk__in=list(kept)).update(is_active=False)
    _keep()
    assert (_own(workspace) in _names()) is is_kept


def test_what_a_killed_build_left_is_cleaned_up_and_built_again() -> None:
    """B17: an index that is not valid is used by nobody, and every write pays for it."""
    workspace, _ = _filled(5), _filled(6)
    _keep()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [_own(workspace)])
    assert _keep() == 1
    assert StoredIndex(name=_own(workspace), workspace_id=workspace.pk, is_valid=True) in stored_indexes(
        kind=VectorKind.EPISODE
    )


def test_there_are_never_two_builders_at_once(other: psycopg.Connection) -> None:
    """B17: whoever comes second has nothing to do, until the first is gone."""
    _filled(5)
    other.execute("SELECT pg_advisory_lock(4, 0)")
    assert (_keep(), _names()) == (0, set())
    other.execute("SELECT pg_advisory_unlock(4, 0)")
    assert _keep() == 1


@pytest.fixture
def other() -> Iterator[psycopg.Connection]:
    """Yield another session, outside of any transaction."""
    facts = connection.settings_dict
    named = {"host": facts["HOST"], "port": facts["PORT"], "user": facts["USER"], "dbname": facts["NAME"]}
    with psycopg.connect(**named, autocommit=True) as session:
        yield session


def test_who_waits_builds_once_the_other_is_done(other: psycopg.Connection) -> None:
    """B8a: a workspace moves to a model whose index is there."""
    workspace, _ = _filled(5), _filled(6)
    other.execute("SELECT pg_advisory_lock(4, 0)")
    ending = threading.Timer(0.4, other.execute, ["SELECT pg_advisory_unlock(4, 0)"])
    ending.start()
    assert keep_indexes_after_others(policy=settings.POLICY.recall, wait_seconds=30) == 2
    ending.join()
    assert _own(workspace) in _names()


def test_who_waits_stands_in_no_builders_way(other: psycopg.Connection) -> None:
    """B8a: the making of an index beside all others waits for every statement that began before it, and for no lock."""
    _filled(5)
    other.execute("SELECT pg_advisory_lock(4, 0)")
    making = threading.Thread(target=other.execute, args=["CREATE INDEX CONCURRENTLY own ON memory_episode (id)"])
    making.start()
    with pytest.raises(IndexBuilderBusy, match="for 1 s"):
        keep_indexes_after_others(policy=settings.POLICY.recall, wait_seconds=1)
    making.join(timeout=10)
    other.execute("DROP INDEX own")  # it waits for none either
    assert _names() == set()


def test_what_cannot_be_counted_holds_up_no_other_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """B17."""
    workspace = factories.workspace()
    for number in range(5):
        believed(f"Otters like river {number}.", workspace=workspace)

    def count(*, kind: VectorKind) -> None:
        if kind == VectorKind.EPISODE:
            raise OperationalError("deadlock detected")
        recount_vectors(kind=kind)

    monkeypatch.setattr("memory.search.plan.recount_vectors", count)
    assert _keep() == 1
    assert {index.name for index in stored_indexes(kind=VectorKind.BELIEF)} == {
        VectorIndex(kind=VectorKind.BELIEF, model=MODEL).name
    }


def test_an_index_that_cannot_be_built_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """B17."""
    workspace, other, more = _filled(5), _filled(6), _filled(7)
    _fail_to_build(_own(workspace), monkeypatch)
    assert (_keep(), _names()) == (2, {_own(other), _own(more)})
    monkeypatch.undo()
    assert (_keep(), _names()) == (1, {_own(workspace), _own(other), _own(more)})


def test_an_index_that_cannot_be_built_keeps_none_of_a_workspace_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """B17."""
    workspace, gone, other = _filled(5), _filled(6), _filled(7)
    _keep()
    gone.delete()
    _fail_to_build(_own(_filled(8)), monkeypatch)
    assert (_keep(), _names()) == (0, {_own(workspace), _own(other)})


def test_an_index_stays_until_what_replaces_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """B17."""
    workspace = _filled(5)
    build_index(index=VectorIndex(kind=VectorKind.EPISODE, workspace_id=workspace.pk, model=MODEL), memory_megabytes=16)
    _fail_to_build(SHARED, monkeypatch)
    assert (_keep(), _names()) == (0, {_own(workspace)})
    monkeypatch.undo()
    assert (_keep(), _names()) == (1, {SHARED})


def test_an_index_that_no_search_uses_waits_for_none_that_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """B17: every write pays for it."""
    workspace, _ = _filled(5), _filled(13)
    _keep()
    with connection.cursor() as cursor:
        for name in ("episode_vectors_hnsw_all_00000000", f"episode_vectors_hnsw_{workspace.pk}_00000000"):
            cursor.execute(f"CREATE INDEX {name} ON memory_episodeembedding USING hnsw (vector halfvec_cosine_ops)")
    _fail_to_build(_own(_filled(7)), monkeypatch)
    assert (_keep(), _names()) == (0, {_own(workspace), SHARED})


def _fail_to_build(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*, index: VectorIndex, memory_megabytes: int) -> None:
        if index.name == name:
            raise OperationalError("could not resize shared memory segment")
        build_index(index=index, memory_megabytes=memory_megabytes)

    monkeypatch.setattr("memory.search.plan.build_index", build)


def test_an_indexed_workspace_answers_as_before(with_numbers: Callable[..., None]) -> None:
    """B17: by the index, with as many results as there are, whoever else has vectors nearby."""
    workspace, _ = _filled(40), _filled(30)
    for number in range(12):
        remembered(f"Note {number} of Ada.", workspace=workspace, user="ada", embedded_as="a distant city")
    before = ask("otter 7", workspace=workspace)
    _keep()
    after = ask("otter 7", workspace=workspace)
    assert [result.id for result in after.results] == [result.id for result in before.results]
    with_numbers(least_index_share=0.0)
    assert len(ids(ask("otter 7", workspace=workspace, user="ada", limit=52))) == 52


def test_what_is_nearest_and_of_another_agent_hides_nothing() -> None:
    """B17: rows of vectors know no agents; the search goes on in the index until enough are this one's."""
    workspace, _ = factories.workspace(), _filled(60)
    for number in range(70):
        remembered(f"Tuna {number}", workspace=workspace, embedded_as="tuna", agent="bob")
    wanted = {remembered(f"Otter {number}", workspace=workspace, agent="ada").pk for number in range(12)}
    _keep()
    assert ids(ask("pets eating fish", workspace=workspace, agent="ada", limit=12)) == wanted
