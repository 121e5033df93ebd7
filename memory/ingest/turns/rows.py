"""The rows of conversations as turns come in: few statements a batch, however many turns it has."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from memory.domain.buffering import DueReason
from memory.models import Conversation, Turn
from memory.models.fields import insert_new


class Place(NamedTuple):
    """What a conversation is known by inside its workspace."""

    session: str
    user: str
    project_id: int | None


class Held(NamedTuple):
    """A conversation as its row stands, locked until the transaction ends."""

    id: int
    turn_count: int
    buffered: int
    is_due: bool
    is_leased: bool
    began: datetime  # since when no extraction was: the last one, or the first turn
    erasure_key: bytes | None  # the workspace's, as it was before anybody was waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a batch adds to a conversation."""

    conversation_id: int
    turns: int
    buffered: int
    due: DueReason | None  # None: as it was
    is_sent: bool


# Rows are locked in the order of their ids, as everywhere, so that no two batches wait for each other in a circle.
_HOLD = """
    SELECT c.session, c."user", c.project_id, c.id, c.turn_count, c.buffered, c.due_since IS NOT NULL,
        COALESCE(c.leased_until > statement_timestamp(), false), COALESCE(c.extracted_at, c.created_at),
        (SELECT erasure_key FROM memory_workspace WHERE id = c.workspace_id)
    FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS given (session, "user", project_id)
    JOIN memory_conversation c ON c.session = given.session AND c."user" = given."user"
        AND c.project_id IS NOT DISTINCT FROM given.project_id
    WHERE c.workspace_id = %s ORDER BY c.id FOR NO KEY UPDATE OF c
"""
# One look into the unique index for each, as a join of a table that has just grown may be planned badly.
_KNOWN = """
    SELECT given.conversation_id, given.turn_id, turn.line_hash
    FROM unnest(%s::bigint[], %s::text[]) AS given (conversation_id, turn_id) CROSS JOIN LATERAL (
        SELECT line_hash FROM memory_turn
        WHERE conversation_id = given.conversation_id AND turn_id = given.turn_id LIMIT 1
    ) AS turn
"""
_GROW = """
    UPDATE memory_conversation c SET
        turn_count = c.turn_count + given.turns, buffered = c.buffered + given.buffered, last_turn_at = %s,
        due_since = CASE WHEN given.due <> '' THEN statement_timestamp() ELSE c.due_since END,
        due_reason = CASE WHEN given.due <> '' THEN given.due ELSE c.due_reason END,
        sent_at = CASE WHEN given.is_sent THEN statement_timestamp() ELSE c.sent_at END
    FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::text[], %s::bool[])
        AS given (id, turns, buffered, due, is_sent)
    WHERE c.id = given.id RETURNING (SELECT erasure_key FROM memory_workspace WHERE id = c.workspace_id)
"""


def hold_conversations(*, workspace_id: int, places: Collection[Place]) -> dict[Place, Held]:
    """Lock those of some conversations that exist, until the transaction ends."""
    columns = map(list, zip(*places, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [*columns, workspace_id])
        return {Place(*row[:3]): Held(*row[3:]) for row in cursor.fetchall()}


def begin_conversations(*, workspace_id: int, places: Collection[Place], now: datetime) -> None:
    """Make conversations that are not there yet."""
    rows = [
        {**place._asdict(), "workspace_id": workspace_id, "created_at": now, "last_turn_at": now}
        for place in sorted(places, key=lambda place: (place.session, place.user, place.project_id or 0))
    ]
    insert_new(model=Conversation, rows=rows)


def find_known(*, ids: Sequence[tuple[int, str]]) -> dict[tuple[int, str], str]:
    """Return the hashes of the stored lines among some turns, by conversation and turn_id."""
    if not ids:
        return {}
    conversations, turns = zip(*ids, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [list(conversations), list(turns)])
        return {(conversation, turn): line_hash for conversation, turn, line_hash in cursor.fetchall()}


def insert_turns(*, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert turns of conversations that the caller holds: nobody else can number any."""
    insert_new(model=Turn, rows=rows)


def grow_conversations(*, growths: Sequence[Growth], now: datetime) -> bytes | None:
    """Write down what a batch added; the caller holds the conversations. Return the workspace's erasure key by now."""
    columns: list[list[Any]] = [
        [growth.conversation_id for growth in growths],
        [growth.turns for growth in growths],
        [growth.buffered for growth in growths],
        [str(growth.due or "") for growth in growths],
        [growth.is_sent for growth in growths],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_GROW, [now, *columns])
        key: bytes | None = cursor.fetchall()[0][0]
    return key
