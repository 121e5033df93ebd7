"""Polarity guard (B8, B8a): its error rates on our own labelled pairs."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from memory.language.analysis import SpokenText
from memory.language.guard import check_polarity

DATA = Path(__file__).parents[1] / "data"
FILES = ("guard_pairs.jsonl", "guard_pairs_second.jsonl")
MAX_FALSE_PASSES = 0.02
MAX_FALSE_REFUSALS = 0.20
Pair = dict[str, str | bool]


def _read_pairs(name: str) -> list[Pair]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def _passes(pair: Pair) -> bool:
    left = SpokenText(text=str(pair["left"]), speaker=str(pair.get("speaker_left", "")))
    right = SpokenText(text=str(pair["right"]), speaker=str(pair.get("speaker_right", "")))
    return check_polarity(left=left, right=right).passed


def _measure(pairs: list[Pair]) -> tuple[float, float]:
    """Return the shares of false passes and of false refusals."""
    counts = Counter((bool(pair["passes"]), _passes(pair)) for pair in pairs)
    should_fail = counts[False, True] + counts[False, False]
    return counts[False, True] / should_fail, counts[True, False] / (counts.total() - should_fail)


@pytest.mark.parametrize("names", [FILES[:1], FILES])
def test_error_rates_stay_under_their_bars(names: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """B8: at most 2 % false passes and 20 % false refusals."""
    pairs = [pair for name in names for pair in _read_pairs(name)]
    false_passes, false_refusals = _measure(pairs)
    with capsys.disabled():
        sys.stdout.write(
            f"\nguard, {len(pairs)} pairs: {false_passes:.1%} pass and {false_refusals:.1%} fail falsely\n"
        )
    assert len(pairs) >= 200
    assert false_passes <= MAX_FALSE_PASSES
    assert false_refusals <= MAX_FALSE_REFUSALS
