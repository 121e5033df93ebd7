"""The data that ships with the project keeps its own promises."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import memory.llm

PAIRS = Path(memory.llm.__file__).with_name("calibration_pairs.jsonl")
HISTORY = Path(memory.__file__).with_name("samples") / "history.jsonl"


def read_lines(path: Path) -> list[dict[str, Any]]:
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


def test_history_spans_five_months_in_order() -> None:
    """The sample is 150 to 220 episodes from January to May 2026, oldest first, with time zones."""
    times = [datetime.fromisoformat(line["occurred_at"]) for line in read_lines(HISTORY)]

    assert 150 <= len(times) <= 220
    assert times == sorted(times)
    assert {time.month for time in times} == {1, 2, 3, 4, 5}
    assert all(time.tzinfo for time in times)


def test_history_mixes_projects_sources_languages_and_speakers() -> None:
    """Two projects and matters across both; every source; English and German; first person with its speaker."""
    lines = read_lines(HISTORY)

    assert {line.get("project") for line in lines} == {None, "tidewatch", "brotzeit"}
    assert {line["source"] for line in lines} == {"human", "ai", "interaction", "ingest"}
    assert {line["language"] for line in lines} == {"en", "de"}
    assert {line.get("speaker") for line in lines} == {None, "Mia"}


def test_history_repeats_itself_in_every_way() -> None:
    """L4: a text twice in one session, a text in several sessions, and twenty wordings in one session."""
    lines = read_lines(HISTORY)
    within = Counter((line["text"], line.get("session")) for line in lines)
    across = Counter(text for text, _ in within)
    loudest = Counter(line.get("session") for line in lines if "notifications" in line["text"].lower())

    assert sum(count > 1 for count in within.values()) >= 3
    assert sum(count > 1 for count in across.values()) >= 5
    assert loudest["quiet-please"] == 20
