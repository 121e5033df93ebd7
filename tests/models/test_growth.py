"""What every cycle looks for is found through an index, however long the history has become."""

import pytest
from django.db import connection
from django.db.models import QuerySet

from memory.models import ClusterJob, Episode, Workspace
from tests import factories
from tests.ingest.arriving import take
from tests.recall.memories import rows_read

pytestmark = pytest.mark.django_db

_EPISODES = """
INSERT INTO memory_episode (id, workspace_id, "user", agent, session, document, speaker, source, language, text,
    summary, entities, tags, category, importance, valence, origin, content_hash, line_hash, is_derived, status, state,
    state_reason, failures, created_at, occurred_at)
SELECT 'ep_' || lpad(to_hex(n), 12, '0'), %s, '', '', '', '', '', 'human', 'en', 'Said ' || n, '', '{}', '{}', '', 0.5,
    0, 'origin ' || n, md5(n::text), '', false, 'active', 'settled', '', 0, now(), now()
FROM generate_series(1, 4000) n
"""
_CYCLE = """
INSERT INTO memory_cycle (id, workspace_id, state, state_reason, trigger, now, attempt, budget_spent, counts,
    finished_at)
VALUES ('cy_000000000001', %s, 'finished', '', 'person', now(), 1, '', '{}', now())
"""
_JOBS = """
INSERT INTO memory_clusterjob (workspace_id, cycle_id, number, kind, state, state_reason, members_hash, lease_owner,
    claims, candidate_hash, candidate_language, refusal, outcome)
SELECT %s, 'cy_000000000001', n, 'cluster', 'refused', '', md5(n::text), '', 0, '', '', '', ''
FROM generate_series(1, 4000) n
"""


@pytest.fixture
def old_workspace() -> Workspace:
    """Store a workspace with a past."""
    workspace = factories.workspace()
    with connection.cursor() as cursor:
        for statement in (_EPISODES, _CYCLE, _JOBS):
            cursor.execute(statement, [workspace.pk])
        cursor.execute("ANALYZE memory_episode, memory_clusterjob")
    return workspace


def plan_of(rows: QuerySet[Episode] | QuerySet[ClusterJob]) -> str:
    """Return how the database would look for rows."""
    return rows.explain()


def test_what_is_pending_is_found_among_the_settled(old_workspace: Workspace) -> None:
    """B7: asked by the schedule, by the status and after every cycle."""
    assert "episode_pending" in plan_of(Episode.objects.for_workspace(old_workspace).pending())


def test_sets_that_were_tried_are_found_among_all_jobs(old_workspace: Workspace) -> None:
    """B8.2: asked by every cycle."""
    jobs = ClusterJob.objects.for_workspace(old_workspace).judged()
    assert "job_tried_members" in plan_of(jobs.filter(kind="cluster", members_hash__in=["a", "b"]))


@pytest.mark.usefixtures("old_workspace")
def test_a_workspace_that_statistics_do_not_know_is_not_read_for_each_line() -> None:
    """Bulk: the planner takes it for empty, and every index of workspaces for as good as that of words and ids."""
    young = factories.workspace()
    lines = [{"text": f"Ada: {number} were left.", "session": f"s{number // 5}"} for number in range(320)]
    take(*lines[:300], workspace=young)
    before = rows_read("memory_episode")
    outcomes = take(*lines[290:], workspace=young)

    assert len(outcomes) == 30
    assert rows_read("memory_episode") - before < 300
