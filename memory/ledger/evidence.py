"""Evidence counts exactly once: rows inserted where there are none, and the belief recomputed from all of them.

Nothing here adds a difference to α or β. What a row weighs depends on the other rows of its origin, and recomputing
gives the same result however often a message is delivered.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from memory.domain.additive import additive_confidence
from memory.domain.destabilization import prediction_error
from memory.domain.evidence import EvidenceRow, WeighedEvidence, weigh_evidence
from memory.domain.gates import archive_due_after
from memory.domain.lifecycle import EpisodeStatus
from memory.domain.policy import ConfidencePolicy
from memory.domain.verdicts import Verdict
from memory.models import Belief, ConfidenceModel, Cycle, Episode, Evidence, Workspace

# Forgotten and invalidated episodes leave the evidence; merged, archived and superseded ones stay (R10).
LEFT = (EpisodeStatus.FORGOTTEN, EpisodeStatus.INVALIDATED)

# What an AI says in a session that was shown the belief, or what that one came of, only repeats it (Echo).
_SHOWN = """
WITH RECURSIVE shown AS (
    SELECT s.session, s.belief_id, s.surfaced_at FROM memory_surfaced s
    WHERE s.workspace_id = %(workspace)s AND s.belief_id IS NOT NULL AND s.session IN (
        SELECT e.session FROM {heard} WHERE {mine} AND e.source = 'ai' AND e.session <> '')
    UNION
    SELECT shown.session, l.child_id, shown.surfaced_at
    FROM shown JOIN memory_lineage l ON l.parent_id = shown.belief_id
)
"""
_IS_ECHO = """
e.source = 'ai' AND EXISTS (
    SELECT FROM shown s WHERE s.session = e.session AND s.belief_id = {belief} AND s.surfaced_at <= e.created_at)
"""
_OF_JOB = {"heard": "memory_jobverdict v JOIN memory_episode e ON e.id = v.episode_id", "mine": "v.job_id = %(job)s"}
_OF_EPISODE = {"heard": "memory_episode e", "mine": "e.id = %(episode)s"}

_ECHO = f"""
{_SHOWN.format(**_OF_EPISODE)}
SELECT {_IS_ECHO.format(belief="%(belief)s")} FROM memory_episode e WHERE e.id = %(episode)s
"""  # noqa: S608  (parts of the statement itself)

_INSERT = f"""
{_SHOWN.format(**_OF_JOB)}
INSERT INTO memory_evidence (workspace_id, belief_id, episode_id, verdict, kind, base_weight, is_founding, basis,
                             reason, claim_id, cycle_id, call_id, created_at)
SELECT v.workspace_id, coalesce(v.belief_id, %(founded)s), v.episode_id, v.verdict,
       CASE WHEN echo.is_one THEN 'echo' ELSE 'ordinary' END, CASE WHEN echo.is_one THEN 0 ELSE %(weight)s END,
       %(is_birth)s, v.basis, v.reason, m.claim_id, %(cycle)s, v.call_id, %(now)s
FROM memory_jobverdict v JOIN memory_episode e ON e.id = v.episode_id
LEFT JOIN memory_clustermember m ON m.job_id = v.job_id AND m.episode_id = v.episode_id
CROSS JOIN LATERAL (
    SELECT {_IS_ECHO.format(belief="coalesce(v.belief_id, %(founded)s)")} AS is_one
) echo
WHERE v.job_id = %(job)s AND v.verdict <> 'IRRELEVANT'
  AND CASE WHEN v.belief_id IS NULL THEN %(founded)s <> '' ELSE v.belief_id = ANY(%(beliefs)s) END
  AND NOT e.is_derived AND e.status NOT IN ('forgotten', 'invalidated')
ORDER BY v.belief_id, v.episode_id
ON CONFLICT (workspace_id, belief_id, episode_id) DO NOTHING
RETURNING belief_id, verdict, base_weight
"""  # noqa: S608  (parts of the statement itself)


def is_echo(*, episode: Episode, belief_id: str) -> bool:
    """Tell whether an episode only repeats a belief, or what that one came of: an AI's word in a session shown it."""
    with connection.cursor() as cursor:
        cursor.execute(_ECHO, {"workspace": episode.workspace_id, "episode": episode.pk, "belief": belief_id})
        found: bool = cursor.fetchone()[0]
    return found


def insert_evidence(
    *, job_id: int, cycle: Cycle, beliefs: Collection[str] = (), founded: str = "", is_birth: bool = False
) -> dict[str, list[Verdict]]:
    """Turn a job's verdicts into evidence; return by belief the verdicts of the rows that are new.

    Those on existing `beliefs` go to the belief that was judged, those on the job's own candidate to the `founded` one:
    at its birth, or as to a twin. Of a belief that gained echoes alone, no verdict is returned.
    """
    parameters: dict[str, Any] = {
        "is_birth": is_birth,
        "beliefs": list(beliefs),
        "founded": founded,
        "job": job_id,
        "cycle": cycle.pk,
        "now": cycle.now,
        "workspace": cycle.workspace_id,
        "weight": settings.POLICY.confidence.ordinary_weight,
    }
    gained: dict[str, list[Verdict]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, parameters)
        for belief_id, verdict, weight in cursor.fetchall():
            gained[belief_id] += [Verdict(verdict)] if weight > 0 else []
    return dict(gained)


def recompute_beliefs(
    *, beliefs: Sequence[Belief], now: datetime, gained: Mapping[str, Sequence[Verdict]] | None = None
) -> None:
    """Set α, β and all that follows from them by the rows there are; the caller holds the beliefs' locks.

    `gained` are by belief the verdicts of rows that are new: they alone move storage strength and the time of
    reinforcement.
    """
    rows = read_rows_of(beliefs=[belief.pk for belief in beliefs])
    for belief in beliefs:
        _recompute(belief, rows[belief.pk], now, (gained or {}).get(belief.pk, ()))
    with connection.cursor() as cursor:
        cursor.executemany(
            _UPDATE, [{name: getattr(belief, name) for name in ("id", *_RECOMPUTED)} for belief in beliefs]
        )


def _recompute(belief: Belief, rows: Sequence[EvidenceRow], now: datetime, gained: Sequence[Verdict]) -> None:
    policy = confidence_policy(belief.workspace)
    weighed = weigh_evidence(rows=rows, policy=policy)
    belief.alpha, belief.beta = weighed.posterior.alpha, weighed.posterior.beta
    belief.additive_confidence = additive_confidence(rows=rows, confidence=policy, policy=settings.POLICY.additive)
    belief.evidence_count = weighed.evidence_count
    belief.peak_confidence = max(belief.peak_confidence, chosen_confidence(belief))
    belief.prediction_error = error_of(belief=belief, rows=rows, policy=policy)
    belief.storage_strength += len(gained)
    belief.updated_at = now
    if Verdict.SUPPORTS in gained:
        belief.last_reinforced_at = now
    belief.archive_due_at = archive_due_at(belief=belief, weighed=weighed)


def chosen_confidence(belief: Belief) -> float:
    """Return the confidence by the model that the belief's workspace has chosen (R10a)."""
    if belief.workspace.confidence_model == ConfidenceModel.ADDITIVE and belief.additive_confidence is not None:
        return belief.additive_confidence
    return belief.alpha / (belief.alpha + belief.beta)


def error_of(*, belief: Belief, rows: Sequence[EvidenceRow], policy: ConfidencePolicy) -> float:
    """Return a belief's prediction error; what a structural change made it of surprises it no more (B6)."""
    changed = belief.lineage_depth > 0
    founding = {row.episode_id for row in rows if row.is_founding} if changed else frozenset[str]()
    return prediction_error(rows=rows, policy=policy, founding=founding)


def archive_due_at(*, belief: Belief, weighed: WeighedEvidence) -> datetime | None:
    """Return when time alone would archive the belief, None for never."""
    is_additive = belief.workspace.confidence_model == ConfidenceModel.ADDITIVE
    wait = archive_due_after(
        confidence=chosen_confidence(belief),
        evidence_count=weighed.evidence_count,
        contradicting=weighed.rows.get(Verdict.CONTRADICTS, 0) if is_additive else None,
        policy=settings.POLICY.gate,
        is_told=belief.is_told,
    )
    return None if wait is None else (belief.last_reinforced_at or belief.created_at) + wait


_RECOMPUTED = (
    "alpha", "beta", "additive_confidence", "evidence_count", "peak_confidence", "prediction_error",
    "storage_strength", "updated_at", "last_reinforced_at", "archive_due_at",
)  # fmt: skip
# Sent for all beliefs of a job in one pipeline; saving each would be a round trip each.
_UPDATE = f"""
UPDATE memory_belief SET {", ".join(f"{name} = %({name})s" for name in _RECOMPUTED)} WHERE id = %(id)s
"""  # noqa: S608  (names of columns)


def read_rows(*, belief_id: str) -> list[EvidenceRow]:
    """Read a belief's evidence as values, without what has left it."""
    return read_rows_of(beliefs=[belief_id])[belief_id]


def read_rows_of(*, beliefs: Collection[str]) -> dict[str, list[EvidenceRow]]:
    """Read the evidence of several beliefs, by belief."""
    found: dict[str, list[EvidenceRow]] = {belief_id: [] for belief_id in beliefs}
    rows = Evidence.objects.filter(belief__in=beliefs).exclude(episode__status__in=LEFT)
    for belief, episode, verdict, weight, origin, time, is_founding in rows.values_list(*_ROW):
        found[belief].append(
            EvidenceRow(
                episode_id=episode,
                verdict=Verdict(verdict),
                base_weight=weight,
                origin=origin,
                occurred_at=time,
                is_founding=is_founding,
            )
        )
    return found


_ROW = (
    "belief_id", "episode_id", "verdict", "base_weight", "episode__origin", "episode__occurred_at", "is_founding",
)  # fmt: skip


def confidence_policy(workspace: Workspace) -> ConfidencePolicy:
    """Return the numbers of the workspace: whether repetition by one origin counts less is its choice."""
    policy: ConfidencePolicy = settings.POLICY.confidence
    return replace(policy, independence=policy.independence and workspace.counts_origins)
