"""Does what is stored equal what the evidence gives (B4)?"""

from typing import TypedDict

from django.conf import settings

from memory.domain.additive import additive_confidence
from memory.domain.evidence import weigh_evidence
from memory.ledger.evidence import confidence_policy, error_of, read_rows
from memory.models import Belief, Workspace


class Drift(TypedDict):
    """A column of a belief that its evidence does not bear out."""

    id: str
    column: str
    stored: float
    given: float


def find_drift(*, workspace: Workspace) -> tuple[int, list[Drift]]:
    """Recompute every belief of a workspace; return how many were checked and what differs."""
    checked, drifts = 0, []
    policy = confidence_policy(workspace)
    for belief in Belief.objects.for_workspace(workspace).order_by("pk").iterator(chunk_size=500):
        rows = read_rows(belief_id=belief.pk)
        weighed = weigh_evidence(rows=rows, policy=policy)
        given = {
            "alpha": weighed.posterior.alpha,
            "beta": weighed.posterior.beta,
            "evidence_count": float(weighed.evidence_count),
            "prediction_error": error_of(belief=belief, rows=rows, policy=policy),
        }
        if belief.additive_confidence is not None:
            given["additive_confidence"] = additive_confidence(
                rows=rows, confidence=policy, policy=settings.POLICY.additive
            )
        drifts += [
            Drift(id=belief.pk, column=column, stored=float(getattr(belief, column)), given=value)
            for column, value in given.items()
            if float(getattr(belief, column)) != value
        ]
        checked += 1
    return checked, drifts
