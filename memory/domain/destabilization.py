"""Prediction error: when contradictions open a belief for revision (B6).

The error is a one-sided cumulative sum (E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954): surprise
adds to it, what was expected takes away, and it never falls below zero.
"""

import math
from collections.abc import Collection, Iterable
from datetime import timedelta

from memory.domain.beta import Beta
from memory.domain.evidence import EvidenceRow, sides_of, weigh_evidence
from memory.domain.policy import ConfidencePolicy, DestabilizationPolicy


def prediction_error(
    *, rows: Iterable[EvidenceRow], policy: ConfidencePolicy, founding: Collection[str] = frozenset()
) -> float:
    """Return the error after all rows of one belief, taken in evidence order (time of occurrence, then episode id).

    `founding` names the episodes that shaped the belief at its last structural change: they count for the confidence,
    but the error starts at zero after them. Echoes count for neither.
    """
    rows = list(rows)
    weights = weigh_evidence(rows=rows, policy=policy).weights
    old = [row for row in rows if row.episode_id in founding]
    fresh = [row for row in rows if row.episode_id not in founding]
    before = weigh_evidence(rows=old, policy=policy).posterior
    error = 0.0
    for row in sorted(fresh, key=lambda row: (row.occurred_at, row.episode_id)):
        in_favour, against = sides_of(row=row, weight=weights[row.episode_id], policy=policy)
        error = max(0.0, error + against * before.mean - in_favour * (1.0 - before.mean))
        before = Beta(alpha=before.alpha + in_favour, beta=before.beta + against)
    return error


def error_threshold(*, evidence_count: int, age: timedelta, policy: DestabilizationPolicy) -> float:
    """Return θ, which grows with evidence and age up to a cap."""
    days = max(age / timedelta(days=1), 0.0)
    return min(policy.threshold_cap, policy.threshold_scale * math.log1p(evidence_count) * math.log1p(days))


def is_destabilised(*, error: float, evidence_count: int, age: timedelta, policy: DestabilizationPolicy) -> bool:
    """Say whether the reconsolidation window is open."""
    return error > 0 and error >= error_threshold(evidence_count=evidence_count, age=age, policy=policy)
