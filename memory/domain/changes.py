"""A change of what is so is found by the order of what was said (C1).

A change between two pieces of evidence is likelier than none by a Bayes factor: two Bernoulli processes, one before and
one after, each with a uniform prior, against one for all. The score is its logarithm, averaged over all places where a
change may lie (A. F. M. Smith, "A Bayesian approach to inference about a change-point in a sequence of random
variables", Biometrika 62, 1975); the best place alone would be the better the more places there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from memory.domain.evidence import EvidenceRow, sides_of, weigh_evidence
from memory.domain.lifecycle import BeliefStatus
from memory.domain.policy import ConfidencePolicy
from memory.domain.verdicts import Verdict

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Where the evidence of one belief turns against it, if it does."""

    at: datetime  # of the first row that contradicts it after the turn
    score: float  # nats, over all places
    score_by_origin: float  # nats of this place, with one row an origin and verdict
    contradicting: int  # rows after the turn, PARTIAL ones left out
    origins: int  # of these


def was_over(*, status: str, valid_until: datetime | None, at: datetime) -> bool:
    """Tell whether a belief was closed as of a time: what is said from then on is not about it (C2)."""
    return status == BeliefStatus.INVALIDATED and valid_until is not None and at >= valid_until


def find_change_point(*, rows: Iterable[EvidenceRow], policy: ConfidencePolicy) -> ChangePoint | None:
    """Return the most likely turn against a belief, None where there is none.

    It falls between rows of different times, never inside an origin, and what comes after it contradicts more than it
    supports. Echoes count nothing. O(n log n) for n rows.
    """
    rows = list(rows)
    weights = weigh_evidence(rows=rows, policy=policy).weights
    counted = sorted((row for row in rows if row.base_weight > 0), key=attrgetter("occurred_at", "episode_id"))
    sides = _sides(counted, [weights[row.episode_id] for row in counted], policy)
    scores = _scores(*sides)
    places = [place for place in _turns(counted) if _turns_against(place, *sides)]
    if not places:
        return None
    best = max(places, key=lambda place: float(scores[place]))
    likeliness = np.logaddexp.reduce(scores[places]) - np.log(len(counted) - 1)
    after = [row for row in counted[best:] if row.verdict is Verdict.CONTRADICTS]
    return ChangePoint(
        at=min((row.occurred_at for row in after), default=counted[best].occurred_at),
        score=float(likeliness),
        score_by_origin=_score_by_origin(counted, best, policy),
        contradicting=len(after),
        origins=len({row.origin for row in after}),
    )


def _sides(rows: Sequence[EvidenceRow], weights: Sequence[float], policy: ConfidencePolicy) -> tuple[Floats, Floats]:
    """Return running sums (n + 1,) of what speaks for and against before each place."""
    sides = [sides_of(row=row, weight=weight, policy=policy) for row, weight in zip(rows, weights, strict=True)]
    in_favour = np.cumsum([0.0, *(side for side, _ in sides)])
    against = np.cumsum([0.0, *(side for _, side in sides)])
    return in_favour, against


def _scores(in_favour: Floats, against: Floats) -> Floats:
    """Return ln M(before) + ln M(after) − ln M(all) for a change at each place, where M(s, c) = B(1 + s, 1 + c)."""
    all_in_favour, all_against = in_favour[-1], against[-1]
    before = betaln(1.0 + in_favour, 1.0 + against)
    after = betaln(1.0 + all_in_favour - in_favour, 1.0 + all_against - against)
    scores: Floats = before + after - betaln(1.0 + all_in_favour, 1.0 + all_against)
    return scores


def _turns(rows: Sequence[EvidenceRow]) -> list[int]:
    """List the places between rows of different times at which no origin has more to say that spoke before."""
    last = {row.origin: place for place, row in enumerate(rows)}
    found, open_until = [], -1
    for place, row in enumerate(rows):
        if place > max(open_until, 0) and row.occurred_at > rows[place - 1].occurred_at:
            found.append(place)
        open_until = max(open_until, last[row.origin])
    return found


def _turns_against(place: int, in_favour: Floats, against: Floats) -> bool:
    return bool(against[-1] - against[place] > in_favour[-1] - in_favour[place])


def _score_by_origin(rows: Sequence[EvidenceRow], place: int, policy: ConfidencePolicy) -> float:
    """Return the score of a change at a place with the first row of each origin and verdict alone."""
    first: dict[tuple[str, Verdict], int] = {}
    for number, row in enumerate(rows):
        first.setdefault((row.origin, row.verdict), number)
    kept = sorted(first.values())
    sides = _sides([rows[number] for number in kept], [1.0] * len(kept), policy)
    return float(_scores(*sides)[sum(number < place for number in kept)])
