"""The data that ships with the project keeps its own promises."""

import json
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import memory.llm
from benchmarks.quality.life_scores import Life, find_faults, read_lives

PAIRS = Path(memory.llm.__file__).with_name("calibration_pairs.jsonl")
HISTORY = Path(memory.__file__).with_name("samples") / "history.jsonl"
LIVES = HISTORY.with_name("lives")


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


@pytest.fixture(scope="module", name="lives")
def _lives() -> list[Life]:
    return read_lives(LIVES)


def test_lives_are_sound(lives: list[Life]) -> None:
    """Every fact is found by its own patterns and by no other's, as often as it was said; each question is answered."""
    assert [f"{life.id}: {fault}" for life in lives for fault in find_faults(life)] == []


def test_lives_are_told_over_months_mostly_by_their_user(lives: list[Life]) -> None:
    """Four lives of 70 to 90 messages, in 18 to 22 sessions over four to six months."""
    assert len(lives) == 4
    for life in lives:
        times = [datetime.fromisoformat(message.occurred_at) for message in life.messages]
        assert 70 <= len(times) <= 90
        assert 18 <= len({message.session for message in life.messages}) <= 22
        assert 120 <= (times[-1] - times[0]).days <= 185
        assert 0.6 <= sum(message.role == "user" for message in life.messages) / len(times) <= 0.7


def test_lives_hold_facts_of_every_kind_and_traps(lives: list[Life]) -> None:
    """Four or five changes a life, two contexts, two other people, four or five lasting facts that are said often."""
    for life in lives:
        kinds = Counter(fact.kind for fact in life.facts)
        lasting = sum(fact.kind == "stable" and fact.sessions >= 3 for fact in life.facts)
        assert 4 <= kinds["changed"] <= 5
        assert (kinds["context"], kinds["other_person"]) == (2, 2)
        assert 4 <= lasting <= 5
        assert 2 <= kinds["stable"] - lasting <= 3
        assert 6 <= len(life.traps) <= 8
    assert {trap.kind for life in lives for trap in life.traps} == {
        "advice", "sarcasm", "hypothetical", "question", "quote", "wish", "small_talk",
    }  # fmt: skip


def test_half_of_the_questions_share_no_word_with_their_facts(lives: list[Life]) -> None:
    for life in lives:
        facts = {fact.id: _words(fact.statement) for fact in life.facts}
        apart = [question for question in life.questions if not _words(question.text) & facts[question.fact]]
        assert 14 <= len(life.questions) <= 16
        assert len(apart) >= len(life.questions) / 2


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{4,}", text.lower()))
