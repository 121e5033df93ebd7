"""From evidence to confidence: `weigh_evidence` turns rows into a Beta posterior (B4).

Beside it stand the additive model (R10a), the prediction error that opens a belief for revision (B6), the change point
at which evidence turns against a belief (C1), and the evidence of two beliefs that merge (B13).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, betaln

from memory.domain.lifecycle import BeliefStatus
from memory.domain.policy_beliefs import AdditivePolicy, ConfidencePolicy, DestabilizationPolicy


class Verdict(StrEnum):
    """What an episode says of a belief (B11)."""

    SUPPORTS = "SUPPORTS"
    CONTRADICTS = "CONTRADICTS"
    PARTIAL = "PARTIAL"
    IRRELEVANT = "IRRELEVANT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beta:
    """Beta(α, β); both are positive."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if not (0 < self.alpha < math.inf and 0 < self.beta < math.inf):
            raise ValueError(f"α and β must be positive and finite, not {self.alpha} and {self.beta}")

    @property
    def mean(self) -> float:
        """Return α/(α+β), the confidence."""
        return self.alpha / (self.alpha + self.beta)

    def interval(self, *, mass: float = 0.90) -> tuple[float, float]:
        """Return the equal-tailed credible interval that holds `mass` of the distribution."""
        tail = (1.0 - mass) / 2.0
        return self.quantile(probability=tail), self.quantile(probability=1.0 - tail)

    def cdf(self, *, x: float) -> float:
        """Return P(X ≤ x): the regularised incomplete beta function, DLMF 8.17.2."""
        return float(betainc(self.alpha, self.beta, min(max(x, 0.0), 1.0)))

    def quantile(self, *, probability: float) -> float:
        """Return x with P(X ≤ x) = probability."""
        return float(betaincinv(self.alpha, self.beta, min(max(probability, 0.0), 1.0)))


class EvidenceError(ValueError):
    """A row that can be no evidence: an IRRELEVANT verdict, or a weight below zero or not finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """One episode's verdict on one belief; base weight 0 is an echo, kept for the record only."""

    episode_id: str
    verdict: Verdict
    base_weight: float
    origin: str
    occurred_at: datetime  # or when it is so, where its claim names a time
    is_founding: bool = False  # the belief was made of it, at birth or by a structural change
    recorded_at: datetime | None = None  # in domain time
    said_at: datetime | None = None  # when its episode occurred, whatever time its claim names
    is_curators: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedEvidence:
    """What all evidence rows of one belief come to; echoes count nowhere here."""

    posterior: Beta
    weights: Mapping[str, float]  # effective weight by episode id, 0 for echoes
    rows: Mapping[Verdict, int]
    origins: Mapping[Verdict, int]
    origins_against: int  # of contradicting and partial rows together

    @property
    def evidence_count(self) -> int:
        """Return the number of rows that are no echo."""
        return sum(self.rows.values())


def weigh_evidence(*, rows: Iterable[EvidenceRow], policy: ConfidencePolicy) -> WeighedEvidence:
    """Weigh all rows of one belief; their order does not matter.

    Rows of one verdict from one origin are ranked by base weight (greatest first), time and episode id, and weigh
    base/rank, so that what one origin repeats adds ever less.
    """
    rows = list(rows)
    groups: dict[tuple[Verdict, str], list[EvidenceRow]] = defaultdict(list)
    for row in rows:
        _check(row)
        if row.base_weight > 0:
            groups[row.verdict, row.origin].append(row)
    weights = dict.fromkeys((row.episode_id for row in rows), 0.0)
    for group in groups.values():
        weights |= _weigh_origin(rows=group, independence=policy.independence)
    return WeighedEvidence(
        posterior=_posterior(rows=rows, weights=weights, policy=policy),
        weights=weights,
        rows=Counter(row.verdict for row in rows if row.base_weight > 0),
        origins=Counter(verdict for verdict, _ in groups),
        origins_against=len({origin for verdict, origin in groups if verdict is not Verdict.SUPPORTS}),
    )


def _check(row: EvidenceRow) -> None:
    if row.verdict is Verdict.IRRELEVANT or not 0 <= row.base_weight < math.inf:
        raise EvidenceError(f"{row.episode_id}: {row.verdict} with weight {row.base_weight} is no evidence")


def _weigh_origin(*, rows: list[EvidenceRow], independence: bool) -> dict[str, float]:
    ranked = sorted(rows, key=lambda row: (-row.base_weight, row.occurred_at, row.episode_id))
    return {row.episode_id: row.base_weight / (rank if independence else 1) for rank, row in enumerate(ranked, start=1)}


def _posterior(*, rows: list[EvidenceRow], weights: Mapping[str, float], policy: ConfidencePolicy) -> Beta:
    """Sum exactly and round once (`fsum`), so that recomputing in any order gives the same α and β."""
    of = {verdict: [weights[row.episode_id] for row in rows if row.verdict is verdict] for verdict in Verdict}
    partial = [policy.partial_share * weight for weight in of[Verdict.PARTIAL]]
    return Beta(
        alpha=math.fsum([policy.prior_alpha, *of[Verdict.SUPPORTS], *partial]),
        beta=math.fsum([policy.prior_beta, *of[Verdict.CONTRADICTS], *partial]),
    )


def sides_of(*, row: EvidenceRow, weight: float, policy: ConfidencePolicy) -> tuple[float, float]:
    """Return what a row of this effective weight says in favour and against; of a PARTIAL one a share each."""
    in_favour = {Verdict.SUPPORTS: 1.0, Verdict.PARTIAL: policy.partial_share}.get(row.verdict, 0.0)
    against = {Verdict.CONTRADICTS: 1.0, Verdict.PARTIAL: policy.partial_share}.get(row.verdict, 0.0)
    return in_favour * weight, against * weight


def peak_confidence(*, rows: Iterable[EvidenceRow], policy: ConfidencePolicy) -> float:
    """Return the greatest confidence on the way through all rows of one belief in evidence order, 0.5 without any.

    What the belief was made of comes first, and at once; rows weigh what they weigh in the end.
    """
    rows = list(rows)
    weights = weigh_evidence(rows=rows, policy=policy).weights
    sides = {row.episode_id: sides_of(row=row, weight=weights[row.episode_id], policy=policy) for row in rows}
    founding = [sides[row.episode_id] for row in rows if row.is_founding]
    alpha = policy.prior_alpha + math.fsum(side for side, _ in founding)
    beta = policy.prior_beta + math.fsum(side for _, side in founding)
    peak = max(0.5, alpha / (alpha + beta))
    for row in sorted((row for row in rows if not row.is_founding), key=lambda row: (row.occurred_at, row.episode_id)):
        in_favour, against = sides[row.episode_id]
        alpha, beta = alpha + in_favour, beta + against
        peak = max(peak, alpha / (alpha + beta))
    return peak


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


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Where the evidence of one belief turns against it, if it does."""

    at: datetime  # of the first row that contradicts it after the turn
    score: float  # nats, over all places
    score_by_origin: float  # nats of this place, with one row an origin and verdict
    contradicting: int  # rows after the turn, PARTIAL ones left out
    origins: int  # of these


def was_closed_at(*, status: str, valid_until: datetime | None, at: datetime) -> bool:
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


def merge_evidence(*, left: Iterable[EvidenceRow], right: Iterable[EvidenceRow]) -> list[EvidenceRow]:
    """Return one row per episode, by id: the heavier one's, PARTIAL where the two verdicts clash."""
    united = {row.episode_id: row for row in left}
    for row in right:
        known = united.get(row.episode_id)
        united[row.episode_id] = row if known is None else _unite(known, row)
    return [united[key] for key in sorted(united)]


def _unite(one: EvidenceRow, other: EvidenceRow) -> EvidenceRow:
    heavier = max(one, other, key=lambda row: row.base_weight)
    # An echo says nothing, so it clashes with nothing that was said.
    is_clash = one.verdict is not other.verdict and (one.base_weight > 0) == (other.base_weight > 0)
    return replace(heavier, verdict=Verdict.PARTIAL) if is_clash else heavier
