"""Which rows a search may find, as a value and as the conditions of a statement, and about how many vectors these have.

`SearchScope` is the one place that filters candidates; `measure_scope` is what recall chooses its way of searching by.
"""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from django.db import connection

from memory.models.fields import VectorKind
from memory.search.prepared import run_prepared
from memory.search.vectors import VectorIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """The rows that a search may find: `projects` None for all, `allowed` None for a viewer without limit.

    `occurred` is from when on and before when things happened; `categories` and `fact_types` are those of episodes and
    of beliefs; each None for no limit.
    """

    workspace_id: int
    projects: tuple[int, ...] | None
    allowed: tuple[int, ...] | None
    user: str
    now: datetime
    agent: str = ""
    occurred: tuple[datetime | None, datetime | None] = (None, None)
    categories: tuple[str, ...] | None = None
    fact_types: tuple[str, ...] | None = None
    with_expired: bool = False
    hidden_states: tuple[str, ...] = ()

    def parameters(self) -> dict[str, Any]:
        """Return what the conditions below name."""
        return {
            "workspace": self.workspace_id,
            "everything": self.projects is None,
            "projects": list(self.projects or ()),
            "unlimited": self.allowed is None,
            "allowed": list(self.allowed or ()),
            "user": self.user,
            "now": self.now,
            "agent": self.agent,
            "occurred_from": self.occurred[0],
            "occurred_until": self.occurred[1],
            "categories": None if self.categories is None else list(self.categories),
            "fact_types": None if self.fact_types is None else list(self.fact_types),
            "with_expired": self.with_expired,
            "hidden_states": list(self.hidden_states),
        }

    def resolve(self, statement: str) -> str:
        """Leave out of a statement what does not narrow this reach: the less it says, the sooner it is planned."""
        return _resolve(statement, tuple(self._flags().items()))

    def _flags(self) -> dict[str, bool]:
        return {
            _EVERYTHING: self.projects is None,
            _UNLIMITED: self.allowed is None,
            _ANY_USER: not self.user,
            _ANY_AGENT: not self.agent,
            _ANY_TIME: self.occurred == (None, None),
            _ANY_CATEGORY: self.categories is None,
            _ANY_FACT_TYPE: self.fact_types is None,
            _NONE_HIDDEN: not self.hidden_states,
        }


@lru_cache(maxsize=1_024)
def _resolve(statement: str, flags: tuple[tuple[str, bool], ...]) -> str:
    for flag, is_so in flags:
        statement = statement.replace(flag, "TRUE" if is_so else "FALSE")
    while (start := statement.find(_TRUE_OR)) >= 0:
        end = _closing(statement, start)
        statement = f"{statement[:start]}TRUE{statement[end + 1 :]}"
    return statement


def _closing(statement: str, start: int) -> int:
    """Return the place of the bracket that closes the one at `start`; no text of a condition has any in quotes."""
    depth = 0
    for place in range(start, len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[place], 0)
        if not depth:
            return place
    raise ValueError(f"A bracket is never closed: {statement[start:]}")


_TRUE_OR = "(TRUE OR "

# What makes the rest of a condition say nothing.
_EVERYTHING = "%(everything)s"
_UNLIMITED = "%(unlimited)s"
_ANY_USER = "%(user)s::text = ''"
_ANY_AGENT = "%(agent)s::text = ''"
_ANY_TIME = "(%(occurred_from)s::timestamptz IS NULL AND %(occurred_until)s::timestamptz IS NULL)"
_ANY_CATEGORY = "%(categories)s::text[] IS NULL"
_ANY_FACT_TYPE = "%(fact_types)s::text[] IS NULL"
_NONE_HIDDEN = "cardinality(%(hidden_states)s::text[]) = 0"

# Conditions on columns that a memory and its vector both have; `{row}` is either.
EPISODE_PROJECTS = (
    f"({_EVERYTHING} OR {{row}}.project_id = ANY(%(projects)s) OR ({_UNLIMITED} AND {{row}}.project_id IS NULL))"
)
BELIEF_PROJECTS = f"({_EVERYTHING} OR {{row}}.project_id = ANY(%(projects)s) OR {{row}}.project_id IS NULL)"
_IN_WORKSPACE = "{row}.workspace_id = %(workspace)s::bigint"
_USER = f"({_ANY_USER} OR {{row}}.\"user\" IN ('', %(user)s))"
EPISODE_SCOPE = f"{_IN_WORKSPACE} AND {EPISODE_PROJECTS} AND {_USER}"
BELIEF_SCOPE = f"{_IN_WORKSPACE} AND {BELIEF_PROJECTS} AND {_USER}"

# Conditions on what only the memory's own row knows.
_VALID = "(%(with_expired)s OR {row}.valid_until IS NULL OR {row}.valid_until > %(now)s)"

OCCURRED = f"""({_ANY_TIME} OR (
    (%(occurred_from)s::timestamptz IS NULL OR {{row}}.occurred_at >= %(occurred_from)s)
    AND (%(occurred_until)s::timestamptz IS NULL OR {{row}}.occurred_at < %(occurred_until)s)))
"""

EPISODE_WANTED = f"""
    {_VALID} AND {OCCURRED}
    AND ({_ANY_AGENT} OR {{row}}.agent IN ('', %(agent)s))
    AND ({_ANY_CATEGORY} OR {{row}}.category = ANY(%(categories)s))
    AND ({_NONE_HIDDEN} OR {{row}}.lifecycle_state <> ALL(%(hidden_states)s))
"""
LIVE_EPISODE = f"{{row}}.status = 'active' AND {EPISODE_WANTED}"

# A belief is of a time if what it rests on occurred then.
BELIEF_WANTED = f"""
    {_VALID} AND ({_ANY_FACT_TYPE} OR {{row}}.fact_type = ANY(%(fact_types)s))
    AND ({_ANY_TIME} OR EXISTS (
        SELECT FROM memory_evidence t JOIN memory_episode o ON o.id = t.episode_id
        WHERE t.belief_id = {{row}}.id AND t.base_weight > 0 AND {OCCURRED.format(row="o")}))
"""

# A viewer limited to projects sees a global belief if all that it rests on is of those.
EPISODE_SEEN = f"({_UNLIMITED} OR {{row}}.project_id = ANY(%(allowed)s))"

_BELIEF_SEEN = f"""({_UNLIMITED} OR {{row}}.project_id IS NOT NULL OR (
        EXISTS (SELECT FROM memory_evidence x WHERE x.belief_id = {{row}}.id)
        AND NOT EXISTS (
            SELECT FROM memory_evidence x JOIN memory_episode o ON o.id = x.episode_id
            WHERE x.belief_id = {{row}}.id AND (o.project_id IS NULL OR o.project_id <> ALL(%(allowed)s)))))"""
BELIEF_SEEN = f"({{row}}.project_id IS NULL OR {EPISODE_SEEN}) AND {_BELIEF_SEEN}"

LIVE_BELIEF = f"""
    {{row}}.status = 'active' AND {{row}}.confidence > %(min_confidence)s AND {BELIEF_WANTED}
    AND {_BELIEF_SEEN}
"""

# One that changed since, and held at some time of a span; either end of that may be open.
CLOSED_BELIEF = f"""
    {{row}}.status = 'invalidated' AND {{row}}.status_reason = 'changed'
    AND {{row}}.confidence > %(min_confidence)s AND {_BELIEF_SEEN}
    AND ({_ANY_FACT_TYPE} OR {{row}}.fact_type = ANY(%(fact_types)s))
    AND (%(span_start)s::timestamptz IS NULL OR {{row}}.valid_until > %(span_start)s)
    AND (%(span_end)s::timestamptz IS NULL OR coalesce({{row}}.valid_from, {{row}}.created_at) < %(span_end)s)
"""


class VectorMethod(StrEnum):
    """How the nearest vectors are found: not at all, by an approximate index, or by comparing all of a scope.

    JOIN filters before it compares. SCAN compares first, which is faster, and may have to be followed by a JOIN if most
    of what is near does not count. OWN_INDEX lies over a workspace's vectors of a model, SHARED_INDEX over everybody's.
    """

    NONE = "none"
    OWN_INDEX = "own index"
    SHARED_INDEX = "shared index"
    SCAN = "scan"
    JOIN = "join"

    @property
    def is_index(self) -> bool:
        """Tell whether vectors may be overlooked."""
        return self in (VectorMethod.OWN_INDEX, VectorMethod.SHARED_INDEX)


def recount_vectors(*, kind: VectorKind) -> None:
    """Count the active vectors of every workspace, project and model anew."""
    with connection.cursor() as cursor:
        columns = "project_id, model" if kind.is_scoped else "NULL::bigint AS project_id, model"
        cursor.execute(_RECOUNT.format(kind=kind, columns=columns, wanted="is_active" if kind.is_scoped else "true"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSize:
    """About how many active vectors of a kind are in question, and the narrowest index over them with its size.

    `stored` are about all memories of the kind, whosever they are.
    """

    count: int
    index: VectorMethod
    indexed: int
    stored: int


def measure_scope(*, model: str, reach: SearchScope) -> dict[VectorKind, ScopeSize]:
    """Return how much a search of each kind has to do with, by what was counted last, of all users."""
    parameters = reach.parameters() | {"model": model}
    for kind in VectorKind:
        own = VectorIndex(kind=kind, workspace_id=reach.workspace_id, model=model)
        parameters |= {f"{kind}_own": own.name, f"{kind}_all": VectorIndex(kind=kind, model=model).name}
    rows = run_prepared(statement=_MEASURE, parameters=parameters, keeps_plan=True).fetchall()
    return {
        VectorKind(kind): ScopeSize(
            count=count, index=VectorMethod(index or "none"), indexed=indexed or 0, stored=stored
        )
        for kind, count, index, indexed, stored in rows
    }


def count_user_vectors(*, kind: VectorKind, model: str, reach: SearchScope, most: int) -> int:
    """Count the active vectors of a user and of nobody in a reach, up to one more than `most`."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_UP_TO[kind], reach.parameters() | {"model": model, "most": most})
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
                THEN '{VectorMethod.OWN_INDEX}' ELSE '{VectorMethod.SHARED_INDEX}' END AS arm
        FROM pg_class r JOIN pg_index i ON i.indexrelid = r.oid
        WHERE i.indisvalid AND r.oid IN (to_regclass(%({kind}_own)s::text), to_regclass(%({kind}_all)s::text))
        ORDER BY r.relname = %({kind}_own)s::text DESC LIMIT 1
    ) index ON true
    """
    for kind, projects in _PROJECTS.items()
)

_COUNT_UP_TO = {
    kind: f"""
        SELECT count(*) FROM (
            SELECT FROM memory_{kind}embedding v
            WHERE {scope.format(row="v")} AND v.is_active AND v.model = %(model)s LIMIT %(most)s + 1
        ) counted
    """
    for kind, scope in _SCOPES.items()
}
