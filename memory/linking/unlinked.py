"""Which memories are not linked yet: told by the rows, so that nobody has to be told (L19)."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import structlog
from django.db import connection

from memory.domain.breaking import OWN_ERRORS
from memory.domain.entities import MOST, find_entities, normalise_entity
from memory.domain.matter import matter_of
from memory.domain.policy_graph import GraphPolicy
from memory.domain.sentences import split_sentences
from memory.models.fields import EXACT_UP_TO

log = structlog.get_logger(__name__)

_LINK_LOCKS = 4  # the first of the two numbers that name an advisory lock
_NAME_LENGTH = 200
_GERMAN = "de"


class Unlinked(NamedTuple):
    """An episode that was not linked yet, as far as linking looks at it."""

    id: str
    number: int
    project_id: int | None
    user: str
    session: str
    speaker: str
    language: str
    text: str
    entities: list[str]
    content_hash: str
    created_at: datetime
    occurred_at: datetime
    causes: list[str]

    @property
    def names(self) -> tuple[str, ...]:
        """Return whom and what it names: what it came with, or else what its text tells."""
        if self.entities:
            return tuple(dict.fromkeys(_as_kept(name) for name in self.entities if name.strip()))
        try:
            return self._told_names()
        except OWN_ERRORS:
            log.exception("names_not_read", episode=self.id)
            return ()

    def _told_names(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for sentence in split_sentences(matter_of(self.text, self.speaker)):
            names = find_entities(text=sentence, german=self.language == _GERMAN)
            found |= dict.fromkeys(_as_kept(name) for name in names if name)
            if len(found) >= MOST:
                break
        return tuple(found)[:MOST]


def _as_kept(name: str) -> str:
    return normalise_entity(name)[:_NAME_LENGTH]


def lock_linking(workspace_id: int, *, waits: bool) -> bool:
    """Keep everybody else from linking a workspace's memories until the transaction ends; false if somebody is."""
    key = [_LINK_LOCKS, workspace_id % 2**31]
    with connection.cursor() as cursor:
        if waits:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", key)
            return True
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", key)
        is_held: bool = cursor.fetchone()[0]
    return is_held


def find_workspaces_to_link() -> list[int]:
    """List the workspaces with a memory that is not linked."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE)
        return [workspace_id for (workspace_id,) in cursor.fetchall()]


def read_unlinked(*, workspace_id: int, above: int, policy: GraphPolicy) -> list[Unlinked]:
    """Read the next memories to link, in the order of storing, of those numbered above the mark and above `above`."""
    with connection.cursor() as cursor:
        cursor.execute(_UNLINKED, {"workspace": workspace_id, "above": above, "most": policy.batch})
        return [Unlinked(*row) for row in cursor.fetchall()]


def read_memories(*, ids: Sequence[str]) -> list[Unlinked]:
    """Read memories as linking looks at them, whether they are linked or not."""
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, {"ids": list(ids)})
        return [Unlinked(*row) for row in cursor.fetchall()]


def count_unlinked(*, workspace_id: int | None = None) -> int:
    """Count the memories that wait to be linked, in one workspace or in all; one more than the bound means more."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"workspace": workspace_id, "most": EXACT_UP_TO + 1})
        count: int = cursor.fetchone()[0]
    return count


def move_mark(*, workspace_id: int, policy: GraphPolicy) -> None:
    """Let the mark follow, once whoever drew a lower number must be done; call it when nothing is left to link."""
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, {"workspace": workspace_id, "minutes": policy.settle_minutes})


_IS_UNLINKED = """e.status = 'active' AND NOT EXISTS (SELECT FROM memory_boxmember m WHERE m.episode_id = e.id)"""
_DUE = f"""
SELECT w.id FROM memory_workspace w LEFT JOIN memory_upkeep u ON u.workspace_id = w.id
WHERE EXISTS (
    SELECT FROM memory_episode e
    WHERE e.workspace_id = w.id AND e.number > coalesce(u.linked_number, 0) AND {_IS_UNLINKED}
)
ORDER BY w.id
"""  # noqa: S608  (statements of this module's own parts)
_COUNT = f"""
SELECT count(*) FROM (
    SELECT FROM memory_workspace w LEFT JOIN memory_upkeep u ON u.workspace_id = w.id
    JOIN memory_episode e ON e.workspace_id = w.id AND e.number > coalesce(u.linked_number, 0)
    WHERE {_IS_UNLINKED} AND (%(workspace)s::bigint IS NULL OR w.id = %(workspace)s) LIMIT %(most)s
) waiting
"""  # noqa: S608  (as above)
_READ = """
SELECT e.id, e.number, e.project_id, e."user", e.session, e.speaker, e.language, e.text, e.entities, e.content_hash,
    e.created_at, e.occurred_at, e.causes
FROM memory_episode e
"""
_NAMED = f"{_READ} WHERE e.id = ANY(%(ids)s) AND e.status = 'active' ORDER BY e.number"
_UNLINKED = f"""{_READ}
WHERE e.workspace_id = %(workspace)s AND {_IS_UNLINKED} AND e.number > greatest(
    %(above)s, (SELECT u.linked_number FROM memory_upkeep u WHERE u.workspace_id = %(workspace)s))
ORDER BY e.number LIMIT %(most)s
"""  # noqa: S608  (as above)
_MOVE = """
INSERT INTO memory_upkeep AS u (workspace_id, linked_number, next_number, next_at, extractions)
SELECT %(workspace)s, 0, coalesce(max(number), 0), now(), 0 FROM memory_episode WHERE workspace_id = %(workspace)s
ON CONFLICT (workspace_id) DO UPDATE
SET linked_number = u.next_number, next_number = greatest(EXCLUDED.next_number, u.next_number), next_at = now()
WHERE u.next_at IS NULL OR u.next_at < now() - make_interval(secs => %(minutes)s * 60)
"""
