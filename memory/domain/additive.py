"""The additive model of confidence, which a workspace may choose in place of α/(α+β) (R10a)."""

from collections.abc import Iterable

from memory.domain.evidence import EvidenceRow, weigh_evidence
from memory.domain.policy import AdditivePolicy, ConfidencePolicy
from memory.domain.verdicts import Verdict


def additive_confidence(*, rows: Iterable[EvidenceRow], confidence: ConfidencePolicy, policy: AdditivePolicy) -> float:
    """Replay one belief's evidence in order (time of occurrence, then episode id), rounding after each row.

    What founded the belief is in its confidence at birth. Rows weigh what they weigh for α and β.
    """
    return additive_path(rows=rows, confidence=confidence, policy=policy)[-1]


def additive_path(*, rows: Iterable[EvidenceRow], confidence: ConfidencePolicy, policy: AdditivePolicy) -> list[float]:
    """Return the confidence at birth and after each row that came since."""
    rows = list(rows)
    weights = weigh_evidence(rows=rows, policy=confidence).weights
    steps = {Verdict.SUPPORTS: policy.support, Verdict.CONTRADICTS: -policy.contradiction}
    path = [policy.birth]
    for row in sorted(rows, key=lambda row: (row.occurred_at, row.episode_id)):
        if not row.is_founding:
            moved = path[-1] + steps.get(row.verdict, 0.0) * weights[row.episode_id]
            path.append(round(min(policy.cap, max(policy.floor, moved)), policy.decimals))
    return path
