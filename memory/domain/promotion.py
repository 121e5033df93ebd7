"""Which beliefs an agent's MEMORY.md holds: promoted, ranked, and let go in two stages (P1, P4, P5, P6, P10).

`choose_beliefs` decides over all that a file may hold; a belief that changes its standing comes back with the step.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from memory.domain.policy_beliefs import PublishingPolicy


class Step(StrEnum):
    """What happens to a belief in a file."""

    PROMOTE = "promote"  # it comes into the file, or back into it
    DEMOTE = "demote"  # it stands under the former ones from now on
    REMOVE = "remove"  # it leaves the file
    MISS = "miss"  # trusted as before, but others are trusted more: it has no place


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishable:
    """What promotion may know of a belief; `is_trusted` of its evidence: enough, of enough origins, one a person's."""

    id: str
    is_active: bool
    is_gone: bool  # somebody took it away, or it lives on in others: it is never called no longer true
    confidence: float
    evidence: int
    is_trusted: bool
    is_promoted: bool = False
    demoted_at: datetime | None = None
    was_former_in_cycle: bool = False  # so that it may leave with the next one

    @property
    def rank(self) -> float:
        """P5: how much a belief is worth a place."""
        return self.confidence * math.log1p(self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The ids of a file's beliefs in their order, and the steps of those whose standing changes."""

    trusted: Sequence[str]
    former: Sequence[str]
    steps: Sequence[tuple[str, Step]]


def choose_beliefs(
    *, beliefs: Iterable[Publishable], now: datetime, policy: PublishingPolicy, may_remove: bool = True
) -> Selection:
    """Choose what a file holds now.

    `may_remove` is false between two cycles. What leaves in two stages stands among the former ones when at least one
    cycle publishes.
    """
    given = list(beliefs)
    best = sorted((one for one in given if _may_stand(one, policy)), key=lambda one: (-one.rank, one.id))
    trusted = best[: policy.beliefs]
    steps = [(one.id, Step.PROMOTE) for one in trusted if not one.is_promoted or one.demoted_at]
    steps += [(one.id, Step.MISS) for one in best[policy.beliefs :] if one.is_promoted]
    staying: list[tuple[datetime, str]] = []
    for one in given:
        if not one.is_promoted or _may_stand(one, policy):
            continue
        if one.is_gone or (may_remove and one.was_former_in_cycle and _is_over(one, now, policy)):
            steps.append((one.id, Step.REMOVE))
        else:
            staying.append((one.demoted_at or now, one.id))
            steps += [] if one.demoted_at else [(one.id, Step.DEMOTE)]
    newest = sorted(staying, key=lambda pair: (-pair[0].timestamp(), pair[1]))
    return Selection(
        trusted=[one.id for one in trusted], former=[key for _, key in newest[: policy.former]], steps=steps
    )


def _may_stand(one: Publishable, policy: PublishingPolicy) -> bool:
    """P1: tell whether a belief is trusted enough."""
    return one.is_active and not one.is_gone and one.is_trusted and one.confidence >= policy.confidence


def _is_over(one: Publishable, now: datetime, policy: PublishingPolicy) -> bool:
    """P4: tell of a former belief whether it has been one for long enough, or is believed no more at all."""
    since = one.demoted_at or now
    is_old = now - since >= timedelta(days=policy.former_days)
    return not one.is_active or one.confidence < policy.removal_confidence or is_old
