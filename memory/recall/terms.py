"""A query's words as each text search configuration stems them, joined by OR."""

from collections.abc import Collection

from django.db import connection

from memory.models.fulltext import CONFIGURATIONS, UNKNOWN_CONFIGURATION
from memory.models.vector_search import Words

_STEMMING = tuple(CONFIGURATIONS.values())


def any_of_words(*, query: str, most: int) -> Words:
    """Return a query's `most` longest words, as tsqueries that any of them satisfies.

    Rows of unknown language keep their stop words, so those of the query's likeliest language are left out for them.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PARSE, {"query": query, "simple": UNKNOWN_CONFIGURATION, "configurations": list(_STEMMING)})
        rows = cursor.fetchall()
        words = rows[0][3]
    stop_words = max((row[2] for row in rows), key=len)
    lexemes = {configuration: stems for configuration, stems, _, _ in rows}
    lexemes[UNKNOWN_CONFIGURATION] = [word for word in words if word not in stop_words] or words
    longest = {name: sorted(found, key=_longest_first)[:most] for name, found in lexemes.items()}
    return Words(
        by_configuration={name: _join(found) for name, found in longest.items()},
        of_any=_join({lexeme for found in longest.values() for lexeme in found}),
    )


_PARSE = """
SELECT c.name, tsvector_to_array(to_tsvector(c.name::regconfig, %(query)s)),
    ARRAY(SELECT word FROM unnest(words.list) word WHERE ts_lexize((c.name || '_stem')::regdictionary, word) = '{}'),
    words.list
FROM unnest(%(configurations)s::text[]) AS c(name),
    (SELECT tsvector_to_array(to_tsvector(%(simple)s::regconfig, %(query)s)) AS list) words
"""


def _longest_first(lexeme: str) -> tuple[int, str]:
    return -len(lexeme), lexeme


def _join(lexemes: Collection[str]) -> str:
    return " | ".join(_quote(lexeme) for lexeme in sorted(lexemes))


def _quote(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
