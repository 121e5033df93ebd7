"""How many vectors there are to search: what recall chooses its way of searching by."""

from dataclasses import dataclass

from django.db import connection, models

from memory.models.choices import choices_of
from memory.models.numbered import run_numbered
from memory.models.reach import BELIEF_PROJECTS, BELIEF_SCOPE, EPISODE_PROJECTS, EPISODE_SCOPE, Reach
from memory.models.search_statements import VectorArm
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet
from memory.models.vector_indexes import VectorIndex
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
        columns = "project_id, model" if kind.is_scoped else "NULL::bigint AS project_id, model"
        cursor.execute(_RECOUNT.format(kind=kind, columns=columns, wanted="is_active" if kind.is_scoped else "true"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachSize:
    """About how many active vectors of a kind are in question, and the narrowest index over them with its size.

    `stored` are about all memories of the kind, whosever they are.
    """

    count: int
    index: VectorArm
    indexed: int
    stored: int


def measure_reach(*, model: str, reach: Reach) -> dict[VectorKind, ReachSize]:
    """Return how much a search of each kind has to do with, by what was counted last, of all users."""
    parameters = reach.parameters() | {"model": model}
    for kind in VectorKind:
        own = VectorIndex(kind=kind, workspace_id=reach.workspace_id, model=model)
        parameters |= {f"{kind}_own": own.name, f"{kind}_all": VectorIndex(kind=kind, model=model).name}
    rows = run_numbered(statement=_MEASURE, parameters=parameters, keeps_plan=True).fetchall()
    return {
        VectorKind(kind): ReachSize(count=count, index=VectorArm(index or "none"), indexed=indexed or 0, stored=stored)
        for kind, count, index, indexed, stored in rows
    }


def count_of_user(*, kind: VectorKind, model: str, reach: Reach, most: int) -> int:
    """Count the active vectors of a user and of nobody in a reach, up to one more than `most`."""
    with connection.cursor() as cursor:
        cursor.execute(_BOUNDED[kind], reach.parameters() | {"model": model, "most": most})
        (count,) = cursor.fetchone()
    return int(count)


# Grouped in the order of the index over active vectors, which alone is read, before anything is joined.
_RECOUNT = """
WITH counted AS (
    SELECT v.* FROM (
        SELECT workspace_id, {columns}, count(*) AS active FROM memory_{kind}embedding
        WHERE {wanted} GROUP BY 1, 3, 2
    ) v JOIN memory_workspace w ON w.id = v.workspace_id
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
_PROJECTS = {VectorKind.EPISODE: EPISODE_PROJECTS, VectorKind.BELIEF: BELIEF_PROJECTS, VectorKind.CLAIM: "true"}
_SCOPES = {VectorKind.EPISODE: EPISODE_SCOPE, VectorKind.BELIEF: BELIEF_SCOPE}
_MEASURE = " UNION ALL ".join(
    f"""
    SELECT '{kind}', kept.active::bigint, index.arm, index.rows::bigint,
        (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'memory_{kind}'::regclass)
    FROM (
        SELECT coalesce(sum(c.active), 0) AS active FROM memory_vectorcount c
        WHERE c.workspace_id = %(workspace)s AND c.kind = '{kind}' AND c.model = %(model)s
          AND {projects.format(row="c")}
    ) kept LEFT JOIN (
        SELECT greatest(r.reltuples, 0) AS rows,
            CASE WHEN r.relname = %({kind}_own)s::text
                THEN '{VectorArm.OWN_INDEX}' ELSE '{VectorArm.SHARED_INDEX}' END AS arm
        FROM pg_class r JOIN pg_index i ON i.indexrelid = r.oid
        WHERE i.indisvalid AND r.oid IN (to_regclass(%({kind}_own)s::text), to_regclass(%({kind}_all)s::text))
        ORDER BY r.relname = %({kind}_own)s::text DESC LIMIT 1
    ) index ON true
    """  # noqa: S608  (conditions of this package; values travel as parameters)
    for kind, projects in _PROJECTS.items()
)
_BOUNDED = {
    kind: f"""
        SELECT count(*) FROM (
            SELECT FROM memory_{kind}embedding v
            WHERE {scope.format(row="v")} AND v.is_active AND v.model = %(model)s LIMIT %(most)s + 1
        ) counted
    """  # noqa: S608  (as above)
    for kind, scope in _SCOPES.items()
}
