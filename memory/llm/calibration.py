"""Fit an embedding model's profile on half of the labelled pairs, and measure it on the other half (B8a)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.domain.policy import Policy
from memory.domain.similarity import PairLabel, Profile, fit_profile
from memory.llm.reader import reader
from memory.llm.types import Embedder


def calibrate(*, embedder: Embedder, pairs: Sequence[LabelledPair], policy: Policy) -> CalibrationReport:
    """Fit on one half and measure on the other; raise CalibrationError for pairs that allow no profile."""
    known, held_out = split_pairs(pairs=pairs)
    cosines = _cosines(embedder, known)
    by_label = {label: [c for c, p in zip(cosines, known, strict=True) if p.label is label] for label in PairLabel}
    profile = fit_profile(model=embedder.name, similarities=by_label, policy=policy.calibration)
    thresholds = {
        "cluster": policy.consolidation.cluster_similarity,
        "match": policy.consolidation.match_similarity,
        "reinforce": policy.consolidation.reinforce_similarity,
    }
    alike = profile.reference(np.array(_cosines(embedder, held_out))) > thresholds["reinforce"]
    agreed = np.array([reader().says_the_same(pair.a, pair.b) for pair in held_out])
    return CalibrationReport(
        profile=profile,
        fitted_pairs=len(known),
        held_out_pairs=len(held_out),
        raw_thresholds={name: round(profile.raw(value), 4) for name, value in thresholds.items()},
        pair_question=_measure(held_out, agreed),
        threshold=_measure(held_out, alike),
        both=_measure(held_out, agreed & alike),
    )


PAIRS = Path(__file__).with_name("calibration_pairs.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledPair:
    """Two sentences, and what they are to each other."""

    a: str
    b: str
    label: PairLabel
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRates:
    """How often a rule takes different claims for one (by label), and one claim for two, on pairs it never saw."""

    false_passes: dict[str, float]
    false_pass_share: float
    false_refusal_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """A profile, and how pair question, threshold and both together do on the held-out half."""

    profile: Profile
    fitted_pairs: int
    held_out_pairs: int
    raw_thresholds: dict[str, float]
    pair_question: ErrorRates
    threshold: ErrorRates
    both: ErrorRates


def load_pairs(*, path: Path = PAIRS) -> list[LabelledPair]:
    """Read the labelled pairs that ship with the project."""
    rows = (json.loads(line) for line in path.read_text().splitlines() if line)
    return [
        LabelledPair(a=row["a"], b=row["b"], label=PairLabel(row["label"]), language=row["language"]) for row in rows
    ]


def split_pairs(*, pairs: Iterable[LabelledPair]) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """Halve every label of every language by hash, so that the halves stay the same whatever the order."""
    ordered = sorted(pairs, key=lambda pair: (pair.label, pair.language, _hash_pair(pair)))
    return ordered[::2], ordered[1::2]


def _cosines(embedder: Embedder, pairs: Sequence[LabelledPair]) -> list[float]:
    vectors = embedder.embed([text for pair in pairs for text in (pair.a, pair.b)])
    return [float(cosine) for cosine in np.einsum("ij,ij->i", vectors[::2], vectors[1::2])]


def _measure(pairs: Sequence[LabelledPair], taken: NDArray[np.bool_]) -> ErrorRates:
    """Count what a rule took for one claim, against the labels."""
    labels = np.array([pair.label.value for pair in pairs])
    is_same = labels == PairLabel.SAME.value
    others = [label for label in PairLabel if label is not PairLabel.SAME]
    return ErrorRates(
        false_passes={label.value: round(float(taken[labels == label.value].mean()), 4) for label in others},
        false_pass_share=round(float(taken[~is_same].mean()), 4),
        false_refusal_share=round(float(1 - taken[is_same].mean()), 4),
    )


def _hash_pair(pair: LabelledPair) -> str:
    return hashlib.sha256(f"{pair.a}\n{pair.b}".encode()).hexdigest()
