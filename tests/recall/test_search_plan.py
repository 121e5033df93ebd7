"""How vectors are searched goes by how many there are, and never costs a result."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from memory.llm.offline import static_embedder
from memory.models import Project, Workspace
from memory.models.fields import VectorKind
from memory.search.hybrid import ContextShares, search_episodes
from memory.search.plan import SearchPlanner, choose_arm, choose_effort, choose_lookup, read_sizes
from memory.search.prepared import TimedSearch, raw_cursor
from memory.search.scope import ScopeSize, SearchScope, VectorMethod, count_user_vectors, measure_scope, recount_vectors
from memory.search.statements import SearchQuery, TextMethod, episodes_statement, search_parameters
from memory.search.vectors import VectorIndex
from memory.search.words import read_query_words
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, ids, remembered

POLICY = settings.POLICY.recall
MODEL = "wordllama-l2-supercat-256"
MANY = POLICY.exact_vectors + 1


@pytest.mark.parametrize(
    ("count", "index", "indexed", "arm"),
    [
        (POLICY.exact_vectors, VectorMethod.OWN_INDEX, 10_000, VectorMethod.SCAN),
        (MANY, VectorMethod.NONE, 0, VectorMethod.SCAN),
        (MANY, VectorMethod.OWN_INDEX, MANY, VectorMethod.OWN_INDEX),
        (10 * MANY, VectorMethod.SHARED_INDEX, 80 * MANY, VectorMethod.SHARED_INDEX),
        (10 * MANY, VectorMethod.SHARED_INDEX, 110 * MANY, VectorMethod.SCAN),
        (1_000 * MANY, VectorMethod.SHARED_INDEX, 101_000 * MANY, VectorMethod.SCAN),
    ],
)
def test_the_arm_goes_by_the_size_of_the_scope(
    count: int, index: VectorMethod, indexed: int, arm: VectorMethod
) -> None:
    """B17: few vectors are all compared, and so is what is too small a share of an index, at least a hundredth."""
    assert choose_arm(count=count, index=index, indexed=indexed, policy=POLICY) == arm


@pytest.mark.parametrize(
    ("count", "indexed", "effort"),
    [
        (10_000, 10_000, 64),
        (10_500, 10_000, 64),
        (9_900, 10_000, 67),
        (9_000, 10_000, 89),
        (10, 1_000, 160),
        (0, 0, 160),
    ],
)
def test_an_index_keeps_as_many_more_in_view_as_are_not_asked_for(count: int, indexed: int, effort: int) -> None:
    """B17: to find by a second pass what the first one lacks takes longer."""
    assert choose_effort(count=count, indexed=indexed, policy=POLICY) == effort


def test_no_index_is_asked_to_keep_more_in_view_than_it_can() -> None:
    policy = replace(POLICY, search_effort=500)
    assert choose_effort(count=500, indexed=1_000, policy=policy) == 1_000


@pytest.mark.parametrize(
    ("documents", "stored", "lookup"),
    [
        (1_000, 10_000, TextMethod.BY_WORDS),
        (999, 10_000, TextMethod.BY_WORKSPACE),
        (0, 0, TextMethod.BY_WORKSPACE),
        (5_001, 0, TextMethod.PLANNED),
        (5_000, 1_000_000, TextMethod.BY_WORKSPACE),
        (5_001, 1_000_000, TextMethod.PLANNED),
    ],
)
def test_words_are_looked_up_by_the_share_of_all_texts(documents: int, stored: int, lookup: TextMethod) -> None:
    """B17: an index over words finds everybody's."""
    assert choose_lookup(documents=documents, stored=stored, policy=POLICY) == lookup


@pytest.mark.django_db
@pytest.mark.parametrize("lookup", TextMethod)
@pytest.mark.parametrize("arm", [VectorMethod.NONE, VectorMethod.SCAN, VectorMethod.SHARED_INDEX, VectorMethod.JOIN])
@pytest.mark.parametrize(
    "narrowed",
    [
        {},
        {"user": "ada", "agent": "scout"},
        {"occurred": (NOW - timedelta(days=1), None)},
        {"categories": ("fact",), "fact_types": ("preference",), "hidden_states": ("stale",)},
        {"with_expired": True},
    ],
    ids=str,
)
def test_every_way_and_every_narrowing_finds_the_same(
    lookup: TextMethod, arm: VectorMethod, narrowed: dict[str, Any]
) -> None:
    """B17: ways differ in speed; what does not narrow is left out of a statement, and what does is not."""
    workspace = factories.workspace()
    project, other = factories.project(workspace=workspace), factories.project(workspace=workspace)
    told: dict[str, Any] = {"user": "ada", "agent": "scout", "occurred_at": NOW, "category": "fact"}
    wanted = remembered("Parrots talk.", workspace=workspace, project=project, **told)
    remembered("Parrots talk to others.", workspace=workspace, project=other, **told)
    if narrowed:
        misfit: dict[str, Any] = {"user": "bob", "occurred_at": NOW - timedelta(days=2), "lifecycle_state": "stale"}
        expired = {"valid_until": NOW - timedelta(days=1)}
        remembered("Parrots talk elsewhere.", workspace=workspace, project=project, **(told | misfit | expired))
    for projects in ((project.pk,), (project.pk, 0)):
        found = search_episodes(
            reach=_reach(workspace, projects=projects, allowed=(), **narrowed),
            query=SearchQuery(
                vector=static_embedder().embed(["parrots"])[0],
                model=MODEL,
                words=read_query_words(
                    query="parrots", workspace_id=workspace.pk, is_telling=str.isalpha, policy=POLICY
                ),
                arm=arm,
                lookup=lookup,
            ),
            candidates=50,
            matching=100,
            context=ContextShares(next_share=0.4, answer_share=0.8, second_share=0.2, context_matches=20),
        ).found
        expected = 2 if narrowed == {"with_expired": True} else 1
        assert (len(found), wanted.pk in {episode.id for episode in found}) == (expected, True)


def _reach(workspace: Workspace, **given: object) -> SearchScope:
    fields = {"workspace_id": workspace.pk, "projects": None, "allowed": None, "user": "", "now": NOW}
    return SearchScope(**fields | given)  # type: ignore[arg-type]


@pytest.mark.django_db
def test_kept_counts_say_how_many_vectors_a_scope_has() -> None:
    """B17: by project, active ones alone; those of a user are counted up to a bound."""
    workspace = factories.workspace()
    project = factories.project(workspace=workspace)
    for number in range(4):
        remembered(f"Note {number}.", workspace=workspace, project=project, user="ada" if number else "")
    remembered("No project's.", workspace=workspace)
    remembered("Over.", workspace=workspace, status="archived")
    recount_vectors(kind=VectorKind.EPISODE)
    kept = [
        measure_scope(model=MODEL, reach=reach)[VectorKind.EPISODE].count
        for reach in (_reach(workspace), _reach(workspace, projects=(project.pk,), allowed=(project.pk,)))
    ]
    counted = [
        count_user_vectors(kind=VectorKind.EPISODE, model=MODEL, reach=_reach(workspace, user=user), most=2)
        for user in ("bob", "ada")
    ]
    assert (kept, counted) == ([5, 4], [2, 3])


@pytest.mark.django_db
def test_counting_again_forgets_what_is_gone() -> None:
    """B17."""
    workspace = factories.workspace()
    episode = remembered("Note.", workspace=workspace)
    recount_vectors(kind=VectorKind.EPISODE)
    episode.embeddings.all().delete()
    recount_vectors(kind=VectorKind.EPISODE)
    assert measure_scope(model=MODEL, reach=_reach(workspace))[VectorKind.EPISODE].count == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arm", "uses"),
    [
        (VectorMethod.SCAN, set()),
        (VectorMethod.JOIN, set()),
        (VectorMethod.OWN_INDEX, {"own"}),
        (VectorMethod.SHARED_INDEX, {"own", "shared"}),
    ],
)
def test_only_the_arm_that_asks_for_an_index_is_answered_by_it(arm: VectorMethod, uses: set[str]) -> None:
    """B17: an index where all are to be compared, or that of all for a workspace that has its own, overlooks much."""
    workspace = factories.workspace()
    for number in range(3):
        remembered(f"Note {number}.", workspace=workspace)
    own, shared = (
        VectorIndex(kind=VectorKind.EPISODE, workspace_id=workspace.pk, model=MODEL),
        VectorIndex(kind=VectorKind.EPISODE, model=MODEL),
    )
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for index in (own, shared):
            cursor.execute(index.definition().as_string(None).replace(" CONCURRENTLY", ""))
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = _plan(workspace, arm)
    assert {name for name, index in (("own", own), ("shared", shared)) if index.name in plan.split()} <= uses
    assert bool(uses) == ("_vectors_hnsw" in plan)


@pytest.mark.django_db
@pytest.mark.parametrize("words", ["", "note"])
def test_a_search_reads_a_workspace_s_own_index(words: str) -> None:
    """B17: a plan made for anybody could not; the plans of what comes after are kept as before."""
    workspace = factories.workspace()
    for number in range(3):
        remembered(f"Note {number}.", workspace=workspace)
    own = VectorIndex(kind=VectorKind.EPISODE, workspace_id=workspace.pk, model=MODEL)
    search = partial(
        search_episodes,
        reach=_reach(workspace),
        query=SearchQuery(
            vector=static_embedder().embed(["note"])[0],
            model=MODEL,
            words=read_query_words(query=words, workspace_id=workspace.pk, is_telling=str.isalpha, policy=POLICY)
            if words
            else None,
            arm=VectorMethod.OWN_INDEX,
            effort=80,
        ),
        candidates=50,
        matching=100,
        context=ContextShares(next_share=0.4, answer_share=0.8, second_share=0.2, context_matches=20),
    )
    with connection.cursor() as cursor, TimedSearch(effort=POLICY.search_effort) as timed:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(own.definition().as_string(None).replace(" CONCURRENTLY", ""))
        timed.run(search, seconds=5.0)
        cursor.execute(
            "SELECT pg_stat_get_xact_numscans(%s::regclass), current_setting(%s), current_setting(%s)",
            [own.name, "plan_cache_mode", "hnsw.ef_search"],
        )
        assert cursor.fetchone() == (1, "force_generic_plan", "80")


@pytest.mark.django_db
def test_a_plan_for_some_projects_is_kept_for_these() -> None:
    """B17: a plan made for any project would compare all of a workspace; each has its own, made once."""
    workspace = factories.workspace()
    projects = [factories.project(workspace=workspace, slug=slug) for slug in ("tuna", "otter")]
    notes = {project: remembered("Note.", workspace=workspace, project=project).pk for project in projects}
    query = SearchQuery(
        vector=static_embedder().embed(["note"])[0],
        model=MODEL,
        words=read_query_words(query="note", workspace_id=workspace.pk, is_telling=str.isalpha, policy=POLICY),
        arm=VectorMethod.SCAN,
        lookup=TextMethod.BY_WORDS,
    )

    def search(project: Project) -> set[str]:
        reach = replace(_reach(workspace), projects=(project.pk,))
        found = search_episodes(
            reach=reach, query=query, candidates=50, matching=100,
            context=ContextShares(next_share=0.4, answer_share=0.8, second_share=0.2, context_matches=20),
        )  # fmt: skip
        return {candidate.id for candidate in found.found}

    with connection.cursor() as cursor, TimedSearch(effort=POLICY.search_effort) as timed:
        for project in (*projects, *projects):
            assert timed.run(partial(search, project), seconds=5.0) == {notes[project]}
        for project in projects:
            statement = f"v.project_id = ANY('{{{project.pk}}}'::bigint[])"
            cursor.execute(_PLANS, [statement])
            assert cursor.fetchall() == [(2, 0)]


_PLANS = "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE strpos(statement, %s) > 0"


@pytest.mark.parametrize(
    ("stored", "index", "is_small"),
    [
        (0, VectorMethod.NONE, False),
        (POLICY.exact_vectors, VectorMethod.NONE, True),
        (MANY, VectorMethod.NONE, False),
        (POLICY.exact_vectors, VectorMethod.OWN_INDEX, False),
    ],
)
def test_where_few_are_stored_one_plan_does(
    stored: int, index: VectorMethod, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B17: any way through few memories is faster than a look for the best; not so where there is an index to use."""
    size = ScopeSize(count=MANY, index=index, indexed=MANY, stored=stored)
    monkeypatch.setattr("memory.search.plan.measure_scope", lambda **_: dict.fromkeys(VectorKind, size))
    reach = SearchScope(workspace_id=1, projects=(1,), allowed=None, user="", now=NOW)
    ways = SearchPlanner(reach=reach, policy=POLICY)(kind=VectorKind.BELIEF, model=MODEL, documents=1)
    assert ways.is_small == is_small


def test_sizes_are_not_asked_for_by_every_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    """B17: nor are those of one reach taken for another's."""
    asked: list[SearchScope] = []
    moment = [100.0]

    def measure(*, model: str, reach: SearchScope) -> dict[VectorKind, ScopeSize]:
        asked.append(reach)
        return dict.fromkeys(VectorKind, ScopeSize(count=len(asked), index=VectorMethod.NONE, indexed=0, stored=0))

    monkeypatch.setattr("memory.search.plan.measure_scope", measure)
    monkeypatch.setattr("memory.search.plan.time", SimpleNamespace(monotonic=lambda: moment[0]))
    whole = SearchScope(workspace_id=1, projects=None, allowed=None, user="", now=NOW)
    others = [
        replace(whole, workspace_id=2),
        replace(whole, projects=(1,)),
        replace(whole, projects=(1,), allowed=(1,)),
    ]

    def counts() -> list[int]:
        return [read_sizes(model=MODEL, reach=reach)[VectorKind.EPISODE].count for reach in (whole, *others)]

    assert counts() == [1, 2, 3, 4]
    assert read_sizes(model="another", reach=whole)[VectorKind.EPISODE].count == 5
    moment[0] += 4.9
    assert counts() == [1, 2, 3, 4]
    moment[0] += 0.2
    assert counts() == [6, 7, 8, 9]


def _plan(workspace: Workspace, arm: VectorMethod) -> str:
    query = SearchQuery(vector=static_embedder().embed(["note"])[0], model=MODEL, words=None, arm=arm)
    parameters = search_parameters(reach=_reach(workspace), query=query, candidates=50, matching=100) | {
        "next_share": 0.4,
        "answer_share": 0.8,
        "second_share": 0.2,
        "context_matches": 20,
    }
    with raw_cursor() as cursor:
        statement = ("EXPLAIN " + episodes_statement(arm=arm, words=0, filled=256)).encode()
        return "\n".join(line for (line,) in cursor.execute(statement, parameters, prepare=False))


@pytest.mark.django_db
def test_what_is_nearest_and_over_hides_nothing() -> None:
    """B17: never fewer than asked for where there are as many: after a quick scan that falls short comes a full one."""
    workspace = factories.workspace()
    for number in range(250):
        remembered(f"Tuna {number}", workspace=workspace, embedded_as="tuna", valid_until=NOW - timedelta(days=1))
    wanted = {
        remembered(f"Otter {number}", workspace=workspace, embedded_as=f"otter {number}").pk for number in range(12)
    }
    assert ids(ask("pets eating fish", workspace=workspace, limit=12)) == wanted
