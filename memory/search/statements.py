"""The SQL of a search by vector and words, composed of its parts, and the parameters that it names.

Text is matched by any of the query's words and scored by BM25 (Robertson and Zaragoza 2009) with k₁ = 1.2, b = 0.75.
What was said beside a match, in the same session, takes a share of its score, most of it what comes after a question.
Every row begins with how many vectors were looked at, and how many of them count.
"""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from pgvector import HalfVector

from memory.search.scope import BELIEF_SCOPE, EPISODE_SCOPE, LIVE_BELIEF, LIVE_EPISODE, SearchScope, VectorMethod
from memory.search.vectors import IN_SHARED_INDEX, Vectors, index_order


class TextMethod(StrEnum):
    """By what rows that hold words are found: as the planner sees fit, by their words, or among all of a workspace.

    The last two need no look at what is asked, so that one plan serves every query.
    """

    PLANNED = "planned"
    BY_WORDS = "by words"
    BY_WORKSPACE = "by workspace"


@cache
def episodes_statement(
    *,
    arm: VectorMethod,
    words: int,
    lookup: TextMethod = TextMethod.PLANNED,
    filled: int | None = None,
    live: str = LIVE_EPISODE,
    active: str = "v.is_active",
    is_weighted: bool = False,
) -> str:
    """Return the statement that finds episodes by these arms, of those `live` and with an `active` vector.

    `words` is the number of the query's words to go by; 0 for no search by text. `filled` are the dimensions that an
    index knows, None for all. `is_weighted` where the query has a vector of weighted words, too.
    """
    similarity, vectors = _similarity("episode", arm), ""
    if is_weighted and arm != VectorMethod.NONE:  # each vector is read anyhow, and by its key (OFFSET 0)
        similarity, vectors = similarity_sql(arm), f"LEFT JOIN LATERAL ({_VECTOR_OF_EPISODE} OFFSET 0) v ON true"
    return f"""
        WITH {_nearest("episode", arm, EPISODE_SCOPE, live, active, filled)},
        matching AS MATERIALIZED ({_matching("episode", words, lookup, EPISODE_SCOPE, live)}),
        found AS (
            SELECT id, {_combined_columns("episode")}, sum(context_score) AS context_score FROM (
                SELECT id, {row_columns("episode", "n")}, distance, {_UNSCORED}, 0::float8 AS context_score FROM near n
                UNION ALL SELECT id, {row_columns("episode", "m")}, NULL, score, coverage, telling, 0 FROM matching m
                UNION ALL SELECT n.id, {row_columns("episode", "n")}, NULL, NULL, NULL, NULL, m.score * n.share
                FROM (
                    SELECT *, right(rtrim(text), 1) = '?' AS is_question FROM matching
                    ORDER BY score DESC, id LIMIT %(context_matches)s
                ) m
                CROSS JOIN LATERAL ({_beside("<", "DESC", live)} UNION ALL {_beside(">", "ASC", live)}) n
                WHERE m.session <> ''
            ) ways GROUP BY id  -- to join them would compare all with all: their sizes are not known beforehand
        )
        SELECT {_COUNTS}, p.id, {similarity} AS similarity, coalesce(p.score, s.score) AS text_score,
            coalesce(p.coverage, s.coverage) AS coverage, coalesce(p.telling, s.telling) AS telling, p.context_score,
            {EPISODE_COLUMNS}, {weighted_similarity_sql(arm, is_weighted=is_weighted)} AS weighted_similarity
        FROM found p {text_score_sql("p", unless="p.score IS NOT NULL")} {vectors}
    """


@cache
def beliefs_statement(
    *,
    arm: VectorMethod,
    words: int,
    lookup: TextMethod = TextMethod.PLANNED,
    filled: int | None = None,
    live: str = LIVE_BELIEF,
    active: str = "v.is_active",
) -> str:
    """Return the statement that finds beliefs by these arms, of those `live` and with an `active` vector."""
    return f"""
        WITH {_nearest("belief", arm, BELIEF_SCOPE, live, active, filled)},
        matching AS MATERIALIZED ({_matching("belief", words, lookup, BELIEF_SCOPE, live)}),
        found AS (
            SELECT id, {_combined_columns("belief")} FROM (
                SELECT id, {row_columns("belief", "n")}, distance, {_UNSCORED} FROM near n
                UNION ALL SELECT id, {row_columns("belief", "m")}, NULL, score, coverage, telling FROM matching m
            ) ways GROUP BY id
        )
        SELECT {_COUNTS}, p.id, {_similarity("belief", arm)} AS similarity, coalesce(p.score, s.score) AS text_score,
            coalesce(p.coverage, s.coverage) AS coverage, coalesce(p.telling, s.telling) AS telling,
            p.confidence, p.created_at, a.accessed_at, a.stability
        FROM found p {text_score_sql("p", unless="p.score IS NOT NULL")}
        LEFT JOIN memory_beliefaccess a ON a.belief_id = p.id
    """


# What is read of a memory's row when it is found, so that nobody has to look it up again.
_ROW_COLUMNS = {
    "episode": (
        "search",
        "session",
        "project_id",
        "lifecycle_state",
        "verification",
        "source",
        "speaker",
        "category",
        "text",
    ),
    "belief": ("search", "confidence", "created_at"),
}

# What is told of an episode p that was found, beside its scores.
EPISODE_COLUMNS = """p.session, p.project_id, p.lifecycle_state, p.verification, p.source, p.speaker,
            length(p.search) AS length, p.category"""
_UNSCORED = "NULL::float8 AS score, NULL::float8 AS coverage, NULL::float8 AS telling"


def row_columns(kind: str, row: str) -> str:
    """Name what is read of a row."""
    return ", ".join(f"{row}.{column}" for column in _ROW_COLUMNS[kind])


def _combined_columns(kind: str) -> str:
    """Put together what is known of a memory that was found in more than one way."""
    read = ", ".join(f"any_value({column}) AS {column}" for column in _ROW_COLUMNS[kind])
    return f"{read}, min(distance) AS distance, max(score) AS score, max(coverage) AS coverage, max(telling) AS telling"


def _similarity(kind: str, arm: VectorMethod) -> str:
    """Name the cosine of the query's vector and that of p; the distance may be known."""
    if arm == VectorMethod.NONE:
        return similarity_sql(arm)
    return f"""1 - coalesce(p.distance, (
            SELECT {_DISTANCE} FROM memory_{kind}embedding v WHERE v.{kind}_id = p.id AND v.model = %(model)s))"""


_COUNTS = "(SELECT count(*) FROM nearest) AS seen, (SELECT count(*) FROM near) AS near"
_DISTANCE = "v.vector <=> %(vector)b::halfvec"

# Set before the index is first asked, for the rest of the transaction: a condition that names no row is looked at once.
SET_EFFORT = """(
            SELECT set_config('hnsw.ef_search', coalesce(%(effort)s::text, current_setting('hnsw.ef_search')), true)
        ) <> ''"""


def _nearest(kind: str, arm: VectorMethod, scope: str, live: str, active: str, filled: int | None) -> str:
    """Choose the memories nearest by vector (near), of those looked at (nearest)."""
    row = row_columns(kind, "p")
    if arm == VectorMethod.NONE:
        nothing = f"SELECT p.id, {row}, 0::float8 AS distance FROM memory_{kind} p WHERE false"
        return f"nearest AS ({nothing}), near AS (SELECT * FROM nearest)"
    vectors = f"""memory_{kind}embedding v {{join}}
            WHERE {scope.format(row="v")} AND {active} AND v.model = %(model)s"""
    if arm == VectorMethod.SHARED_INDEX:
        vectors += f" AND {IN_SHARED_INDEX}"
    if arm == VectorMethod.JOIN:
        return f"""nearest AS MATERIALIZED (
            SELECT * FROM (
                SELECT p.id, {row}, {_DISTANCE} AS distance
                FROM {vectors.format(join=f"JOIN memory_{kind} p ON p.id = v.{kind}_id")}
                    AND {scope.format(row="p")} AND {live.format(row="p")} OFFSET 0
            ) v ORDER BY distance LIMIT %(candidates)s
        ), near AS (SELECT * FROM nearest)"""
    own = f"SELECT v.{kind}_id AS id, {_DISTANCE} AS distance FROM {vectors.format(join='')}"
    # Each is looked up by itself (OFFSET 0): the planner would rather read a whole scope than some hundred rows.
    counting = f"""SELECT p.*, n.distance FROM nearest n CROSS JOIN LATERAL (
                SELECT p.id, {row} FROM memory_{kind} p
                WHERE p.id = n.id AND {scope.format(row="p")} AND {live.format(row="p")} OFFSET 0
            ) p"""
    if arm.is_index:  # the order of an index is only about right
        nearest = f"{own} AND {SET_EFFORT} ORDER BY {index_order(filled)}"
        near = f"{counting} ORDER BY n.distance + 0, p.id LIMIT %(candidates)s"
    else:  # all are compared (OFFSET 0: no index orders them); the nearest are looked up in their order, while wanted
        nearest = f"SELECT * FROM ({own} OFFSET 0) v ORDER BY distance, id"
        near = f"{counting} LIMIT %(candidates)s"
    return f"nearest AS MATERIALIZED ({nearest} LIMIT %(seen)s), near AS ({near})"


def _matching(kind: str, words: int, lookup: TextMethod, scope: str, live: str) -> str:
    """Choose the memories that match best; of very many matches, some are as good as others.

    Only what would be best if no word came twice is scored in full, which takes ten times as long.
    """
    row = row_columns(kind, "p") + (", p.occurred_at, p.number" if kind == "episode" else "")
    if not words:
        return f"SELECT p.id, {row}, {_UNSCORED} FROM memory_{kind} p WHERE false"
    held = " + ".join(f"%(weight_{n})s * (p.search @@ %(word_{n})s::tsquery)::int" for n in range(words))
    return f"""
        SELECT p.id, {row}, s.score, s.coverage, s.telling FROM (
            SELECT * FROM (
                SELECT p.id, {row}, ({held})::float8 AS held FROM memory_{kind} p
                WHERE {_has_words(lookup, scope.format(row="p"))} AND {live.format(row="p")}
                LIMIT %(matching)s
            ) p
            ORDER BY p.held / (1.3 + length(p.search) / %(mean_length)s * 0.9) DESC, p.id LIMIT %(scored)s
        ) p {text_score_sql("p")}
        ORDER BY s.score DESC, p.id LIMIT %(candidates)s
    """


def _has_words(lookup: TextMethod, scope: str) -> str:
    """Ask for a scope's rows with the words, and keep the planner from the index that is not to be used."""
    if lookup == TextMethod.BY_WORDS:
        scope = scope.replace("p.workspace_id =", "p.workspace_id + 0 =")
    held = "p.search @@ %(rare)s::tsquery"
    return f"{scope} AND {f'({held}) IS TRUE' if lookup == TextMethod.BY_WORKSPACE else held}"


def similarity_sql(arm: VectorMethod) -> str:
    """Name the cosine of the query's vector and v's, or nothing where there is no vector to ask for."""
    return "NULL::float8" if arm == VectorMethod.NONE else f"1 - ({_DISTANCE})"


def weighted_similarity_sql(arm: VectorMethod, *, is_weighted: bool) -> str:
    """Name the cosine of the query's vector of weighted words and v's, or nothing where there is none."""
    return "NULL::float8" if arm == VectorMethod.NONE or not is_weighted else "1 - (v.vector <=> %(weighted)b::halfvec)"


_VECTOR_OF_EPISODE = "SELECT v.vector FROM memory_episodeembedding v WHERE v.episode_id = p.id AND v.model = %(model)s"


def join_vectors(kind: str, arm: VectorMethod) -> str:
    """Join a memory's vector as v."""
    if arm == VectorMethod.NONE:
        return ""
    return f"LEFT JOIN memory_{kind}embedding v ON v.{kind}_id = p.id AND v.model = %(model)s"


def text_score_sql(row: str, *, unless: str = "false") -> str:
    """Score a row's text, and tell the shares of the query that its words, and the telling ones, cover; named s.

    Most rows that were found by vector share no word with the query: to see that is cheaper than to take them apart.
    Of the others only the query's lexemes are taken apart, marked with a weight that no stored text has. What is known
    already is not scored again: it has 0 here.
    """
    return f"""CROSS JOIN LATERAL (
        SELECT coalesce(sum(w.weight * w.times * 2.2
                            / (w.times + 1.2 * (0.25 + length({row}.search) / %(mean_length)s * 0.75))), 0)::float8
                   AS score,
               (coalesce(sum(w.weight), 0) / %(mass)s)::float8 AS coverage,
               (coalesce(sum(w.telling), 0) / %(mass)s)::float8 AS telling
        FROM (
            SELECT max((%(weights)s::float8[])[u.place]) AS weight, max((%(telling)s::float8[])[u.place]) AS telling,
                   sum(u.times) AS times
            FROM (
                SELECT array_position(%(lexemes)s::text[], lexeme) AS place, cardinality(positions) AS times
                FROM unnest(CASE WHEN {row}.search @@ %(any)s::tsquery AND NOT {unless}
                    THEN ts_filter(setweight({row}.search, 'A', %(lexemes)s::text[]), '{{a}}') END)
            ) u
            GROUP BY (%(words)s::int[])[u.place]
        ) w
    ) s"""


def _beside(direction: str, order: str, live: str) -> str:
    """Take the two live episodes of a match's session that come next in one direction, and their shares."""
    next_share = "%(next_share)s::float8"
    if direction == ">":
        next_share = f"CASE WHEN m.is_question THEN %(answer_share)s::float8 ELSE {next_share} END"
    return f"""(
        SELECT t.*, CASE t.place WHEN 1 THEN {next_share} ELSE %(second_share)s::float8 END AS share FROM (
            SELECT p.id, {row_columns("episode", "p")},
                row_number() OVER (ORDER BY p.occurred_at {order}, p.number {order}) AS place
            FROM memory_episode p
            WHERE {EPISODE_SCOPE.format(row="p")} AND {live.format(row="p")}
              AND NOT p.session = '' AND p.session = m.session  -- the first for the index, which is partial
              AND p.project_id IS NOT DISTINCT FROM m.project_id
              AND (p.occurred_at, p.number) {direction} (m.occurred_at, m.number)
            ORDER BY p.occurred_at {order}, p.number {order} LIMIT 2
        ) t
    )"""


# Nearest vectors looked at for each candidate wanted: what they stand for may be over, or doubted. A scan gets them for
# nothing, an index goes on searching for them, and further if that was not enough.
_SEEN_PER_CANDIDATE = {VectorMethod.SCAN: 10.0, VectorMethod.OWN_INDEX: 1.2, VectorMethod.SHARED_INDEX: 1.2}
_SEEN_FURTHER = 10.0
_SCORED_PER_CANDIDATE = 4  # texts scored in full for each candidate wanted
_MOST_WORDS = 8  # that choose which ones


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWords:
    """A query's lexemes, each with the number of its word and that word's weight; together they weigh `mass`.

    `telling` is the weight of each lexeme again, 0 where its word tells nothing of what is meant.
    `rare` is the tsquery, of any configuration, that a row must satisfy to become a candidate; `each` are those of the
    single words with their weights, the rarest first. `documents` are all texts of the workspace; `has_waiting` if
    turns of it wait to be read.
    """

    lexemes: tuple[str, ...]
    words: tuple[int, ...]
    weights: tuple[float, ...]
    telling: tuple[float, ...]
    mass: float
    mean_length: float
    rare: str
    each: tuple[tuple[str, float], ...]
    documents: int
    has_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is looked for, and by which arms: a vector of `model` (None: by text alone), and words (None: by vector).

    `weighted` is a vector of the same words, each by how rare it is, where the model has such vectors. `arm` is NONE
    where there is no vector; `is_further` has an index search on among more distant vectors, `effort` is how many it
    keeps in view (None: as many as before). `lookup` is how rows with the words are found. `is_small` where few
    memories of the kind are stored at all.
    """

    vector: Vectors | None
    model: str
    words: QueryWords | None
    weighted: Vectors | None = None
    arm: VectorMethod = VectorMethod.NONE
    lookup: TextMethod = TextMethod.PLANNED
    is_further: bool = False
    effort: int | None = None
    is_small: bool = False


def search_parameters(*, reach: SearchScope, query: SearchQuery, candidates: int, matching: int) -> dict[str, Any]:
    """Return what the statements of a search name, but for what one kind alone is asked."""
    words = query.words or NO_WORDS
    parameters = reach.parameters() | {
        "model": query.model,
        "vector": None if query.vector is None else HalfVector(query.vector),
        "weighted": None if query.weighted is None else HalfVector(query.weighted),
        "candidates": candidates,
        "seen": round(candidates * (_SEEN_FURTHER if query.is_further else _SEEN_PER_CANDIDATE.get(query.arm, 1.0))),
        "effort": query.effort,
        "matching": matching,
        "scored": candidates * _SCORED_PER_CANDIDATE,
        "rare": words.rare,
        "any": " | ".join(word for word, _ in words.each),
        "lexemes": list(words.lexemes),
        "words": list(words.words),
        "weights": list(words.weights),
        "telling": list(words.telling),
        "mass": words.mass or 1.0,
        "mean_length": words.mean_length,
    }
    for number, (word, weight) in enumerate(words.each[:_MOST_WORDS]):
        parameters |= {f"word_{number}": word, f"weight_{number}": weight}
    return parameters


def count_words(query: SearchQuery) -> int:
    """Return by how many words a statement is to choose texts; 0 for no search by text."""
    return len(query.words.each[:_MOST_WORDS]) if query.words else 0


NO_WORDS = QueryWords(
    lexemes=(), words=(), weights=(), telling=(), mass=0.0, mean_length=1.0, rare="", each=(), documents=0
)
