"""L3, D7, B11: a planted text neither becomes another's word nor moves what cycles made of others."""

import pytest

from memory.domain.taxonomy import ConversationTurn, Role
from memory.models import Belief, Episode, Evidence, Source, Workspace
from memory.reading.messages import select_unread
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.factories import NOW
from tests.ingest.talking import said, store
from tests.injections import PLANTED

pytestmark = pytest.mark.django_db(transaction=True)

ORDINARY = ("Ana keeps her bike in the shed behind the house.",) * 4  # said in four places


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def _conversation(planted: str, role: Role) -> list[ConversationTurn]:
    return [
        *said("I prefer short meetings in Graz."),
        *said(planted, role=role, speaker="", first=2),
        *said("My sister Ana is a doctor in Graz.", first=3),
    ]


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.TOOL])
def test_nothing_planted_becomes_a_persons_word(workspace: Workspace, role: Role) -> None:
    """D7: each turn is the word of whoever said it, and nobody reads what an assistant or a tool says of a person."""
    for planted in PLANTED:
        store(_conversation(planted, role), workspace=workspace)

    human = Episode.objects.filter(source=Source.HUMAN).order_by("number").values_list("text", flat=True)
    assert list(human) == ["I prefer short meetings in Graz.", "My sister Ana is a doctor in Graz."]
    others = Episode.objects.exclude(source=Source.HUMAN)
    assert set(others.values_list("source", "speaker", "confidence")) == {
        (Source.AI if role is Role.ASSISTANT else Source.INGEST, "", None)
    }
    assert not select_unread(episodes=Episode.objects.exclude(source=Source.HUMAN)).exists()


def test_planted_episodes_leave_beliefs_and_evidence_of_others_alone(workspace: Workspace) -> None:
    """B11: a cycle offline, with all twenty among what it judges, and one without."""
    other = factories.workspace()
    for place in (workspace, other):
        for text in ORDINARY:
            factories.episode(workspace=place, text=text, language="en")
    for text in PLANTED:
        factories.episode(workspace=workspace, text=f"{text} {ORDINARY[0]}", language="en")

    run_cycle(workspace, NOW)
    run_cycle(other, NOW)

    words = {place: _words_on_the_bike(place) for place in (workspace, other)}
    assert words[other]
    assert words[workspace] == words[other]


def _words_on_the_bike(workspace: Workspace) -> list[tuple[str, str]]:
    belief = Belief.objects.for_workspace(workspace.pk).order_by("created_at").first()
    rows = Evidence.objects.filter(belief=belief, episode__text__in=ORDINARY)
    return sorted(rows.values_list("episode__text", "verdict"))
