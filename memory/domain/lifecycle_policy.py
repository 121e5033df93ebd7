"""The policy state of an episode, which may be unknown, and what it adds to the episode's score (L13, L14)."""

from enum import StrEnum


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
