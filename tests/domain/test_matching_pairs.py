"""Polarity guard (B8, B8a): its error rates on our own labelled pairs."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from memory.domain.matching import Claim, check_polarity

PAIRS = Path(__file__).parents[1] / "data" / "guard_pairs.jsonl"
MAX_FALSE_PASSES = 0.02
MAX_FALSE_REFUSALS = 0.20


def _read_pairs() -> list[dict[str, str | bool]]:
    return [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]


def _passes(pair: dict[str, str | bool]) -> bool:
    left = Claim(text=str(pair["left"]), speaker=str(pair.get("speaker_left", "")))
    right = Claim(text=str(pair["right"]), speaker=str(pair.get("speaker_right", "")))
    return check_polarity(left=left, right=right).passed


def test_error_rates_stay_under_their_bars(capsys: pytest.CaptureFixture[str]) -> None:
    """B8: at most 2 % false passes and 20 % false refusals on 200 pairs."""
    counts = Counter((bool(pair["passes"]), _passes(pair)) for pair in _read_pairs())
    should_fail = counts[False, True] + counts[False, False]
    should_pass = counts[True, True] + counts[True, False]
    report = f"{counts[False, True]}/{should_fail} false passes, {counts[True, False]}/{should_pass} false refusals"
    with capsys.disabled():
        sys.stdout.write(f"\npolarity guard: {report}\n")
    assert counts.total() == 200
    assert counts[False, True] / should_fail <= MAX_FALSE_PASSES
    assert counts[True, False] / should_pass <= MAX_FALSE_REFUSALS
