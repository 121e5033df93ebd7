"""How much of a belief's confidence is left when nothing has been said of it for long (R7d): told, never acted on."""

from datetime import timedelta

from memory.domain.policy_remembering import ReflectionPolicy

_DAY = timedelta(days=1)


def effective_confidence(
    *, confidence: float, since_evidence: timedelta, stability: float, policy: ReflectionPolicy
) -> float:
    """Halve a confidence every so many days since the last evidence, the more slowly the more stable the belief is."""
    days = max(since_evidence / _DAY, 0.0)
    half_life = policy.half_life_days * min(stability, policy.full_stability)
    left: float = confidence * 0.5 ** (days / half_life)
    return left
