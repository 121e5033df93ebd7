"""Who speaks: a name that opens two turns of a session is a speaker's (B1)."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from memory.domain.lifecycle import ConsolidationState
from memory.ingest.drafts import Draft, opening_name_of

Opening = tuple[str, str]  # a session, and a name that opens a turn of it

# The workspace is one of average size to the planner (memory/ingest/duplicates.py).
_STORED_TURNS = """
    SELECT opening.session, opening.name, ARRAY(
        SELECT DISTINCT turn.content_hash FROM memory_episode turn
        WHERE turn.workspace_id = (SELECT %s::bigint) AND turn.session = opening.session AND turn.session <> ''
            AND starts_with(turn.text, opening.name || ': ')
        LIMIT %s
    )
    FROM unnest(%s::text[], %s::text[]) AS opening (session, name)
"""
# Rows are locked in the order of their ids, as everywhere. A turn whose twin was stored with this speaker given stays
# as it is: the two would become one (L4).
_NAME_EARLIER_TURNS = """
    WITH turns AS (
        SELECT turn.id, opening.name FROM memory_episode turn
        JOIN unnest(%s::text[], %s::text[]) AS opening (session, name)
            ON turn.session = opening.session AND starts_with(turn.text, opening.name || ': ')
        WHERE turn.workspace_id = (SELECT %s::bigint) AND turn.session = ANY(%s) AND turn.session <> ''
            AND turn.speaker = ''
        AND NOT EXISTS (
            SELECT 1 FROM memory_episode twin
            WHERE twin.workspace_id = turn.workspace_id AND twin.session = turn.session AND twin.session <> ''
                AND twin.project_id IS NOT DISTINCT FROM turn.project_id AND twin."user" = turn."user"
                AND twin.speaker = opening.name AND twin.origin = turn.origin AND twin.content_hash = turn.content_hash
        )
        ORDER BY turn.id FOR UPDATE OF turn
    )
    UPDATE memory_episode SET speaker = turns.name FROM turns WHERE memory_episode.id = turns.id
    RETURNING memory_episode.id, memory_episode.text, memory_episode.speaker, memory_episode.state
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTurn:
    """An earlier turn whose speaker has just become known."""

    id: str
    text: str
    speaker: str
    state: ConsolidationState


def name_speakers(*, workspace_id: int, drafts: Collection[Draft]) -> list[NamedTurn]:
    """Give drafts their speakers by the rule, and earlier turns of their sessions too; return those turns.

    Sessions are locked until the transaction ends, so that of two writers the second sees the first one's turn.
    """
    openings = _openings(drafts)
    if not openings:
        return []
    _lock_sessions(workspace_id, {session for session, _ in openings})
    speakers = _ruled(workspace_id, openings)
    for draft in drafts:
        name = opening_name_of(draft.text)
        if not draft.speaker and name and (draft.session, name) in speakers:
            draft.speaker = name
    return _name_earlier_turns(workspace_id, speakers)


def _openings(drafts: Iterable[Draft]) -> dict[Opening, set[str]]:
    """Collect the hashes of the turns that each name opens."""
    openings: dict[Opening, set[str]] = {}
    for draft in drafts:
        name = opening_name_of(draft.text) if draft.session else None
        if name:
            openings.setdefault((draft.session, name), set()).add(draft.content_hash)
    return openings


def _lock_sessions(workspace_id: int, sessions: set[str]) -> None:
    """Take the sessions' locks in one order, so that no two writers wait for each other."""
    with connection.cursor() as cursor:
        for number in sorted(_lock_number(workspace_id, session) for session in sessions):
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def _lock_number(workspace_id: int, session: str) -> int:
    digest = hashlib.sha256(f"session {workspace_id} {session}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _ruled(workspace_id: int, openings: dict[Opening, set[str]]) -> list[Opening]:
    """Return the openings that enough different turns share, stored and new ones together."""
    enough = settings.POLICY.ingest.speaker_turns
    sessions, names = zip(*openings, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_STORED_TURNS, [workspace_id, enough, list(sessions), list(names)])
        return [
            (session, name)
            for session, name, hashes in cursor.fetchall()
            if len(openings[session, name].union(hashes)) >= enough
        ]


def _name_earlier_turns(workspace_id: int, speakers: list[Opening]) -> list[NamedTurn]:
    if not speakers:
        return []
    sessions, names = zip(*speakers, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_NAME_EARLIER_TURNS, [list(sessions), list(names), workspace_id, list(set(sessions))])
        return [
            NamedTurn(id=key, text=text, speaker=speaker, state=ConsolidationState(state))
            for key, text, speaker, state in cursor.fetchall()
        ]
