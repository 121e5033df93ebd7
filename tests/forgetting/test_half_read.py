"""B19, L3: a turn of which a piece could not be read is an episode for what was found in its other pieces."""

from collections.abc import Sequence

import pytest

from memory.domain.taxonomy import Category, ConversationTurn, ExtractedFact, ExtractionResult
from memory.erasure.erase import erase_memories
from memory.ingest import extract
from memory.models import Episode, Turn, TurnEpisode, Workspace
from tests import factories
from tests.factories import NOW
from tests.forgetting.forgetful import LENA
from tests.ingest.conftest import _no_dispatch
from tests.ingest.reading import Reader, end_waits, read, say, states

__all__ = ["_no_dispatch"]

pytestmark = pytest.mark.django_db

OLGA = "The harbour master is Olga Petersen."
LONG = f"{OLGA} {'The tide is low. ' * 200}".strip()
TIDE = "Never moor at the east pier."


def half(turns: Sequence[ConversationTurn]) -> ExtractionResult:
    """Find a fact in each turn, and leave the second one unread for its other piece."""
    facts = [
        ExtractedFact(text=text, category=Category.FACT, confidence=0.8, turns=(number,))
        for number, text in ((1, TIDE), (2, OLGA))
    ]
    return ExtractionResult(facts=tuple(facts), call_ids=(), unread=(2,), failure="malformed: no JSON")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    reader = Reader(does=half)
    monkeypatch.setattr(extract, "ask_for_facts", reader)
    return reader


@pytest.fixture
def workspace(reader: Reader) -> Workspace:
    """Return a workspace where one turn was read, and one by half."""
    workspace = factories.workspace()
    say(TIDE, LONG, workspace=workspace)
    assert read() is False
    assert states() == ["extracted", "leased"]
    return workspace


def links() -> set[tuple[int, str]]:
    return set(TurnEpisode.objects.values_list("turn__number", "episode__text"))


def test_erasing_what_half_a_turn_told_erases_the_turn(workspace: Workspace) -> None:
    """B19: nobody reads the rest of it, and no word of it is left."""
    named = Episode.objects.filter(text=LONG)
    assert erase_memories(workspace=workspace, episodes=named, actor=LENA, now=NOW).turns == 1
    assert list(Turn.objects.values_list("content", flat=True)) == [TIDE]
    assert list(Episode.objects.values_list("text", flat=True)) == [TIDE]


def test_the_rest_of_a_turn_is_read_later_and_nothing_is_there_twice(workspace: Workspace, reader: Reader) -> None:
    """L3, L4: it is an episode already, and no confirmation of itself."""
    reader.does = lambda _: ExtractionResult(
        facts=(ExtractedFact(text=OLGA, category=Category.FACT, confidence=0.8, turns=(2,)),), call_ids=()
    )
    end_waits()
    assert read()
    assert (links(), Episode.objects.count()) == ({(1, TIDE), (2, LONG)}, 2)
    assert not Episode.objects.filter(confirmations__gt=0).exists()


def test_nothing_is_stored_of_a_half_read_turn_that_is_erased_meanwhile(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B19: the reading began before, and is begun anew."""
    workspace = factories.workspace()
    say(TIDE, LONG, workspace=workspace)

    def erased_meanwhile(turns: Sequence[ConversationTurn]) -> ExtractionResult:
        Turn.objects.filter(number=2).delete()
        return half(turns)

    reader.does = erased_meanwhile
    assert read() is False
    assert (Episode.objects.count(), TurnEpisode.objects.count()) == (0, 0)
