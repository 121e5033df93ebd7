"""The hybrid search as plain SQL, written down once more: what recall's speed is measured against."""

import time
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from benchmarks.recall_stage import Scope

if TYPE_CHECKING:
    from memory.models.search_statements import VectorArm

CANDIDATES, LIMIT, WEIGHT = 50, 10, 0.5


class HybridSql:
    """One connection that searches a scope: nearest vectors and best texts, joined, scored, and the best ten."""

    def __init__(self, *, scope: Scope) -> None:
        from django.db import connection

        from memory.llm.embeddings import static_embedder

        facts = connection.settings_dict
        self._scope, self._model = scope, static_embedder()
        self._connection = psycopg.connect(
            host=facts["HOST"], port=facts["PORT"], user=facts["USER"], dbname=facts["NAME"], autocommit=True
        )
        register_vector(self._connection)
        self._arm = self._choose()
        for setting in ("hnsw.iterative_scan = relaxed_order", "hnsw.ef_search = 100", "jit = off"):
            self._connection.execute(f"SET {setting}".encode())

    def _choose(self) -> "VectorArm":
        """Look for vectors the way that recall does: whole statements are compared, not ways of looking."""
        from django.conf import settings
        from django.utils import timezone

        from memory.models.reach import Reach
        from memory.models.vector_kinds import VectorKind
        from memory.recall.arms import Arms

        projects = None if self._scope.project_id is None else (self._scope.project_id,)
        reach = Reach(
            workspace_id=self._scope.workspace_id, projects=projects, allowed=None, user="", now=timezone.now()
        )
        arms = Arms(reach=reach, policy=settings.POLICY.recall)
        return arms(kind=VectorKind.EPISODE, model=self._model.name)

    def prepare(self, query: str) -> dict[str, Any]:
        """Return what the statement needs to know of a query."""
        from django.conf import settings

        from memory.recall.terms import words_of

        words = words_of(query=query, workspace_id=self._scope.workspace_id, policy=settings.POLICY.recall)
        return {
            "workspace": self._scope.workspace_id, "project": self._scope.project_id, "model": self._model.name,
            "vector": HalfVector(self._model.embed([query])[0]), "rare": words.rare,
            "any": " | ".join(word for word, _ in words.each), "lexemes": list(words.lexemes),
            "words": list(words.words), "weights": list(words.weights), "mean_length": words.mean_length,
        }  # fmt: skip

    def run(self, prepared: dict[str, Any], *, is_exact: bool) -> float:
        """Search, exactly or as recall would look for vectors, and return the milliseconds that it took."""
        began = time.perf_counter()
        statement = _statement(self._arm, is_exact=is_exact, has_project=self._scope.project_id is not None)
        self._connection.execute(statement, prepared, prepare=False).fetchall()
        return (time.perf_counter() - began) * 1000


@cache
def _statement(arm: "VectorArm", *, is_exact: bool, has_project: bool) -> bytes:
    distance = "v.vector <=> %(vector)b::halfvec"
    own = "AND {row}.project_id = %(project)s::bigint" if has_project else ""
    order, more = distance, ""
    if is_exact or not arm.is_index:
        order = f"({distance}) + 0"
    elif arm == "shared index":
        more = "AND length(v.model) > 0"
    return f"""
        WITH near AS MATERIALIZED (
            SELECT v.episode_id AS id, {distance} AS distance FROM memory_episodeembedding v
            WHERE v.workspace_id = %(workspace)s::bigint {own.format(row="v")} AND v.is_active
              AND v.model = %(model)s {more}
            ORDER BY {order} LIMIT {CANDIDATES}
        ), matching AS MATERIALIZED (
            SELECT e.id FROM memory_episode e {_SCORE}
            WHERE e.workspace_id = %(workspace)s::bigint {own.format(row="e")} AND e.status = 'active'
              AND e.search @@ {"%(any)s" if is_exact else "%(rare)s"}::tsquery
            ORDER BY s.score DESC LIMIT {CANDIDATES}
        )
        SELECT e.id, e.text, {1 - WEIGHT} * (1 - ({distance})) + {WEIGHT} * s.score / max(s.score) OVER () AS score
        FROM (SELECT id FROM near UNION SELECT id FROM matching) found
        JOIN memory_episode e ON e.id = found.id {_SCORE}
        LEFT JOIN memory_episodeembedding v ON v.episode_id = e.id AND v.model = %(model)s
        ORDER BY 3 DESC NULLS LAST LIMIT {LIMIT}
    """.encode()  # noqa: S608  (parts of this module; values travel as parameters)


_SCORE = """CROSS JOIN LATERAL (
    SELECT coalesce(sum(w.weight * w.times * 2.2
        / (w.times + 1.2 * (0.25 + 0.75 * length(e.search) / %(mean_length)s))), 0)::float8 AS score
    FROM (
        SELECT max(q.weight) AS weight, sum(cardinality(u.positions)) AS times
        FROM unnest(e.search) u
        JOIN unnest(%(words)s::int[], %(lexemes)s::text[], %(weights)s::float8[]) AS q(word, lexeme, weight)
            ON q.lexeme = u.lexeme
        GROUP BY q.word
    ) w
) s"""
