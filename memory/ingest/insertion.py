"""Insert many drafts of episodes in one short statement, and learn which of them went in."""

import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache

from django.db import connection

from memory.ingest.drafts import Draft
from memory.models import Episode


def insert_episodes(drafts: Sequence[Draft]) -> set[str]:
    """Insert drafts unless a unique constraint is in the way; return the ids of those that went in.

    The rows travel as one JSON text: composing a value list of 30 columns takes Django longer than it takes the
    database to insert it, and it does not tell which rows went in. They are inserted in one order, so that racing
    writers of the same words do not wait for each other in a circle.
    """
    _number(drafts)
    rows = sorted(drafts, key=lambda draft: (draft.content_hash, draft.origin, draft.user, draft.speaker))
    with connection.cursor() as cursor:
        cursor.execute(_statement(), [json.dumps([vars(row) for row in rows], default=datetime.isoformat)])
        return {pk for (pk,) in cursor.fetchall()}


def _number(drafts: Sequence[Draft]) -> None:
    """Number drafts in the order given, which tells who spoke after whom where times are equal."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('memory_episode_number') FROM generate_series(1, %s)", [len(drafts)])
        for draft, (number,) in zip(drafts, sorted(cursor.fetchall()), strict=True):
            draft.number = number


@cache
def _statement() -> str:
    types_by_column = {field.column: field.db_type(connection) for field in Episode._meta.concrete_fields}
    columns = {connection.ops.quote_name(field.name): types_by_column[field.name] for field in fields(Draft)}
    names = ", ".join(columns)
    types = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return (
        f"INSERT INTO memory_episode ({names}) "  # noqa: S608  (names and types are the model's own)
        f"SELECT {names} FROM json_to_recordset(%s::json) AS draft ({types}) ON CONFLICT DO NOTHING RETURNING id"
    )
