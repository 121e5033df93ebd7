"""From evidence rows to a confidence (B4)."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from memory.domain.beta import Beta
from memory.domain.policy import ConfidencePolicy
from memory.domain.verdicts import Verdict


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
