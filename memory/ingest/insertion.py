"""Insert many episodes in one short statement, and learn which of them went in."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection

from memory.models import Episode


def insert_episodes(episodes: Sequence[Episode]) -> set[str]:
    """Insert episodes unless a unique constraint is in the way; return the ids of those that went in.

    The rows travel as one JSON text: composing a value list of 30 columns takes Django longer than it takes the
    database to insert it, and it does not tell which rows went in. They are inserted in one order, so that racing
    writers of the same words do not wait for each other in a circle.
    """
    _number(episodes)
    rows = sorted(episodes, key=lambda episode: (episode.content_hash, episode.origin, episode.user, episode.speaker))
    with connection.cursor() as cursor:
        cursor.execute(_statement(), [json.dumps([_as_row(row) for row in rows], default=datetime.isoformat)])
        return {pk for (pk,) in cursor.fetchall()}


def _number(episodes: Sequence[Episode]) -> None:
    """Number episodes in the order given, which tells who spoke after whom where times are equal."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('memory_episode_number') FROM generate_series(1, %s)", [len(episodes)])
        for episode, (number,) in zip(episodes, sorted(cursor.fetchall()), strict=True):
            episode.number = number


def _as_row(episode: Episode) -> dict[str, Any]:
    return {attribute: getattr(episode, attribute) for attribute, _, _ in _columns()}


@cache
def _columns() -> list[tuple[str, str, str]]:
    """List what is stored of an episode: attribute, column and type."""
    return [
        (field.attname, connection.ops.quote_name(field.column or ""), field.db_type(connection) or "")
        for field in Episode._meta.concrete_fields
        if not field.generated
    ]


@cache
def _statement() -> str:
    names = ", ".join(column for _, column, _ in _columns())
    types = ", ".join(f'"{attribute}" {kind}' for attribute, _, kind in _columns())
    return (
        f"INSERT INTO memory_episode ({names}) "  # noqa: S608  (names and types are the model's own)
        f"SELECT {names} FROM json_to_recordset(%s::json) AS draft ({types}) ON CONFLICT DO NOTHING RETURNING id"
    )
