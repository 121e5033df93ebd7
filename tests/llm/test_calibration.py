"""Profiles are fitted on one half of our own pairs and judged on the other (B8a)."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from django.core.management import call_command

from memory.domain.policy import Policy
from memory.llm import profiles
from memory.llm.calibration import calibrate, load_pairs, split_pairs
from memory.llm.offline import StaticEmbedder
from memory.llm.profiles import load_profile
from memory.llm.registry import default_embedder


def test_four_hundred_pairs_ship_a_hundred_of_each_kind() -> None:
    """B8a: on labelled pairs that ship with the project."""
    counts = Counter(pair.label.value for pair in load_pairs())
    assert counts == {"same": 100, "related": 100, "unrelated": 100, "contradicting": 100}


def test_the_halves_do_not_depend_on_the_order() -> None:
    pairs = load_pairs()
    shuffled = random.Random(7).sample(pairs, len(pairs))
    assert split_pairs(pairs=shuffled) == split_pairs(pairs=pairs)


def test_no_pair_is_in_both_halves() -> None:
    known, held_out = split_pairs(pairs=load_pairs())
    assert len(known) == len(held_out) == 200
    assert not set(known) & set(held_out)


def test_the_shipped_profile_is_what_the_command_would_write() -> None:
    """B8a: profiles ship for models that were run."""
    report = calibrate(embedder=StaticEmbedder(), pairs=load_pairs(), policy=Policy())
    shipped = load_profile(model=StaticEmbedder.name)
    assert shipped.is_fitted
    assert [raw for raw, _ in shipped.anchors] == pytest.approx([raw for raw, _ in report.profile.anchors], abs=1e-4)


def test_pair_question_and_threshold_together_hardly_ever_take_different_claims_for_one() -> None:
    """B8a: the error rate of both on our own pairs, on the half that nothing was fitted on."""
    report = calibrate(embedder=StaticEmbedder(), pairs=load_pairs(), policy=Policy())
    assert report.both.false_pass_share <= 0.01
    assert report.both.false_pass_share <= min(report.pair_question.false_pass_share, report.threshold.false_pass_share)


def test_a_cosine_alone_takes_contradictions_for_agreement() -> None:
    """B8a: no cosine sees negation, so cosine alone never reinforces."""
    report = calibrate(embedder=StaticEmbedder(), pairs=load_pairs(), policy=Policy())
    assert report.threshold.false_passes["contradicting"] > 0.3


def test_the_command_prints_the_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("calibrate_embeddings", "--json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["profile"]["model"] == default_embedder().name
    assert printed["held_out_pairs"] == 200
    assert (
        set(printed["pair_question"])
        == set(printed["both"])
        == {"false_passes", "false_pass_share", "false_refusal_share"}
    )


def test_the_command_writes_the_profile_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    call_command("calibrate_embeddings", "--write")
    assert [path.name for path in tmp_path.iterdir()] == [f"{StaticEmbedder.name}.json"]
    assert "false refusals" in capsys.readouterr().out
