"""How easily a belief comes to mind, and how access makes it last (B5)."""

import math
from datetime import timedelta

from memory.domain.policy import RetrievalPolicy

_DAY = timedelta(days=1)


def retrieval_strength(
    *, stability: float, since_creation: timedelta, since_access: timedelta | None, policy: RetrievalPolicy
) -> float:
    """Return the strength in 0..1: e^(−days since access/(7·S)), half of that from creation on if never accessed."""
    scale = policy.unread_strength if since_access is None else 1.0
    elapsed = since_creation if since_access is None else since_access
    return scale * math.exp(-_days(elapsed) / (policy.decay_days * stability))


def grow_stability(*, stability: float, waited: timedelta, policy: RetrievalPolicy) -> float:
    """Return the stability after an access, `waited` being the time since the last one, or since creation."""
    grown = stability * (1.0 + policy.stability_growth * math.log1p(_days(waited)))
    return min(grown, policy.stability_cap)


def _days(elapsed: timedelta) -> float:
    """Return days, none below zero: a clock set back must not make a memory stronger."""
    return max(elapsed / _DAY, 0.0)
