"""What links two memories, how sure that is, and how it fades (L19)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from memory.domain.policy_graph import GraphPolicy

_DECIMALS = 4  # so that many small steps make the same number as one large one


class EdgeKind(StrEnum):
    """Why two memories are linked: they name the same, stand side by side, or one is the other's cause."""

    ENTITY = "entity"
    TIME = "time"
    CAUSAL = "causal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How sure an edge is, None for one that never said, and when it loses some of that next."""

    confidence: float | None
    decays_at: datetime


def begin_edge(*, kind: EdgeKind, seen_at: datetime, policy: GraphPolicy) -> Standing:
    """Return how an edge stands that was seen for the first time."""
    confidence = {
        EdgeKind.ENTITY: policy.entity_confidence,
        EdgeKind.TIME: policy.time_confidence,
        EdgeKind.CAUSAL: policy.causal_confidence,
    }[kind]
    return Standing(confidence=confidence, decays_at=_first_decay(seen_at, policy))


def reinforce_edge(*, confidence: float | None, seen_at: datetime, policy: GraphPolicy) -> Standing:
    """Return how an edge stands that was seen again: it gains, up to the cap, and its grace begins anew."""
    raised = min(known_confidence(confidence) + policy.reinforcement, policy.cap)
    return Standing(confidence=round(raised, _DECIMALS), decays_at=_first_decay(seen_at, policy))


def decay_edge(*, standing: Standing, now: datetime, policy: GraphPolicy) -> Standing:
    """Return how an edge stands after every window that is over by now; asked as often as one likes, the same."""
    if standing.decays_at > now:
        return standing
    window = timedelta(days=policy.window_days)
    windows = (now - standing.decays_at) // window + 1
    confidence = known_confidence(standing.confidence)
    lowered = min(confidence, max(confidence - windows * policy.decay, policy.floor))
    return Standing(confidence=round(lowered, _DECIMALS), decays_at=standing.decays_at + windows * window)


def known_confidence(confidence: float | None) -> float:
    """Return the confidence to reckon with: an edge that has none is as sure as can be."""
    return 1.0 if confidence is None else confidence


def weigh_shared_names(*, said: Sequence[int]) -> float:
    """Return the weight of an edge between memories that share names, each said in so many memories (2 or more).

    A name weighs 1/(1 + ln n): one that everybody says links little. Together they weigh 1 − Π(1 − weight).
    """
    return 1.0 - math.prod(1.0 - 1.0 / (1.0 + math.log(max(count, 2))) for count in said)


def _first_decay(seen_at: datetime, policy: GraphPolicy) -> datetime:
    return seen_at + timedelta(days=policy.grace_days + policy.window_days)
