"""A query's words: how each text search configuration stems them, and how much each tells."""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from memory.domain.policy import RecallPolicy
from memory.domain.scoring import inverse_document_frequency
from memory.language.queries import is_telling
from memory.models.fields import DEFAULT_TEXT_CONFIGURATION, TEXT_CONFIGURATIONS
from memory.search.prepared import run_prepared
from memory.search.statements import NO_WORDS, QueryWords

_STEMMING = tuple(dict.fromkeys(TEXT_CONFIGURATIONS.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """A word, the lexemes that rows of any language keep it as, and the number of texts it stands in."""

    lexemes: tuple[str, ...]
    documents: int


def words_of(*, query: str, workspace_id: int, policy: RecallPolicy) -> QueryWords:
    """Return what of a query the text arm asks for: its `query_terms` rarest words, weighed by their rarity.

    Stop words of the query's likeliest language are left out, for rows of other languages too: there they would be the
    rarest of all.
    """
    asked = {
        "query": query,
        "simple": DEFAULT_TEXT_CONFIGURATION,
        "configurations": list(_STEMMING),
        "workspace": workspace_id,
        "sample": policy.length_sample,
    }
    # Without a word to ask for, neither finds anything. Counting on the spot goes by how many texts the workspace has.
    for statement, keeps_plan in ((_COUNTED, True), (_COUNT, False)):
        if rows := run_prepared(statement=statement, parameters=asked, keeps_plan=keeps_plan).fetchall():
            break
    if not rows:
        return NO_WORDS
    documents, mean_length, has_waiting = rows[0][2:]
    found = sorted(
        (_Word(lexemes=tuple(lexemes), documents=frequency) for lexemes, frequency, *_ in rows),
        key=lambda word: (word.documents, word.lexemes),
    )[: policy.query_terms]
    words = _weigh(found, documents=documents, mean_length=mean_length, policy=policy)
    return replace(words, has_waiting=has_waiting)


def _weigh(found: Sequence[_Word], *, documents: int, mean_length: float, policy: RecallPolicy) -> QueryWords:
    weights = [inverse_document_frequency(documents=documents, frequency=word.documents) for word in found]
    flat = [
        (lexeme, number, weight, weight if all(map(is_telling, word.lexemes)) else 0.0)
        for number, (word, weight) in enumerate(zip(found, weights, strict=True))
        for lexeme in word.lexemes
    ]
    return QueryWords(
        lexemes=tuple(lexeme for lexeme, *_ in flat),
        words=tuple(number for _, number, *_ in flat),
        weights=tuple(weight for *_, weight, _ in flat),
        telling=tuple(weight for *_, weight in flat),
        mass=sum(weights),
        mean_length=max(mean_length, 1.0),
        rare=_condition(found, documents, policy),
        each=tuple((_any([word]), weight) for word, weight in zip(found, weights, strict=True)),
        documents=documents,
    )


def _condition(found: Sequence[_Word], documents: int, policy: RecallPolicy) -> str:
    """Choose what candidates must have: in few texts any word, in many one of the rarest; else the two rarest."""
    if documents <= policy.small_collection:
        return _any(found)
    rare = [word for word in found if word.documents < policy.rare_share * documents][: policy.rare_terms]
    if not rare:
        return " & ".join(f"({_any([word])})" for word in found[:2])
    sums = accumulate(word.documents for word in rare)
    few = [word for word, together in zip(rare, sums, strict=True) if together <= policy.small_collection]
    return _any(few or rare[:1])


# The words of a query, each with the lexemes that rows of any language keep it as.
_WORDS = r"""
WITH words AS (
    SELECT word FROM unnest(tsvector_to_array(to_tsvector(%(simple)s::regconfig, %(query)s::text))) word
), stems AS (
    SELECT c.name, w.word, ts_lexize((c.name || '_stem')::regdictionary, w.word) AS stem
    FROM unnest(%(configurations)s::text[]) AS c(name), words w
), spoken AS (
    SELECT name FROM stems GROUP BY name ORDER BY count(*) FILTER (WHERE stem = '{}') DESC, name = 'english' DESC, name
    LIMIT 1
), forms AS (
    SELECT s.word, array_agg(DISTINCT form.lexeme) AS lexemes
    FROM stems s CROSS JOIN LATERAL (SELECT unnest(s.stem) UNION SELECT s.word) AS form(lexeme)
    WHERE NOT EXISTS (SELECT FROM stems t JOIN spoken USING (name) WHERE t.word = s.word AND t.stem = '{}')
    GROUP BY s.word
)
"""
# Told along with a query's words, so that a recall asks about turns only where some wait.
_HAS_WAITING = """(
    EXISTS (SELECT FROM memory_conversation c WHERE c.workspace_id = %(workspace)s::bigint AND c.buffered > 0)
    OR EXISTS (SELECT FROM memory_conversation c WHERE c.workspace_id = %(workspace)s::bigint AND c.leased > 0))"""
# A row for each word: its lexemes, in how many texts they stand, how many texts there are, and how long.
_COUNTED = f"""{_WORDS}
SELECT f.lexemes, frequency.documents, m.documents, m.mean_length, {_HAS_WAITING}
FROM forms f, memory_textstatistics m CROSS JOIN LATERAL (
    SELECT coalesce(max(t.documents), 0) AS documents FROM memory_termfrequency t
    WHERE t.workspace_id = %(workspace)s AND t.lexeme = ANY(f.lexemes)
) frequency
WHERE m.workspace_id = %(workspace)s
"""
# The same of what has not been counted yet: a young workspace, whose rows are all looked at (IS TRUE: by no index).
_COUNT = rf"""{_WORDS}
, measured AS (
    SELECT count(*) AS documents, coalesce(avg(length) FILTER (WHERE number <= %(sample)s), 1)::float8 AS mean_length
    FROM (SELECT length(search) AS length, row_number() OVER () AS number FROM memory_episode
          WHERE workspace_id = %(workspace)s AND status = 'active') e
)
SELECT f.lexemes, frequency.documents, m.documents, m.mean_length, {_HAS_WAITING}
FROM forms f, measured m CROSS JOIN LATERAL (
    SELECT count(*) AS documents FROM memory_episode e
    WHERE e.workspace_id = %(workspace)s AND e.status = 'active'
      AND (e.search @@ (SELECT string_agg(quoted, ' | ') FROM unnest(f.lexemes) lexeme, LATERAL (
          SELECT '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''' AS quoted) q)::tsquery) IS TRUE
) frequency
"""


def _any(words: Sequence[_Word]) -> str:
    return " | ".join(sorted({_quote(lexeme) for word in words for lexeme in word.lexemes}))


def _quote(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
