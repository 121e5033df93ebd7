"""Answer lines that are stored already, by their key or their words, and lines whose words were forgotten or erased.

The rule is Speaker.

Who speaks is part of an episode's identity: `name_speakers` settles it before words are compared. A name that opens
two turns of a session is a speaker's (B1).
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from memory.domain.identity import digest_of_words
from memory.domain.lifecycle import ConsolidationState, EpisodeStatus
from memory.ingest.schemas import ERASED, Draft, IngestContext, Outcome, Rejected, Stored
from memory.language.sentences import opening_name
from memory.ledger.transactions import change_episode_status
from memory.models import Episode, Erased, Workspace
from memory.models.episodes import find_merge_survivors
from memory.search.prepared import run_prepared

SAID_AGAIN = "said again"
Drafts = dict[int, Draft]  # by the line's place in its batch
ProjectKey = tuple[int | None, str]  # an idempotency key, and the project that it is of

_CONFLICT = Rejected(
    status=409,
    detail="This idempotency key was used for another line.",
    errors={"idempotency_key": ["It was used for another line."]},
)

# One look into the unique index for each draft: a join of a table that has just grown may be planned badly. Two
# branches, since that index serves neither an OR nor IS NOT DISTINCT FROM. The workspace comes from a query of its own:
# the planner takes it for one of average size. Of one that it is told of and has not met in its statistics it expects a
# single row, and reads all that a new workspace has by now, once for each draft.
_SAME_WORDS = """
    WITH draft AS (
        SELECT * FROM unnest(%s::int[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[])
            AS draft (place, project_id, "user", speaker, origin, content_hash)
    )
    SELECT draft.place, episode.id, episode.status FROM draft CROSS JOIN LATERAL (
        SELECT id, status FROM memory_episode
        WHERE workspace_id = (SELECT %s::bigint) AND project_id = draft.project_id AND "user" = draft."user"
            AND speaker = draft.speaker AND origin = draft.origin AND content_hash = draft.content_hash
        LIMIT 1
    ) AS episode WHERE draft.project_id IS NOT NULL
    UNION ALL
    SELECT draft.place, episode.id, episode.status FROM draft CROSS JOIN LATERAL (
        SELECT id, status FROM memory_episode
        WHERE workspace_id = (SELECT %s::bigint) AND project_id IS NULL AND "user" = draft."user"
            AND speaker = draft.speaker AND origin = draft.origin AND content_hash = draft.content_hash
        LIMIT 1
    ) AS episode WHERE draft.project_id IS NULL
"""

# Over all origins. Where nobody knows when something was forgotten, it was after all that ever happened. Every write
# asks this, so that a connection prepares it once.
_FORGOTTEN_WORDS = """
    WITH draft AS (
        SELECT * FROM unnest(
            %(places)s::int[], %(projects)s::bigint[], %(users)s::text[], %(speakers)s::text[], %(hashes)s::text[],
            %(times)s::timestamptz[]
        ) AS draft (place, project_id, "user", speaker, content_hash, occurred_at)
    )
    SELECT draft.place, gone.id FROM draft CROSS JOIN LATERAL (
        SELECT episode.id, (
            SELECT max(at) FROM memory_transition WHERE episode_id = episode.id AND new = 'forgotten'
        ) AS at
        FROM memory_episode episode
        WHERE workspace_id = (SELECT %(workspace)s::bigint) AND status = 'forgotten'
            AND content_hash = draft.content_hash AND "user" = draft."user" AND speaker = draft.speaker
            AND project_id IS NOT DISTINCT FROM draft.project_id
        ORDER BY at DESC NULLS FIRST LIMIT 1
    ) AS gone WHERE gone.at IS NULL OR draft.occurred_at <= gone.at
"""

# The workspace is one of average size to the planner, as above.
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


def _stored(pk: str, status: str) -> Stored:
    return Stored(id=pk, is_duplicate=True, is_forgotten=status == EpisodeStatus.FORGOTTEN)


def _all_stored(found: Mapping[int, tuple[str, str]]) -> dict[int, Outcome]:
    """Answer lines with the episodes that stand for them: of what was merged, with what it became one with (D3)."""
    merged = {pk for pk, status in found.values() if status == EpisodeStatus.MERGED}
    survivors = find_merge_survivors(ids=merged)
    return {place: _stored(*survivors.get(one[0], one)) for place, one in found.items()}


def answer_clashing_keys(drafts: Mapping[int, Draft]) -> dict[int, Outcome]:
    """Answer the lines of a batch whose key an earlier line of the project has in the batch, with other content."""
    first: dict[ProjectKey, str] = {}
    keys = _keys_of(drafts)
    return {
        place: _CONFLICT
        for place, key in keys.items()
        if first.setdefault(key, drafts[place].line_hash) != drafts[place].line_hash
    }


def answer_known_keys(*, workspace_id: int, drafts: Mapping[int, Draft]) -> dict[int, Outcome]:
    """Answer the lines whose key their project has: with its episode, or with a conflict if the content is another."""
    keys = _keys_of(drafts)
    if not keys:
        return {}
    named = {name for _, name in keys.values()}
    rows = Episode.objects.for_workspace(workspace_id).filter(idempotency_key__in=named)
    columns = rows.values_list("project_id", "idempotency_key", "line_hash", "pk", "status")
    known = {(project_id, name): standing for project_id, name, *standing in columns}
    told = {place: known[key] for place, key in keys.items() if key in known}
    same = {place: (pk, status) for place, (line, pk, status) in told.items() if line == drafts[place].line_hash}
    return dict.fromkeys(told, _CONFLICT) | _all_stored(same)


def _keys_of(drafts: Mapping[int, Draft]) -> dict[int, ProjectKey]:
    return {
        place: (draft.project_id, draft.idempotency_key) for place, draft in drafts.items() if draft.idempotency_key
    }


def answer_known_words(*, workspace_id: int, drafts: Mapping[int, Draft]) -> dict[int, Outcome]:
    """Answer the lines whose words of the same origin are stored, in whatever status."""
    if not drafts:
        return {}
    columns = zip(*((d.project_id, d.user, d.speaker, d.origin, d.content_hash) for d in drafts.values()), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_SAME_WORDS, [list(drafts), *map(list, columns), workspace_id, workspace_id])
        found = {place: (pk, status) for place, pk, status in cursor.fetchall()}
    return _all_stored(found)


def answer_forgotten_words(*, workspace_id: int, drafts: Mapping[int, Draft]) -> dict[int, Outcome]:
    """Answer the lines whose words were forgotten, of whatever origin, after what they tell of happened (L4)."""
    if not drafts:
        return {}
    asked = {
        "workspace": workspace_id,
        "places": list(drafts),
        "projects": [draft.project_id for draft in drafts.values()],
        "users": [draft.user for draft in drafts.values()],
        "speakers": [draft.speaker for draft in drafts.values()],
        "hashes": [draft.content_hash for draft in drafts.values()],
        "times": [draft.occurred_at for draft in drafts.values()],
    }
    rows = run_prepared(statement=_FORGOTTEN_WORDS, parameters=asked, keeps_plan=True)
    return {place: _stored(pk, EpisodeStatus.FORGOTTEN) for place, pk in rows}


def refuse_erased_words(*, workspace: Workspace, drafts: Mapping[int, Draft]) -> dict[int, Outcome]:
    """Refuse the lines whose words were erased as the same user's, of whatever origin, speaker and project (L4)."""
    key = Workspace.objects.values_list("erasure_key", flat=True).get(pk=workspace.pk)
    if key is None or not drafts:
        return {}
    digests = {
        place: digest_of_words(key=bytes(key), user=draft.user, words=draft.content_hash)
        for place, draft in drafts.items()
    }
    rows = Erased.objects.for_workspace(workspace).filter(digest__in=set(digests.values()))
    erased = set(rows.values_list("digest", flat=True))
    return {place: ERASED for place, digest in digests.items() if digest in erased}


def restore_archived(*, ids: list[str], arrival: IngestContext) -> None:
    """Bring back archived episodes that somebody has just said again."""
    archived = list(Episode.objects.filter(pk__in=ids, status=EpisodeStatus.ARCHIVED).values_list("pk", flat=True))
    if archived:
        change_episode_status(
            ids=archived, new=EpisodeStatus.ACTIVE, reason=SAID_AGAIN, actor=arrival.actor, now=arrival.now
        )


Opening = tuple[str, str]  # a session, and a name that opens a turn of it


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
    speakers = _openings_of_speakers(workspace_id, openings)
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


def _openings_of_speakers(workspace_id: int, openings: dict[Opening, set[str]]) -> list[Opening]:
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


def opening_name_of(text: str) -> str | None:
    """Return the name that a text opens with, if it may be a speaker's."""
    return opening_name(text, longest=settings.POLICY.ingest.speaker_characters)
