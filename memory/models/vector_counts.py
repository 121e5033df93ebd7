"""How many vectors there are to search: what recall chooses its way of searching by."""

from django.db import connection, models

from memory.models.choices import choices_of
from memory.models.reach import BELIEF_PROJECTS, BELIEF_SCOPE, EPISODE_PROJECTS, EPISODE_SCOPE, Reach
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet
from memory.models.vector_kinds import VectorKind


class VectorCount(models.Model):
    """How many active vectors of a model a project of a workspace has, as they were counted last."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    kind = models.CharField(max_length=7, choices=choices_of(VectorKind))
    model = models.CharField(max_length=100)
    active = models.PositiveIntegerField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "model", "project"],
                name="one_vector_count_per_project",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.active} {self.kind} vectors of {self.workspace_id}"


def recount_vectors(*, kind: VectorKind) -> None:
    """Count the active vectors of every workspace, project and model anew."""
    with connection.cursor() as cursor:
        cursor.execute(_RECOUNT.format(kind=kind))


def count_in_reach(*, kind: VectorKind, model: str, reach: Reach, most: int) -> int:
    """Return about how many active vectors a search has to do with; where a user is named, at most `most` + 1."""
    parameters = reach.parameters() | {"kind": kind, "model": model, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(_KEPT[kind], parameters)
        (count,) = cursor.fetchone()
        if reach.user and count > most:
            cursor.execute(_BOUNDED[kind], parameters)
            (count,) = cursor.fetchone()
    return int(count)


_RECOUNT = """
WITH counted AS (
    SELECT v.workspace_id, v.project_id, v.model, count(*) AS active FROM memory_{kind}embedding v
    JOIN memory_workspace w ON w.id = v.workspace_id WHERE v.is_active GROUP BY 1, 2, 3
), gone AS (
    DELETE FROM memory_vectorcount c WHERE c.kind = '{kind}' AND NOT EXISTS (
        SELECT FROM counted n WHERE (n.workspace_id, n.model) = (c.workspace_id, c.model)
            AND n.project_id IS NOT DISTINCT FROM c.project_id)
)
INSERT INTO memory_vectorcount AS c (workspace_id, project_id, kind, model, active)
SELECT workspace_id, project_id, '{kind}', model, active FROM counted
ON CONFLICT (workspace_id, kind, model, project_id) DO UPDATE SET active = EXCLUDED.active
WHERE c.active <> EXCLUDED.active
"""
_PROJECTS = {VectorKind.EPISODE: EPISODE_PROJECTS, VectorKind.BELIEF: BELIEF_PROJECTS}
_SCOPES = {VectorKind.EPISODE: EPISODE_SCOPE, VectorKind.BELIEF: BELIEF_SCOPE}
_KEPT = {
    kind: f"""
        SELECT coalesce(sum(c.active), 0) FROM memory_vectorcount c
        WHERE c.workspace_id = %(workspace)s AND c.kind = %(kind)s AND c.model = %(model)s
          AND {projects.format(row="c")}
    """  # noqa: S608  (conditions of this package; values travel as parameters)
    for kind, projects in _PROJECTS.items()
}
_BOUNDED = {
    kind: f"""
        SELECT count(*) FROM (
            SELECT FROM memory_{kind}embedding v
            WHERE {scope.format(row="v")} AND v.is_active AND v.model = %(model)s LIMIT %(most)s + 1
        ) counted
    """  # noqa: S608  (as above)
    for kind, scope in _SCOPES.items()
}
