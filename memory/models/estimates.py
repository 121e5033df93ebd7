"""How many rows there are: counted while they are few, estimated when they are many."""

import json
from typing import Any

from django.db.models import QuerySet

EXACT_UP_TO = 10_000  # rows; to count so many takes some milliseconds, however many there are


def count_about(rows: QuerySet[Any]) -> int:
    """Count rows exactly up to a bound; above it, return what PostgreSQL's planner expects, never less than counted."""
    counted = rows.order_by()[: EXACT_UP_TO + 1].count()
    return counted if counted <= EXACT_UP_TO else max(counted, estimate_rows(rows))


def estimate_rows(rows: QuerySet[Any]) -> int:
    """Return how many rows PostgreSQL's planner expects, by its last look at the table and the table's size now."""
    [explained] = json.loads(rows.order_by().only("pk").explain(format="json"))
    return int(explained["Plan"]["Plan Rows"])
