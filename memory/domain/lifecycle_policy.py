"""The policy state of an episode, which may be unknown, and what it adds to the episode's score (L13, L14)."""

from enum import StrEnum

from memory.domain.policy import LifecyclePolicy


class LifecycleState(StrEnum):
    """How far the lifecycle policy trusts an episode."""

    CANDIDATE = "candidate"
    VALIDATED = "validated"
    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


class Verification(StrEnum):
    """Who vouched for an episode."""

    UNVERIFIED = "unverified"
    USER_CONFIRMED = "user_confirmed"
    SYSTEM_INFERRED = "system_inferred"
    DISPUTED = "disputed"


HIDDEN = (LifecycleState.STALE, LifecycleState.ARCHIVED)


def boost_of(*, state: str, verification: str, policy: LifecyclePolicy) -> float:
    """Return what the policy state adds to a score; nothing where it is unknown or the policy is off (L14)."""
    if not policy.enabled:
        return 0.0
    by_state: float = getattr(policy, f"{LifecycleState(state)}_boost") if state else 0.0
    return by_state + (policy.disputed_boost if verification == Verification.DISPUTED else 0.0)
