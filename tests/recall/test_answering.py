"""What the claims of the episodes found say to a query (B17, E1)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memory.domain.taxonomy import Mode
from memory.llm.offline import static_embedder
from memory.models import Claim, Episode, Workspace
from memory.models.episodes import ClaimEmbedding
from memory.models.fields import VectorKind
from memory.search.plan import clear_sizes, keep_indexes
from memory.search.scope import recount_vectors
from memory.search.vectors import drop_index, stored_indexes
from tests import factories
from tests.recall.memories import ask, ids, remembered

pytestmark = pytest.mark.django_db

NOW = factories.NOW


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def claimed(episode: Episode, sentence: str, number: int = 1, **given: object) -> Claim:
    """Store a claim with the vector of its sentence."""
    claim = Claim.objects.create(
        workspace=episode.workspace, episode=episode, number=number, sentence=sentence, reader="rules-1",
        created_at=NOW, **{"mode": Mode.ASSERTED, **given},
    )  # fmt: skip
    model = static_embedder()
    ClaimEmbedding.objects.create(
        claim=claim, workspace=episode.workspace, model=model.name, vector=model.embed([sentence])[0]
    )
    return claim


def test_a_long_text_is_as_near_as_the_nearest_of_its_claims(workspace: Workspace) -> None:
    """B17: though it speaks of much else."""
    long = "The roof was mended, the mayor came by, and the boiler hums again. We cut the hedge. "
    told = remembered(long * 3, workspace=workspace)
    for number in range(3):
        remembered(f"A note on the harbour, number {number}.", workspace=workspace)
    before = {
        result.id: result for result in ask("tablets for the heart", workspace=workspace, is_explained=True).results
    }
    claimed(told, "Nora takes tablets for her heart.")
    after = {
        result.id: result for result in ask("tablets for the heart", workspace=workspace, is_explained=True).results
    }
    near = [one[told.pk].explain for one in (before, after)]
    assert near[0]
    assert near[1]
    assert (near[1].components["similarity"] or 0) > (near[0].components["similarity"] or 0) + 0.2
    assert next(iter(after)) == told.pk


def test_the_claim_that_is_meant_is_named(workspace: Workspace) -> None:
    """B17: by words, else by likeness; what is only asked or advised is none."""
    told = remembered(
        "My boss is Cleo, the ferry to Skye sails at six, my heart tablets are finished, and is Rum nice?",
        workspace=workspace,
    )
    claimed(told, "Nora's boss is Cleo.", 1)
    claimed(told, "The ferry to Skye sails at six.", 2)
    claimed(told, "Nora's heart tablets are finished.", 3)
    claimed(told, "Rum is nice.", 4, mode=Mode.ASKED)

    def meant(query: str) -> str | None:
        return ask(query, workspace=workspace).results[0].claim

    assert meant("Who is the boss?") == "Nora's boss is Cleo."
    assert meant("When does the ferry leave?") == "The ferry to Skye sails at six."
    assert meant("medicine for the heart") == "Nora's heart tablets are finished."
    assert meant("Rum") is None


def test_nothing_is_meant_where_nothing_was_claimed(workspace: Workspace) -> None:
    remembered("The ferry sails at six.", workspace=workspace)

    assert ask("When does the ferry leave?", workspace=workspace).results[0].claim is None


LONG = "We had soup. The fog came late, the radio played, and nobody rang. " * 4


def _found_only_by_its_claim(workspace: Workspace, **given: Any) -> Episode:
    """Store a long text far from its claim, behind any number of nearer ones."""
    told = remembered(LONG, workspace=workspace, **given)
    claimed(told, "Nora keeps bees on the roof.")
    for number in range(12):
        remembered(f"Insects, hives and honey, volume {number}.", workspace=workspace, **given)
    recount_vectors(kind=VectorKind.CLAIM)
    clear_sizes()
    return told


@pytest.fixture
def few_candidates(settings: Settings) -> None:
    """Have each channel bring no more than five."""
    settings.POLICY = replace(settings.POLICY, recall=replace(settings.POLICY.recall, candidates=5))


@pytest.mark.usefixtures("few_candidates")
def test_a_long_text_is_found_by_any_claim_of_it(workspace: Workspace) -> None:
    """B17, E1: neither its words nor its vector would bring it."""
    told = _found_only_by_its_claim(workspace)

    found = {one.id: one for one in ask("beehives", workspace=workspace, limit=20).results}

    assert found[told.pk].claim == "Nora keeps bees on the roof."


@pytest.mark.usefixtures("few_candidates")
def test_claims_lead_nowhere_out_of_sight(workspace: Workspace) -> None:
    """B21: nor to another project, user or time."""
    mill, barn = (factories.project(workspace=workspace, slug=slug) for slug in ("mill", "barn"))
    told = _found_only_by_its_claim(workspace, project=mill, user="nora")

    def finds(**asked: Any) -> bool:
        return told.pk in ids(ask("beehives", workspace=workspace, limit=20, **asked))

    assert finds(limited_to=(mill,), user="nora")
    assert not finds(limited_to=(barn,))
    assert not finds(user="bruno")
    assert not finds(occurred_from=NOW + timedelta(days=1))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("few_candidates")
def test_many_claims_are_searched_by_an_index(workspace: Workspace, settings: Settings) -> None:
    """B17: made and used as those over episodes are."""
    few = replace(settings.POLICY.recall, exact_vectors=3)
    settings.POLICY = replace(settings.POLICY, recall=few)
    told = _found_only_by_its_claim(workspace)
    for number in range(8):
        other = remembered(f"{LONG} {number}", workspace=workspace)
        claimed(other, f"Nora cooks soup number {number}.")
    keep_indexes(policy=few)
    clear_sizes()

    assert [index.is_valid for index in stored_indexes(kind=VectorKind.CLAIM)] == [True]
    assert told.pk in ids(ask("beehives", workspace=workspace, limit=20))

    for kind in VectorKind:
        for index in stored_indexes(kind=kind):
            drop_index(name=index.name)
