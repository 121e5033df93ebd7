"""How rare the words of a query are.

`read_query_words` stems a query and weighs its words by the stored counts; `count_due_words` refreshes these counts in
the background.
"""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import structlog
from django.db import DatabaseError, connection, transaction

from memory.domain.lifecycle import WORKSPACE_ERRORS
from memory.domain.policy_recall import RecallPolicy
from memory.domain.scoring import inverse_document_frequency
from memory.models.fields import DEFAULT_TEXT_CONFIGURATION, TEXT_CONFIGURATIONS
from memory.search.prepared import run_prepared
from memory.search.statements import NO_WORDS, QueryWords

log = structlog.get_logger(__name__)
_STEMMING = tuple(dict.fromkeys(TEXT_CONFIGURATIONS.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """A word, the lexemes that rows of any language keep it as, and the number of texts it stands in."""

    lexemes: tuple[str, ...]
    documents: int


def read_query_words(
    *, query: str, workspace_id: int, is_telling: Callable[[str], bool], policy: RecallPolicy
) -> QueryWords:
    """Return what of a query the text arm asks for: its `query_terms` rarest words, weighed by their rarity.

    `is_telling` says of a lexeme whether it says something of what is meant, however rare it is. Stop words of the
    query's likeliest language are left out, for rows of other languages too: there they would be the rarest of all.
    """
    asked = {
        "query": query,
        "simple": DEFAULT_TEXT_CONFIGURATION,
        "configurations": list(_STEMMING),
        "workspace": workspace_id,
        "sample": policy.length_sample,
    }
    # Without a word to ask for, neither finds anything. Counting on the spot goes by how many texts the workspace has.
    for statement, keeps_plan in ((_READ_COUNTED, True), (_COUNT_NOW, False)):
        if rows := run_prepared(statement=statement, parameters=asked, keeps_plan=keeps_plan).fetchall():
            break
    if not rows:
        return NO_WORDS
    documents, mean_length, has_waiting = rows[0][2:]
    found = sorted(
        (_Word(lexemes=tuple(lexemes), documents=frequency) for lexemes, frequency, *_ in rows),
        key=lambda word: (word.documents, word.lexemes),
    )[: policy.query_terms]
    words = _weigh_words(found, is_telling, documents=documents, mean_length=mean_length, policy=policy)
    return replace(words, has_waiting=has_waiting)


def _weigh_words(
    found: Sequence[_Word],
    is_telling: Callable[[str], bool],
    *,
    documents: int,
    mean_length: float,
    policy: RecallPolicy,
) -> QueryWords:
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
        rare=_candidate_condition(found, documents, policy),
        each=tuple((_any_of([word]), weight) for word, weight in zip(found, weights, strict=True)),
        documents=documents,
    )


def _candidate_condition(found: Sequence[_Word], documents: int, policy: RecallPolicy) -> str:
    """Choose what candidates must have: in few texts any word, in many one of the rarest; else the two rarest."""
    if documents <= policy.small_collection:
        return _any_of(found)
    rare = [word for word in found if word.documents < policy.rare_share * documents][: policy.rare_terms]
    if not rare:
        return " & ".join(f"({_any_of([word])})" for word in found[:2])
    sums = accumulate(word.documents for word in rare)
    few = [word for word, together in zip(rare, sums, strict=True) if together <= policy.small_collection]
    return _any_of(few or rare[:1])


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
_READ_COUNTED = f"""{_WORDS}
SELECT f.lexemes, frequency.documents, m.documents, m.mean_length, {_HAS_WAITING}
FROM forms f, memory_textstatistics m CROSS JOIN LATERAL (
    SELECT coalesce(max(t.documents), 0) AS documents FROM memory_termfrequency t
    WHERE t.workspace_id = %(workspace)s AND t.lexeme = ANY(f.lexemes)
) frequency
WHERE m.workspace_id = %(workspace)s
"""

# The same of what has not been counted yet: a young workspace, whose rows are all looked at (IS TRUE: by no index).
_COUNT_NOW = rf"""{_WORDS}
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


def _any_of(words: Sequence[_Word]) -> str:
    return " | ".join(sorted({_quote(lexeme) for word in words for lexeme in word.lexemes}))


def _quote(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


_COUNT_LOCKS = 3  # the first of the two numbers that name an advisory lock


def count_due_words(*, policy: RecallPolicy) -> int:
    """Count the words of every workspace that grew enough since it was counted last; return of how many."""
    return sum(_try_to_count(workspace_id) for workspace_id in list(_due_workspaces(policy)))


def _try_to_count(workspace_id: int) -> bool:
    """Count, or log why not: those that come after it are counted all the same."""
    try:
        return count_words(workspace_id=workspace_id)
    except (DatabaseError, *WORKSPACE_ERRORS) as error:
        if not connection.is_usable():
            raise
        log.warning(
            "words_not_counted", workspace=workspace_id, error=str(error), exc_info=not isinstance(error, DatabaseError)
        )
        return False


def _due_workspaces(policy: RecallPolicy) -> Iterator[int]:
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"least": policy.recount_least, "share": policy.recount_share})
        yield from (workspace_id for (workspace_id,) in cursor.fetchall())


@transaction.atomic
def count_words(*, workspace_id: int, waits: bool = False) -> bool:
    """Count how common each word is in a workspace's active memories; false if somebody else is counting.

    With `waits` their counting is waited for instead. Readers see the old numbers until the new ones are complete.
    """
    key = [_COUNT_LOCKS, workspace_id % 2**31]
    with connection.cursor() as cursor:
        if waits:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", key)
        else:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", key)
            if not cursor.fetchone()[0]:
                return False
        parameters = {"workspace": workspace_id}
        cursor.execute("DELETE FROM memory_termfrequency WHERE workspace_id = %(workspace)s", parameters)
        cursor.execute(_COUNT_TERMS, parameters)
        terms = cursor.rowcount
        cursor.execute(_COUNT_TEXTS, parameters)
    log.info("words_counted", workspace=workspace_id, terms=terms)
    return True


# Looks at no more than the newest rows of each workspace: enough to tell whether enough are new.
_DUE = """
SELECT w.id FROM memory_workspace w LEFT JOIN memory_textstatistics s ON s.workspace_id = w.id
CROSS JOIN LATERAL (
    SELECT count(*) AS fresh FROM (
        SELECT FROM memory_episode e WHERE e.workspace_id = w.id AND e.number > coalesce(s.last_number, 0)
        LIMIT greatest(%(least)s, ceil(%(share)s * coalesce(s.documents, 0)))::bigint
    ) e
) grown
WHERE grown.fresh >= CASE WHEN s.workspace_id IS NULL THEN 1 ELSE greatest(%(least)s, ceil(%(share)s * s.documents)) END
ORDER BY w.id
"""

# A word is as common as it is among episodes, or among beliefs where it is commoner there: the name of whose memory it
# is stands in nearly every belief, and tells none from another. Of few beliefs a share says little: one word is taken
# off, and four beliefs are added.
_COUNT_TERMS = """
WITH texts AS (
    SELECT search, true AS is_episode FROM memory_episode
    WHERE workspace_id = %(workspace)s AND status = 'active'
    UNION ALL SELECT search, false FROM memory_belief WHERE workspace_id = %(workspace)s AND status = 'active'
), counted AS (
    SELECT count(*) FILTER (WHERE is_episode) AS episodes, count(*) FILTER (WHERE NOT is_episode) AS beliefs FROM texts
), terms AS (
    SELECT u.lexeme, count(*) FILTER (WHERE is_episode) AS in_episodes,
        count(*) FILTER (WHERE NOT is_episode) AS in_beliefs
    FROM texts t, unnest(t.search) u GROUP BY u.lexeme
)
INSERT INTO memory_termfrequency (workspace_id, lexeme, documents)
SELECT %(workspace)s, lexeme,
    greatest(in_episodes, round((in_beliefs - 1) * c.episodes / (c.beliefs + 4.0))) AS documents
FROM terms CROSS JOIN counted c WHERE in_episodes > 0 OR in_beliefs > 1
"""

_COUNT_TEXTS = """
INSERT INTO memory_textstatistics (workspace_id, documents, mean_length, last_number, counted_at)
SELECT %(workspace)s, count(*) FILTER (WHERE status = 'active'),
    coalesce(avg(length(search)) FILTER (WHERE status = 'active'), 1), coalesce(max(number), 0), now()
FROM memory_episode WHERE workspace_id = %(workspace)s
ON CONFLICT (workspace_id) DO UPDATE SET documents = EXCLUDED.documents, mean_length = EXCLUDED.mean_length,
    last_number = EXCLUDED.last_number, counted_at = EXCLUDED.counted_at
"""
