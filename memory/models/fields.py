"""Ids, choices and full-text columns that models share, and queries over any of them (B3).

`insert_new` inserts many rows in one statement, `count_about` counts few rows exactly and estimates many, `is_outage`
recognises a database that is away.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import InterfaceError, OperationalError, connection, models
from django.db.models import Case, Model, QuerySet, Value, When

from memory.domain.identity import IdKind


def new_id(kind: IdKind) -> str:
    """Draw a new id such as `ep_3f9a1c0b77de`."""
    return f"{kind}_{secrets.token_hex(6)}"


def new_episode_id() -> str:
    return new_id(IdKind.EPISODE)


def new_belief_id() -> str:
    return new_id(IdKind.BELIEF)


def new_cycle_id() -> str:
    return new_id(IdKind.CYCLE)


class IdField(models.CharField[str, str]):
    """Primary key of at most 15 characters, sorted by bytes so that locks are taken in one order everywhere."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.update(primary_key=True, max_length=15, db_collation="C", editable=False)
        super().__init__(*args, **kwargs)


def new_unused_id(kind: IdKind, model: type[models.Model]) -> str:
    """Draw an id that no row has; ids are never reused, so one that collides is drawn again."""
    drawn = new_id(kind)
    while model._default_manager.filter(pk=drawn).exists():
        drawn = new_id(kind)
    return drawn


def choices_of(closed_set: type[StrEnum]) -> list[tuple[str, str]]:
    """List the values of a domain enumeration as Django's choices."""
    return [(member.value, member.value.lower().replace("_", " ")) for member in closed_set]


# Languages with a stemmer in every PostgreSQL; any other is indexed word by word.
TEXT_CONFIGURATIONS = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "nl": "dutch",
    "pt": "portuguese",
}
DEFAULT_TEXT_CONFIGURATION = "simple"


def search_vector(*columns: str) -> Case:
    """Build the expression of a generated column over `columns`, by the row's `language`."""
    return Case(
        *(
            When(language=language, then=SearchVector(*columns, config=configuration))
            for language, configuration in TEXT_CONFIGURATIONS.items()
        ),
        default=SearchVector(*columns, config=Value(DEFAULT_TEXT_CONFIGURATION)),
        output_field=SearchVectorField(),
    )


class VectorKind(StrEnum):
    """A kind of memory, or of a part of one, as its tables are named."""

    EPISODE = "episode"
    BELIEF = "belief"
    CLAIM = "claim"

    @property
    def is_scoped(self) -> bool:
        """Tell whether its vectors know their project and user, and whether they are of something active."""
        return self != VectorKind.CLAIM


def insert_new(*, model: type[Model], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, given by the names of their columns; those whose unique keys exist already are left as they are.

    All rows name the same columns. What is no column is a KeyError, what does not fit one the database's DataError.
    """
    if rows:
        columns = tuple(rows[0])
        arrays = [[row[column] for row in rows] for column in columns]
        with connection.cursor() as cursor:
            cursor.execute(_insert_statement(model, columns), arrays)


@cache
def _insert_statement(model: type[Model], columns: tuple[str, ...]) -> str:
    types = {field.column: _array_type(str(field.db_type(connection))) for field in model._meta.concrete_fields}
    arrays = ", ".join(f"%s::{types[column]}[]" for column in columns)
    table, names = model._meta.db_table, ", ".join(map(connection.ops.quote_name, columns))
    return f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608


def _array_type(column_type: str) -> str:
    """Give the type to read a value as; a cast to varchar(n) would cut it, where the column itself complains."""
    return "text" if column_type.startswith("varchar") else column_type


EXACT_UP_TO = 10_000  # rows; to count so many takes some milliseconds, however many there are


def count_about(rows: QuerySet[Any]) -> int:
    """Count rows exactly up to a bound; above it, return what PostgreSQL's planner expects, never less than counted."""
    counted = rows.order_by()[: EXACT_UP_TO + 1].count()
    return counted if counted <= EXACT_UP_TO else max(counted, estimate_rows(rows))


def estimate_rows(rows: QuerySet[Any]) -> int:
    """Return how many rows PostgreSQL's planner expects, by its last look at the table and the table's size now."""
    [explained] = json.loads(rows.order_by().only("pk").explain(format="json"))
    return int(explained["Plan"]["Plan Rows"])


OUTAGE_RETRY_SECONDS = 5  # the embedded database is started again within one; a recovery takes a few
OUTAGE_MESSAGE = "The database is starting, recovering or full; try again after the time in Retry-After."

# Lost or refused connections, no room or no memory, an operator's or a crash's end, a start, a disk that fails.
_OUTAGE_CLASSES = ("08", "53", "58")
_OUTAGE_STATES = ("57P01", "57P02", "57P03")


def is_outage(error: BaseException | None) -> bool:
    """Tell whether an error came of a database that is away, and not of what was asked of it."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)  # none where there was no server to say anything
    return state is None or state in _OUTAGE_STATES or state[:2] in _OUTAGE_CLASSES
