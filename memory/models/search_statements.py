"""The statements of a search, put together from its arms.

Text is matched by any of the query's words and scored by BM25 (Robertson and Zaragoza 2009) with k₁ = 1.2, b = 0.75.
What was said beside a match, in the same session, takes a share of its score, most of it what comes after a question.
Every row begins with how many vectors were looked at, and how many of them count.
"""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from enum import StrEnum
from functools import cache

from memory.models.reach import BELIEF_SCOPE, EPISODE_SCOPE, LIVE_BELIEF, LIVE_EPISODE

# True of every vector, which the planner does not know: only a statement that says so is answered by the index that has
# it as its condition. Else it might take that one for a workspace that has one of its own.
IN_SHARED_INDEX = "length(model) > 0"


class VectorArm(StrEnum):
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
        return self in (VectorArm.OWN_INDEX, VectorArm.SHARED_INDEX)


class Lookup(StrEnum):
    """By what rows that hold words are found: as the planner sees fit, by their words, or among all of a workspace.

    The last two need no look at what is asked, so that one plan serves every query.
    """

    PLANNED = "planned"
    BY_WORDS = "by words"
    BY_WORKSPACE = "by workspace"


@cache
def episodes_statement(
    *,
    arm: VectorArm,
    words: int,
    lookup: Lookup = Lookup.PLANNED,
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
    if is_weighted and arm != VectorArm.NONE:  # each vector is read anyhow, and by its key (OFFSET 0)
        similarity, vectors = similarity_of(arm), f"LEFT JOIN LATERAL ({_VECTOR_OF_EPISODE} OFFSET 0) v ON true"
    return f"""
        WITH {_nearest("episode", arm, EPISODE_SCOPE, live, active, filled)},
        matching AS MATERIALIZED ({_matching("episode", words, lookup, EPISODE_SCOPE, live)}),
        found AS (
            SELECT id, {_known("episode")}, sum(context_score) AS context_score FROM (
                SELECT id, {columns_of("episode", "n")}, distance, {_UNSCORED}, 0::float8 AS context_score FROM near n
                UNION ALL SELECT id, {columns_of("episode", "m")}, NULL, score, coverage, telling, 0 FROM matching m
                UNION ALL SELECT n.id, {columns_of("episode", "n")}, NULL, NULL, NULL, NULL, m.score * n.share
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
            {EPISODE_FACTS}, {weighted_similarity_of(arm, is_weighted=is_weighted)} AS weighted_similarity
        FROM found p {score_of("p", unless="p.score IS NOT NULL")} {vectors}
    """


@cache
def beliefs_statement(
    *,
    arm: VectorArm,
    words: int,
    lookup: Lookup = Lookup.PLANNED,
    filled: int | None = None,
    live: str = LIVE_BELIEF,
    active: str = "v.is_active",
) -> str:
    """Return the statement that finds beliefs by these arms, of those `live` and with an `active` vector."""
    return f"""
        WITH {_nearest("belief", arm, BELIEF_SCOPE, live, active, filled)},
        matching AS MATERIALIZED ({_matching("belief", words, lookup, BELIEF_SCOPE, live)}),
        found AS (
            SELECT id, {_known("belief")} FROM (
                SELECT id, {columns_of("belief", "n")}, distance, {_UNSCORED} FROM near n
                UNION ALL SELECT id, {columns_of("belief", "m")}, NULL, score, coverage, telling FROM matching m
            ) ways GROUP BY id
        )
        SELECT {_COUNTS}, p.id, {_similarity("belief", arm)} AS similarity, coalesce(p.score, s.score) AS text_score,
            coalesce(p.coverage, s.coverage) AS coverage, coalesce(p.telling, s.telling) AS telling,
            p.confidence, p.created_at, a.accessed_at, a.stability
        FROM found p {score_of("p", unless="p.score IS NOT NULL")}
        LEFT JOIN memory_beliefaccess a ON a.belief_id = p.id
    """


# What is read of a memory's row when it is found, so that nobody has to look it up again.
_READ = {
    "episode": ("search", "session", "project_id", "lifecycle_state", "verification", "source", "speaker", "text"),
    "belief": ("search", "confidence", "created_at"),
}
# What is told of an episode p that was found, beside its scores; a long text is not read beyond where it begins.
EPISODE_FACTS = """p.session, p.project_id, p.lifecycle_state, p.verification, p.source, p.speaker,
            length(p.search) AS length, left(p.text, 80) AS opening"""
_UNSCORED = "NULL::float8 AS score, NULL::float8 AS coverage, NULL::float8 AS telling"


def columns_of(kind: str, row: str) -> str:
    """Name what is read of a row."""
    return ", ".join(f"{row}.{column}" for column in _READ[kind])


def _known(kind: str) -> str:
    """Put together what is known of a memory that was found in more than one way."""
    read = ", ".join(f"any_value({column}) AS {column}" for column in _READ[kind])
    return f"{read}, min(distance) AS distance, max(score) AS score, max(coverage) AS coverage, max(telling) AS telling"


def _similarity(kind: str, arm: VectorArm) -> str:
    """Name the cosine of the query's vector and that of p; the distance may be known."""
    if arm == VectorArm.NONE:
        return similarity_of(arm)
    return f"""1 - coalesce(p.distance, (
            SELECT {_DISTANCE} FROM memory_{kind}embedding v WHERE v.{kind}_id = p.id AND v.model = %(model)s))"""


_COUNTS = "(SELECT count(*) FROM nearest) AS seen, (SELECT count(*) FROM near) AS near"
_DISTANCE = "v.vector <=> %(vector)b::halfvec"
# Set before the index is first asked, for the rest of the transaction: a condition that names no row is looked at once.
EFFORT = """(
            SELECT set_config('hnsw.ef_search', coalesce(%(effort)s::text, current_setting('hnsw.ef_search')), true)
        ) <> ''"""


def order_of_index(filled: int | None) -> str:
    """Name the distance by which an index over so many dimensions has v's vectors in order."""
    return f"{indexed_part('v.vector', filled)} <=> {indexed_part('%(vector)b::halfvec', filled)}"


def indexed_part(vector: str, filled: int | None) -> str:
    """Name what an index knows of a vector: what is 0 in all would only make it larger."""
    return vector if filled is None else f"subvector({vector}, 1, {filled})::halfvec({filled})"


def _nearest(kind: str, arm: VectorArm, scope: str, live: str, active: str, filled: int | None) -> str:
    """Choose the memories nearest by vector (near), of those looked at (nearest)."""
    row = columns_of(kind, "p")
    if arm == VectorArm.NONE:
        nothing = f"SELECT p.id, {row}, 0::float8 AS distance FROM memory_{kind} p WHERE false"
        return f"nearest AS ({nothing}), near AS (SELECT * FROM nearest)"
    vectors = f"""memory_{kind}embedding v {{join}}
            WHERE {scope.format(row="v")} AND {active} AND v.model = %(model)s"""
    if arm == VectorArm.SHARED_INDEX:
        vectors += f" AND {IN_SHARED_INDEX}"
    if arm == VectorArm.JOIN:
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
        nearest = f"{own} AND {EFFORT} ORDER BY {order_of_index(filled)}"
        near = f"{counting} ORDER BY n.distance + 0, p.id LIMIT %(candidates)s"
    else:  # all are compared (OFFSET 0: no index orders them); the nearest are looked up in their order, while wanted
        nearest = f"SELECT * FROM ({own} OFFSET 0) v ORDER BY distance, id"
        near = f"{counting} LIMIT %(candidates)s"
    return f"nearest AS MATERIALIZED ({nearest} LIMIT %(seen)s), near AS ({near})"


def _matching(kind: str, words: int, lookup: Lookup, scope: str, live: str) -> str:
    """Choose the memories that match best; of very many matches, some are as good as others.

    Only what would be best if no word came twice is scored in full, which takes ten times as long.
    """
    row = columns_of(kind, "p") + (", p.occurred_at, p.number" if kind == "episode" else "")
    if not words:
        return f"SELECT p.id, {row}, {_UNSCORED} FROM memory_{kind} p WHERE false"
    held = " + ".join(f"%(weight_{n})s * (p.search @@ %(word_{n})s::tsquery)::int" for n in range(words))
    return f"""
        SELECT p.id, {row}, s.score, s.coverage, s.telling FROM (
            SELECT * FROM (
                SELECT p.id, {row}, ({held})::float8 AS held FROM memory_{kind} p
                WHERE {_holding(lookup, scope.format(row="p"))} AND {live.format(row="p")}
                LIMIT %(matching)s
            ) p
            ORDER BY p.held / (1.3 + length(p.search) / %(mean_length)s * 0.9) DESC, p.id LIMIT %(scored)s
        ) p {score_of("p")}
        ORDER BY s.score DESC, p.id LIMIT %(candidates)s
    """


def _holding(lookup: Lookup, scope: str) -> str:
    """Ask for a scope's rows with the words, and keep the planner from the index that is not to be used."""
    if lookup == Lookup.BY_WORDS:
        scope = scope.replace("p.workspace_id =", "p.workspace_id + 0 =")
    held = "p.search @@ %(rare)s::tsquery"
    return f"{scope} AND {f'({held}) IS TRUE' if lookup == Lookup.BY_WORKSPACE else held}"


def similarity_of(arm: VectorArm) -> str:
    """Name the cosine of the query's vector and v's, or nothing where there is no vector to ask for."""
    return "NULL::float8" if arm == VectorArm.NONE else f"1 - ({_DISTANCE})"


def weighted_similarity_of(arm: VectorArm, *, is_weighted: bool) -> str:
    """Name the cosine of the query's vector of weighted words and v's, or nothing where there is none."""
    return "NULL::float8" if arm == VectorArm.NONE or not is_weighted else "1 - (v.vector <=> %(weighted)b::halfvec)"


_VECTOR_OF_EPISODE = "SELECT v.vector FROM memory_episodeembedding v WHERE v.episode_id = p.id AND v.model = %(model)s"


def join_vectors(kind: str, arm: VectorArm) -> str:
    """Join a memory's vector as v."""
    if arm == VectorArm.NONE:
        return ""
    return f"LEFT JOIN memory_{kind}embedding v ON v.{kind}_id = p.id AND v.model = %(model)s"


def score_of(row: str, *, unless: str = "false") -> str:
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
            SELECT p.id, {columns_of("episode", "p")},
                row_number() OVER (ORDER BY p.occurred_at {order}, p.number {order}) AS place
            FROM memory_episode p
            WHERE {EPISODE_SCOPE.format(row="p")} AND {live.format(row="p")}
              AND NOT p.session = '' AND p.session = m.session  -- the first for the index, which is partial
              AND p.project_id IS NOT DISTINCT FROM m.project_id
              AND (p.occurred_at, p.number) {direction} (m.occurred_at, m.number)
            ORDER BY p.occurred_at {order}, p.number {order} LIMIT 2
        ) t
    )"""
