"""Where a job's members go once the job has ended."""

from typing import Any

import structlog
from django.conf import settings
from django.db import connection

from memory.consolidation.settling import EVIDENCE, PARTLY_ASKED, REPLACED
from memory.domain.lifecycle import ConsolidationState, JobState
from memory.models import CallOutcome, Cycle
from memory.models.audit import PURPOSE_EMBED, PURPOSE_RECALL
from memory.models.cycles import OPEN_JOB_STATES, Blame

log = structlog.get_logger(__name__)

_S = ConsolidationState

# One statement, and not the ORM's: building what says the same took a fifth of a gate's processor time.
_RELEASE = f"""
WITH ended AS (
    SELECT e.id, failed.state_reason AS failure, failed.id IS NOT NULL AND EXISTS (
        SELECT FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
        WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s AND j.state = '{JobState.FAILED}'
          AND (m.blame = '{Blame.CONTENT}' OR m.blame = '{Blame.CALL}' AND EXISTS (
              SELECT FROM memory_modelcall c
              WHERE c.cycle_id = %(cycle)s AND c.outcome = '{CallOutcome.OK}' AND c.purpose <> ALL(%(vectors)s)))
    ) AS is_blamed, CASE
        WHEN failed.id IS NOT NULL THEN '{_S.FAILED}'
        WHEN EXISTS (SELECT FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
                     WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s
                       AND j.state = '{JobState.DEFERRED}') THEN 'put back'
        WHEN e.state_reason = %(partly)s THEN 'partly asked'
        WHEN EXISTS (SELECT FROM memory_evidence v JOIN memory_belief b ON b.id = v.belief_id
                     WHERE v.episode_id = e.id AND b.status <> ALL(%(replaced)s)) THEN '{_S.SETTLED}'
        ELSE '{_S.POOLED}' END AS fate
    FROM memory_clustermember mine JOIN memory_episode e ON e.id = mine.episode_id
    LEFT JOIN LATERAL (
        SELECT j.id, j.state_reason FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
        WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s AND j.state = '{JobState.FAILED}' ORDER BY j.number LIMIT 1
    ) failed ON true
    WHERE mine.job_id = %(job)s AND e.workspace_id = %(workspace)s AND e.leased_by_id = %(cycle)s
      AND NOT EXISTS (SELECT FROM memory_clustermember m JOIN memory_clusterjob j ON j.id = m.job_id
                      WHERE m.episode_id = e.id AND j.cycle_id = %(cycle)s
                        AND j.state = ANY(%(open)s))
)
UPDATE memory_episode e SET
    leased_by_id = NULL,
    state = CASE fate WHEN 'put back' THEN CASE WHEN pooled_at IS NULL THEN '{_S.NEW}' ELSE '{_S.POOLED}' END
                      WHEN 'partly asked' THEN '{_S.NEW}' ELSE fate END,
    state_reason = CASE fate WHEN '{_S.FAILED}' THEN failure WHEN 'put back' THEN state_reason
                             WHEN '{_S.SETTLED}' THEN %(evidence)s ELSE '' END,
    failures = CASE fate WHEN '{_S.FAILED}' THEN failures + is_blamed::int WHEN 'put back' THEN failures
                         WHEN 'partly asked' THEN failures ELSE 0 END,
    pooled_at = CASE fate WHEN '{_S.POOLED}' THEN coalesce(pooled_at, %(now)s) ELSE pooled_at END,
    dead_at = CASE WHEN is_blamed AND failures + 1 >= %(most)s THEN %(now)s ELSE dead_at END
FROM ended WHERE e.id = ended.id AND e.leased_by_id = %(cycle)s  -- asked again of a row that somebody just changed
RETURNING e.dead_at IS NOT NULL
"""  # noqa: S608  (names of states)


def release_members(*, job_id: int, cycle: Cycle) -> None:
    """Say where a job's members go from here, those apart that another job of the cycle still holds.

    Called after the job's own state is set. A failed or deferred job that an episode was in keeps it pending, for
    something about it was left unasked, whatever evidence another job brought. Else it settles with its evidence, or
    waits in the pool; the first time there counts for how long it has waited. What has failed too often by its own
    fault, as `blame` tells, becomes a dead letter.
    """
    parameters: dict[str, Any] = {
        "job": job_id,
        "cycle": cycle.pk,
        "workspace": cycle.workspace_id,
        "now": cycle.now,
        "partly": PARTLY_ASKED,
        "evidence": EVIDENCE,
        "replaced": list(REPLACED),
        "open": list(OPEN_JOB_STATES),
        "vectors": [PURPOSE_EMBED, PURPOSE_RECALL],
        "most": settings.POLICY.budget.episode_failures,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE, parameters)
        buried = sum(is_dead for (is_dead,) in cursor.fetchall())
    if buried:
        log.warning("dead_letters", cycle=cycle.pk, workspace=cycle.workspace_id, episodes=buried)
