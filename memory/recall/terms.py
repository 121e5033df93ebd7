"""A query's words as each text search configuration stems them, joined by OR."""

from collections.abc import Iterable

from django.db import connection

from memory.models.fulltext import CONFIGURATIONS, UNKNOWN_CONFIGURATION

_STEMMING = tuple(CONFIGURATIONS.values())


def any_of_words(*, query: str, most: int) -> dict[str, str]:
    """Return, by configuration, a tsquery that any word of the query satisfies; at most its `most` longest words.

    Rows of unknown language keep their stop words, so those of the query's likeliest language are left out for them.
    """
    with connection.cursor() as cursor:
        cursor.execute(_PARSE, {"query": query, "simple": UNKNOWN_CONFIGURATION, "configurations": list(_STEMMING)})
        rows = cursor.fetchall()
        words = rows[0][3]
    stop_words = max((row[2] for row in rows), key=len)
    lexemes = {configuration: stems for configuration, stems, _, _ in rows}
    lexemes[UNKNOWN_CONFIGURATION] = [word for word in words if word not in stop_words] or words
    return {configuration: _join(stems, most) for configuration, stems in lexemes.items()}


_PARSE = """
SELECT c.name, tsvector_to_array(to_tsvector(c.name::regconfig, %(query)s)),
    ARRAY(SELECT word FROM unnest(words.list) word WHERE ts_lexize((c.name || '_stem')::regdictionary, word) = '{}'),
    words.list
FROM unnest(%(configurations)s::text[]) AS c(name),
    (SELECT tsvector_to_array(to_tsvector(%(simple)s::regconfig, %(query)s)) AS list) words
"""


def _join(lexemes: Iterable[str], most: int) -> str:
    longest = sorted(lexemes, key=lambda lexeme: (-len(lexeme), lexeme))[:most]
    return " | ".join(_quote(lexeme) for lexeme in longest)


def _quote(lexeme: str) -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
