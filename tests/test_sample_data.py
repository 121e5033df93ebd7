"""The data that ships with the project keeps its own promises."""

import json
from collections import Counter
from pathlib import Path

import memory.llm

PAIRS = Path(memory.llm.__file__).with_name("calibration_pairs.jsonl")


def read_lines(path: Path) -> list[dict[str, str]]:
    """Read a file of one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_calibration_pairs_are_balanced_by_label_and_language() -> None:
    """B8a: 100 pairs of each label, a quarter of them German."""
    counts = Counter((pair["label"], pair["language"]) for pair in read_lines(PAIRS))

    assert counts == {
        (label, language): 75 if language == "en" else 25
        for label in ("same", "related", "unrelated", "contradicting")
        for language in ("en", "de")
    }


def test_calibration_pairs_are_pairs_of_short_distinct_sentences() -> None:
    """B8a: every pair is two different sentences of at most 25 words, and no pair stands twice."""
    pairs = read_lines(PAIRS)

    assert all(2 < len(pair[side].split()) <= 25 for pair in pairs for side in ("a", "b"))
    assert all(pair["a"] != pair["b"] for pair in pairs)
    assert len({(pair["a"], pair["b"]) for pair in pairs}) == len(pairs)
