"""What a person corrected, as recall tells it afterwards."""

import pytest

from memory.consolidation.curation import BeliefText
from memory.domain.identity import Actor, ActorKind
from memory.facts.remember import run_remember_job
from memory.ingest.corrections import correct_belief
from memory.ledger.transactions import Author
from memory.models import Belief
from tests.consolidation.world import World
from tests.facts.telling import remembrance_of, tell
from tests.recall.memories import ask

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("query", ["Where does Mia live?", "Mia lives in Bergen."])
def test_a_correction_stands_before_what_it_corrects(world: World, query: str) -> None:
    """B16, R7: though the question has the very words of what was said before."""
    said = tell(world, "Mia lives in Bergen.")
    run_remember_job(remembrance_id=remembrance_of(said).pk, now=world.now)
    author = Author(actor=LENA, reason="she moved", now=world.now)
    correct_belief(belief=Belief.objects.get(), wording=BeliefText(statement="Mia lives in Rome."), author=author)
    results = ask(query, workspace=world.workspace, now=world.now).results
    corrected = Belief.objects.get(statement="Mia lives in Rome.")
    assert (corrected.last_verified_at, Belief.objects.get(statement="Mia lives in Bergen.").last_verified_at) == (
        world.now,
        None,
    )
    assert results[0].id == corrected.pk
    assert {one.id: one.superseded_by for one in results if one.superseded_by} == {said.episode_id: corrected.pk}
