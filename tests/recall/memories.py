"""Memories with vectors, for tests of recall."""

from datetime import datetime
from typing import Any

from django.db import connection

from memory.access import Viewer
from memory.llm.offline import static_embedder
from memory.models import Belief, Episode, Project, Workspace
from memory.recall.query import Recalled, RecallQuery, RecallScope
from memory.recall.recall import recall
from memory.search.vectors import store_belief_vectors, store_episode_vectors
from tests import factories


def remembered(text: str, *, workspace: Workspace, embedded_as: str | None = None, **given: Any) -> Episode:
    """Store an episode with the vector of its text, or of another one."""
    episode = factories.episode(workspace=workspace, text=text, **{"language": "en"} | given)
    model = static_embedder()
    vector = model.embed([embedded_as or text])[0]
    store_episode_vectors(workspace_id=workspace.pk, model=model.name, vectors={episode.pk: vector})
    return episode


def believed(statement: str, *, workspace: Workspace, embedded_as: str | None = None, **given: Any) -> Belief:
    """Store a belief (six to one, unless said otherwise) with the vector of its statement, or of another text."""
    fields = {"language": "en", "alpha": 6.0, "beta": 1.0}
    if given.get("project"):
        fields["scope"] = "project"
    belief = factories.belief(workspace=workspace, statement=statement, **fields | given)
    model = static_embedder()
    vector = model.embed([embedded_as or statement])[0]
    store_belief_vectors(workspace_id=workspace.pk, model=model.name, vectors={belief.pk: vector})
    return belief


def ask(
    query: str,
    *,
    workspace: Workspace,
    project: Project | None = None,
    limited_to: tuple[Project, ...] | None = None,
    user: str = "",
    agent: str = "",
    session: str = "",
    limit: int = 10,
    now: datetime = factories.NOW,
    **asked: Any,
) -> Recalled:
    """Recall as someone who may see the whole workspace, or some projects of it; `asked` goes into the question."""
    return recall(
        scope=scope_of(workspace=workspace, project=project, limited_to=limited_to, user=user, agent=agent),
        question=RecallQuery(query=query, limit=limit, session=session, **asked),
        now=now,
    )


def scope_of(
    *,
    workspace: Workspace,
    project: Project | None = None,
    limited_to: tuple[Project, ...] | None = None,
    user: str = "",
    agent: str = "",
) -> RecallScope:
    """Return the scope of someone who may see the whole workspace, or some projects of it."""
    projects = None if limited_to is None else tuple(project.pk for project in limited_to)
    return RecallScope(
        viewer=Viewer(workspace=workspace, projects=projects),
        project_id=project.pk if project else None,
        user=user,
        agent=agent,
    )


def ids(recalled: Recalled) -> set[str]:
    """Name what was recalled, in no order."""
    return {result.id for result in recalled.results}


def rows_read(table: str) -> int:
    """Count the rows of a table that this transaction has come upon, by whatever index."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_get_xact_tuples_returned(%s::regclass) + sum(pg_stat_get_xact_tuples_returned(indexrelid))"
            " FROM pg_index WHERE indrelid = %s::regclass",
            [table, table],
        )
        return int(cursor.fetchone()[0])
