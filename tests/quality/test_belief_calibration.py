"""A few simulated histories, lived through the real pipeline and scored."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from benchmarks.quality.belief_calibration import score
from benchmarks.quality.histories import Claim, History, Kind, Said, make_histories
from benchmarks.quality.lived_histories import SAMPLED_DAYS, live_through
from benchmarks.quality.reliability import EVENS, Sample
from benchmarks.stage import EMBEDDING_MODEL
from memory.ledger.confidence import find_drift
from memory.llm.openai_models import DIALECTS
from memory.models import Evidence, GateDecision, StructuralJob, Workspace
from tests import factories
from tests.model_server import ModelServer

SEED = 1


@pytest.fixture
def server(db: None, settings: Settings) -> Iterator[ModelServer]:
    with ModelServer() as running:
        settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "openai"
        settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = running.url
        settings.OPENAI_API_KEY, settings.ENGRAM_EMBEDDING_MODEL = "", EMBEDDING_MODEL
        yield running
    DIALECTS.forget()


def live(*histories: History, server: ModelServer) -> tuple[list[Sample], Workspace]:
    workspace = factories.workspace()
    return list(live_through(histories=histories, server=server, workspace=workspace, seed=SEED)), workspace


def without_noise(kind: Kind, *claims: Claim) -> History:
    """Say each claim on a day of its own, 25 days apart."""
    said = [Said(day=25.0 * day, claim=claim) for day, claim in enumerate(claims, start=1)]
    drawn = make_histories(count=1, seed=SEED)[0]
    return History(number=0, kind=kind, habit=drawn.habit, noise=0.0, changes_on=float("inf"), said=said)


def test_confidence_at_a_time_is_that_of_the_evidence_until_then(server: ModelServer) -> None:
    """B4: a belief forms at the third of six supports; then 4/5, 5/6, 6/7 and 7/8, from α = 1 + n, β = 1."""
    samples, workspace = live(without_noise(Kind.STEADY, *[Claim(does=True)] * 6), server=server)

    assert {sample.confidence for sample in samples} == {4 / 5, 5 / 6, 6 / 7, 7 / 8}
    assert all(sample.is_true for sample in samples)
    assert find_drift(workspace=workspace)[1] == []


def test_nothing_is_scored_before_there_is_a_belief(server: ModelServer) -> None:
    samples, _ = live(without_noise(Kind.STEADY, *[Claim(does=True)] * 2), server=server)

    assert samples == []


@pytest.mark.slow
def test_a_few_histories_pass_the_gates_and_are_scored(server: ModelServer) -> None:
    """B8, B14: two of each kind, with evidence for and against, each touched belief walked past the gates.

    So few scatter by some 0.09 about the score of many: what must hold is that they beat always saying ½.
    """
    samples, workspace = live(*make_histories(count=6, seed=SEED), server=server)

    figures = score(samples=samples, seed=SEED)
    assert {sample.phase for sample in samples} >= {Kind.STEADY, Kind.CONTEXTS, "later after a change of mind"}
    assert sum(one["samples"] for one in figures["phases"]) == len(samples)
    assert len(samples) >= SAMPLED_DAYS
    assert 0.0 < figures["interval"][0] <= figures["brier"] <= figures["interval"][1] < 1.0
    assert figures["brier"] < EVENS
    assert sum(one["n"] for one in figures["bins"]) == len(samples)
    verdicts = Evidence.objects.filter(workspace=workspace).values_list("verdict", flat=True)
    assert {"SUPPORTS", "CONTRADICTS"} <= set(verdicts)
    assert GateDecision.objects.filter(workspace=workspace).exists()
    assert StructuralJob.objects.filter(workspace=workspace, state="applied").exists()
    assert find_drift(workspace=workspace)[1] == []
