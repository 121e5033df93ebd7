"""The hybrid search as plain SQL, written down once more: what recall's speed is measured against."""

import time
from functools import cache
from typing import TYPE_CHECKING

import psycopg
from pgvector import HalfVector
from pgvector.psycopg import register_vector

from benchmarks.recall_stage import Scope

if TYPE_CHECKING:
    from memory.search.scope import VectorMethod

CANDIDATES, LIMIT, WEIGHT = 50, 10, 0.5


class HybridSql:
    """One connection that searches a scope for both kinds: nearest vectors, best texts, scored, and the best ten."""

    def __init__(self, *, scope: Scope) -> None:
        from django.db import connection

        from memory.llm.offline import static_embedder

        facts = connection.settings_dict
        self._scope, self._model = scope, static_embedder()
        self._connection = psycopg.connect(
            host=facts["HOST"], port=facts["PORT"], user=facts["USER"], dbname=facts["NAME"], autocommit=True
        )
        register_vector(self._connection)
        self._arms = self._choose()
        for setting in ("hnsw.iterative_scan = relaxed_order", "hnsw.ef_search = 100", "jit = off"):
            self._connection.execute(f"SET {setting}".encode())

    def _choose(self) -> "tuple[VectorMethod, VectorMethod]":
        """Look for vectors the way that recall does: whole statements are compared, not ways of looking."""
        from django.conf import settings
        from django.utils import timezone

        from memory.models.fields import VectorKind
        from memory.search.plan import SearchPlanner
        from memory.search.scope import SearchScope

        projects = None if self._scope.project_id is None else (self._scope.project_id,)
        reach = SearchScope(
            workspace_id=self._scope.workspace_id, projects=projects, allowed=None, user="", now=timezone.now()
        )
        arms = SearchPlanner(reach=reach, policy=settings.POLICY.recall)
        episodes, beliefs = (arms(kind=VectorKind(kind), model=self._model.name, documents=0).arm for kind in _KINDS)
        return episodes, beliefs

    def embed(self, query: str) -> HalfVector:
        """Return the query's vector: what a database cannot know by itself."""
        return HalfVector(self._model.embed([query])[0])

    def run(self, query: str, vector: HalfVector, *, is_exact: bool) -> float:
        """Search, exactly or as recall would look for vectors, and return the milliseconds that it took.

        That is two statements: how common the query's words are, and the search.
        """
        from django.conf import settings

        from memory.recall.questions.words import is_telling
        from memory.search.words import read_query_words

        began = time.perf_counter()
        words = read_query_words(
            query=query,
            workspace_id=self._scope.workspace_id,
            is_telling=is_telling,
            policy=settings.POLICY.recall,
        )
        asked = {
            "workspace": self._scope.workspace_id, "project": self._scope.project_id, "model": self._model.name,
            "vector": vector, "rare": words.rare, "any": " | ".join(word for word, _ in words.each),
            "lexemes": list(words.lexemes), "words": list(words.words), "weights": list(words.weights),
            "mean_length": words.mean_length,
        }  # fmt: skip
        statement = _statement(
            self._arms, self._model.name, is_exact=is_exact, has_project=self._scope.project_id is not None
        )
        self._connection.execute(statement, asked, prepare=False).fetchall()
        return (time.perf_counter() - began) * 1000


@cache
def _statement(arms: "tuple[VectorMethod, VectorMethod]", model: str, *, is_exact: bool, has_project: bool) -> bytes:
    parts = [
        _part(kind, arm, model, is_exact=is_exact, has_project=has_project)
        for kind, arm in zip(_KINDS, arms, strict=True)
    ]
    found = "SELECT * FROM episode_scored UNION ALL SELECT * FROM belief_scored ORDER BY score DESC NULLS LAST"
    return f"WITH {', '.join(parts)} {found} LIMIT {LIMIT}".encode()


def _part(kind: str, arm: "VectorMethod", model: str, *, is_exact: bool, has_project: bool) -> str:
    """Find one kind by both arms; a belief's confidence weighs its likeness, and how lately it was used adds to it."""
    from memory.search.vectors import filled_dimensions, index_order

    distance = "v.vector <=> %(vector)b::halfvec"
    own = "AND ({row}.project_id = %(project)s::bigint OR {nobody})" if has_project else ""
    own = own.replace("{nobody}", "{row}.project_id IS NULL" if kind == "belief" else "false")
    order, more = index_order(filled_dimensions(model=model)), ""
    if is_exact or not arm.is_index:
        order = f"({distance}) + 0"
    elif arm == "shared index":
        more = "AND length(v.model) > 0"
    text, likeness, use, strength = _KINDS[kind]
    return f"""
        {kind}_near AS MATERIALIZED (
            SELECT v.{kind}_id AS id, {distance} AS distance FROM memory_{kind}embedding v
            WHERE v.workspace_id = %(workspace)s::bigint {own.format(row="v")} AND v.is_active
              AND v.model = %(model)s {more}
            ORDER BY {order} LIMIT {CANDIDATES}
        ), {kind}_matching AS MATERIALIZED (
            SELECT e.id FROM memory_{kind} e {_SCORE}
            WHERE e.workspace_id = %(workspace)s::bigint {own.format(row="e")} AND e.status = 'active'
              AND e.search @@ {"%(any)s" if is_exact else "%(rare)s"}::tsquery
            ORDER BY s.score DESC LIMIT {CANDIDATES}
        ), {kind}_scored AS (
            SELECT e.id, {text} AS text, {1 - WEIGHT} * {likeness} * (1 - ({distance})) + {strength}
                + {WEIGHT} * coalesce(s.score / nullif(max(s.score) OVER (), 0), 0) AS score
            FROM (SELECT id FROM {kind}_near UNION SELECT id FROM {kind}_matching) found
            JOIN memory_{kind} e ON e.id = found.id {_SCORE}
            LEFT JOIN memory_{kind}embedding v ON v.{kind}_id = e.id AND v.model = %(model)s {use}
        )"""  # noqa: S608  (parts of this module; values travel as parameters)


# Of each kind: its text, what weighs its likeness, where its use is noted, and what that adds.
_KINDS = {
    "episode": ("e.text", "1", "", "0"),
    "belief": (
        "e.statement",
        "e.confidence",
        "LEFT JOIN memory_beliefaccess a ON a.belief_id = e.id",
        "0.15 * exp(-extract(epoch FROM now() - coalesce(a.accessed_at, e.created_at)) / 86400.0"
        " / coalesce(a.stability, 30.0))",
    ),
}
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
