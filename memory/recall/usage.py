"""Record how memories are used (L16).

`count_access` counts recalls, `count_expansion` a look at one memory, `note_shown` remembers what a session was shown,
`give_feedback` stores a verdict; `read_usage` reads a belief's figures. None of it moves a confidence.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F

from memory.domain.errors import EngramError
from memory.domain.policy_beliefs import StrengthPolicy
from memory.domain.scoring import grow_stability, retrieval_strength
from memory.domain.taxonomy import Category, Knowledge, knowledge_of_belief
from memory.ledger.transactions import NotFound
from memory.models import Belief, BeliefAccess, Episode, ShownMemory, Workspace
from memory.recall.query import MemoryType, RecalledMemory
from memory.search.hybrid import BeliefCandidate, EpisodeCandidate
from memory.search.prepared import TimedSearch, raw_cursor, run_prepared

log = structlog.get_logger(__name__)


def count_access(
    *,
    episodes: Sequence[EpisodeCandidate],
    beliefs: Sequence[BeliefCandidate],
    now: datetime,
    policy: StrengthPolicy,
    timed: TimedSearch,
) -> None:
    """Note in one statement that these memories were recalled, and let the beliefs grow more stable.

    An answer is not lost because it could not be counted: a row erased meanwhile, say, is logged.
    """
    if not episodes and not beliefs:
        return
    parameters: dict[str, Any] = {
        "episodes": [episode.id for episode in episodes],
        "beliefs": [belief.id for belief in beliefs],
        "grown": [_grown_stability(belief, belief.created_at, now, policy) for belief in beliefs],
        "now": now,
    }
    run_deferred_write(statement=_COUNT_ACCESS, parameters=parameters, failed="access", timed=timed)


def count_expansion(*, memory: Belief | Episode, now: datetime) -> None:
    """Note that a memory was looked at in full: an access, as a recall is (B5)."""
    parameters: dict[str, Any] = {"episodes": [], "beliefs": [], "grown": [], "now": now}
    if isinstance(memory, Belief):
        policy: StrengthPolicy = settings.POLICY.strength
        grown = _grown_stability(_access_of(memory, policy), memory.created_at, now, policy)
        parameters |= {"beliefs": [memory.pk], "grown": [grown]}
    else:
        parameters["episodes"] = [memory.pk]
    run_deferred_write(statement=_COUNT_ACCESS, parameters=parameters, failed="access")


def _grown_stability(
    used: BeliefCandidate | BeliefAccess, created_at: datetime, now: datetime, policy: StrengthPolicy
) -> float:
    return grow_stability(
        stability=used.stability or policy.initial_stability,
        waited=now - (used.accessed_at or created_at),
        policy=policy,
    )


# Rows are written in the order of their ids, so that two recalls never wait for each other in a circle. Each is looked
# up by itself (OFFSET 0): among the settings of a search all beliefs would be read in that order. Of two recalls
# at once both start from the same stability; the second has waited no time and would add nothing, so the greater stays.
_COUNT_ACCESS = """
WITH episodes AS (
    INSERT INTO memory_episodeaccess AS a (episode_id, workspace_id, accessed_at, access_count)
    SELECT id, workspace_id, %(now)s::timestamptz, 1 FROM memory_episode
    WHERE id = ANY(%(episodes)s::text[]) ORDER BY id
    ON CONFLICT (episode_id) DO UPDATE SET
        accessed_at = GREATEST(a.accessed_at, EXCLUDED.accessed_at), access_count = a.access_count + 1
)
INSERT INTO memory_beliefaccess AS a (belief_id, workspace_id, accessed_at, access_count, stability)
SELECT b.id, b.workspace_id, %(now)s::timestamptz, 1, given.stability
FROM unnest(%(beliefs)s::text[], %(grown)s::float8[]) AS given(id, stability)
CROSS JOIN LATERAL (SELECT id, workspace_id FROM memory_belief WHERE id = given.id OFFSET 0) b
ORDER BY b.id
ON CONFLICT (belief_id) DO UPDATE SET
    accessed_at = GREATEST(a.accessed_at, EXCLUDED.accessed_at), access_count = a.access_count + 1,
    stability = GREATEST(a.stability, EXCLUDED.stability)
"""


def note_shown(*, workspace: Workspace, session: str, memories: Iterable[RecalledMemory], now: datetime) -> None:
    """Remember that these memories were shown to a session, in one statement; the first time counts.

    An answer is not lost because it could not be noted: what was erased meanwhile is passed over.
    """
    ids = [memory.id for memory in memories]
    parameters = {"workspace": workspace.pk, "session": session, "ids": ids, "now": now}
    if ids:
        run_deferred_write(statement=_NOTE_SHOWN, parameters=parameters, failed="surfacing")


def shown_beliefs(*, workspace: Workspace, session: str) -> set[str]:
    """Name the beliefs that were shown to a session."""
    rows = ShownMemory.objects.for_workspace(workspace).filter(session=session, belief__isnull=False)
    return set(rows.values_list("belief_id", flat=True))


# Rows are written in one order, so that two recalls never wait for each other in a circle.
_NOTE_SHOWN = """
INSERT INTO memory_shownmemory (workspace_id, session, belief_id, episode_id, surfaced_at)
SELECT %(workspace)s::bigint, %(session)s::text, shown.belief_id, shown.episode_id, %(now)s::timestamptz FROM (
    SELECT id AS belief_id, NULL::varchar AS episode_id FROM memory_belief WHERE id = ANY(%(ids)s::text[])
    UNION ALL SELECT NULL::varchar, id FROM memory_episode WHERE id = ANY(%(ids)s::text[])
) shown ORDER BY shown.belief_id, shown.episode_id
ON CONFLICT DO NOTHING
"""


def run_deferred_write(
    *, statement: str, parameters: Mapping[str, Any], failed: str, timed: TimedSearch | None = None
) -> None:
    """Run a statement that notes what was answered; what the database refuses is logged, by the name in `failed`.

    It ends the search that found the answer, if that is given. The commit returns before it is on disk: a crash may
    lose the last notes, and nothing else. In a caller's transaction the commit, and how long a lock is waited for, are
    the caller's.
    """
    note = partial(run_prepared, statement=statement, parameters=parameters, keeps_plan=True)
    try:
        if timed and timed.end_with(note):
            return
        if connection.in_atomic_block:
            with transaction.atomic():
                note()
        else:
            _write_at_once(note)
    except (DatabaseError, psycopg.DatabaseError) as error:
        log.warning("recall.answer_not_noted", what=failed, error=str(error))


def _write_at_once(note: Callable[[], object]) -> None:
    """Send a whole transaction in one go, in which not even a lock on a table is waited out."""
    raw_cursor().close()  # there is a connection, and it is alive
    raw = connection.connection
    with raw.pipeline(), raw.transaction():
        raw.execute(_ASYNC_COMMIT)
        note()


_ASYNC_COMMIT = "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', '100ms', true)"


class Feedback(StrEnum):
    """A word on the use of a memory."""

    USEFUL = "useful"
    WRONG = "wrong"


class NotACommitment(EngramError, ValueError):
    """Something that nobody committed to cannot be done with."""


def give_feedback(*, memory: Episode | Belief, value: Feedback) -> float:
    """Move a memory's feedback a share of the way to 1 or -1, and return where it stands.

    So it stays in between, the latest words count most, and whoever repeats one moves it ever less. Of two at once,
    both count. Raise NotFound for one that was erased since it was looked up.
    """
    step: float = settings.POLICY.feedback.step
    end = 1.0 if value is Feedback.USEFUL else -1.0
    rows = type(memory).objects.filter(pk=memory.pk)
    rows.update(feedback=F("feedback") + step * (end - F("feedback")))
    stands: float | None = rows.values_list("feedback", flat=True).first()
    if stands is None:
        raise NotFound(f"There is no {memory.pk} any more.")
    return stands


def resolve_commitment(*, memory: Episode | Belief, now: datetime) -> datetime:
    """Note that a commitment was done with, and return when it was first; raise NotACommitment, or NotFound."""
    if not isinstance(memory, Episode) or memory.category != Category.COMMITMENT:
        raise NotACommitment(f"{memory.pk} is no commitment: only an episode of that category can be resolved.")
    Episode.objects.filter(pk=memory.pk, resolved_at=None).update(resolved_at=now)
    first: datetime | None = Episode.objects.filter(pk=memory.pk).values_list("resolved_at", flat=True).first()
    if first is None:
        raise NotFound(f"There is no {memory.pk} any more.")
    return first


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefUsage:
    """What recall and feedback left on a belief; none of it moves its confidence."""

    knowledge: Knowledge
    access_count: int
    accessed_at: datetime | None
    stability: float
    retrieval_strength: float
    feedback: float
    type: MemoryType = MemoryType.BELIEF


def read_usage(*, belief: Belief, now: datetime) -> BeliefUsage:
    """Read how a belief was used; looking is no access."""
    policy: StrengthPolicy = settings.POLICY.strength
    access = _access_of(belief, policy)
    return BeliefUsage(
        knowledge=knowledge_of_belief(fact_type=belief.fact_type),
        access_count=access.access_count,
        accessed_at=access.accessed_at,
        stability=access.stability,
        retrieval_strength=retrieval_strength(
            stability=access.stability,
            since_creation=now - belief.created_at,
            since_access=now - access.accessed_at if access.accessed_at else None,
            policy=policy,
        ),
        feedback=belief.feedback,
    )


def _access_of(belief: Belief, policy: StrengthPolicy) -> BeliefAccess:
    return BeliefAccess.objects.filter(pk=belief.pk).first() or BeliefAccess(stability=policy.initial_stability)
