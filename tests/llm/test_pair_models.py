"""Models that read two texts side by side, from a folder: a re-ranker (B17) and a classifier of pairs (B11)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory.llm.onnx_models import ModelUnavailable, PairClassifier, PairsTimedOut, Reranker
from tests.llm.tiny_pairs import LABELS, make_classifier, make_reranker

WORDS = ("mara", "prefers", "tea", "coffee", "likes", "parrots", "talk", "tram")


def test_a_text_that_has_more_of_the_query_scores_higher(tmp_path: Path) -> None:
    model = Reranker(named=str(make_reranker(tmp_path, words=WORDS)))
    texts = ["tram", "mara prefers tea", "mara likes parrots", "tea"]
    scores = model.score(query="mara prefers tea", texts=texts, seconds=10.0)
    assert np.argsort(-scores, kind="stable").tolist() == [1, 2, 3, 0]
    assert scores[1] == pytest.approx(1 / (1 + np.exp(-3.0)))


def test_a_score_does_not_depend_on_the_company(tmp_path: Path) -> None:
    """Pairs of different lengths go through together, padded."""
    model = Reranker(named=str(make_reranker(tmp_path, words=WORDS)))
    texts = [" ".join(WORDS[:count]) for count in range(1, len(WORDS))] * 5
    together = model.score(query="mara prefers tea", texts=texts, seconds=10.0)
    alone = [model.score(query="mara prefers tea", texts=[text], seconds=10.0)[0] for text in texts]
    assert together.tolist() == pytest.approx(alone)


def test_what_is_longer_than_the_model_reads_is_cut(tmp_path: Path) -> None:
    model = Reranker(named=str(make_reranker(tmp_path, words=WORDS)))
    [score] = model.score(query="tea", texts=["tea " + "tram " * 5_000], seconds=10.0)
    assert score == pytest.approx(1 / (1 + np.exp(1.0)))


def test_nothing_is_waited_for_beyond_its_time(tmp_path: Path) -> None:
    model = Reranker(named=str(make_reranker(tmp_path, words=WORDS)))
    with pytest.raises(PairsTimedOut):
        model.score(query="tea", texts=["tea"] * 20, seconds=0.0)


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        {"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"},
        {"0": "neutral", "1": "contradiction", "2": "entailment"},
    ],
)
def test_classes_are_known_by_their_names_in_any_order(tmp_path: Path, labels: Any) -> None:
    model = PairClassifier(named=str(make_classifier(tmp_path, words=WORDS, labels=labels)))
    pairs = [
        ("mara prefers tea", "mara prefers tea"),
        ("mara not prefers tea", "mara prefers tea"),
        ("parrots talk", "mara prefers tea"),
    ]
    same, opposite, other = model.classify(pairs, seconds=10.0)
    assert (same.entailment > 0.6, same.contradiction < 0.1) == (True, True)
    assert (opposite.contradiction > 0.6, opposite.entailment < 0.1) == (True, True)
    assert max(other.entailment, other.contradiction) < 0.1


def test_classes_that_are_told_the_other_way_round_are_read(tmp_path: Path) -> None:
    reverse = {label: int(place) for place, label in LABELS.items()}
    folder = make_classifier(tmp_path, words=WORDS, id2label=None, label2id=reverse)
    [found] = PairClassifier(named=str(folder)).classify([("mara prefers tea", "mara prefers tea")], seconds=10.0)
    assert found.entailment > 0.6


@pytest.mark.parametrize(
    "labels",
    [{"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, {"0": "entailment", "1": "not_entailment"}, {}],
)
def test_a_classifier_of_other_classes_is_refused_by_its_file(tmp_path: Path, labels: Any) -> None:
    folder = make_classifier(tmp_path, words=WORDS, id2label=labels)
    with pytest.raises(
        ModelUnavailable, match=r"config\.json names the classes .*; entailment, contradiction, neutral"
    ):
        PairClassifier(named=str(folder))


def test_a_classifier_is_no_reranker_nor_the_other_way_round(tmp_path: Path) -> None:
    classifier, reranker = tmp_path / "classifier", tmp_path / "reranker"
    with pytest.raises(ModelUnavailable, match=r"config\.json names 3 classes .* a re-ranker has one score"):
        Reranker(named=str(make_classifier(classifier, words=WORDS)))
    with pytest.raises(ModelUnavailable, match=r"config\.json names the classes label_0"):
        PairClassifier(named=str(make_reranker(reranker, words=WORDS)))


def test_a_model_that_gives_other_numbers_than_its_config_says_is_refused(tmp_path: Path) -> None:
    folder = make_classifier(tmp_path, words=WORDS, id2label={"0": "LABEL_0"})
    with pytest.raises(ModelUnavailable, match=r"gives 3 numbers for a pair instead of 1"):
        Reranker(named=str(folder))
